/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Processes and their programs, as the kernel side knows them, and what it tells of them. */
#ifndef PYBPF_PROCESS_H
#define PYBPF_PROCESS_H

#include "pybpf_layout.h"

/* Runtimes of one process that are sampled; a thread is looked for in each of them. */
#define PYBPF_MAX_RUNTIMES 4

/* The value of thread_bias where it is not known, and the greatest that is looked for then. */
#define PYBPF_NO_THREAD_BIAS  0xffff
#define PYBPF_THREAD_BIAS_MAX 4096

/* One CPython in a process: a library or a program with its own interpreters, threads and types. */
struct pybpf_runtime {
	__u64 interp_head;    /* address of the variable that holds the first PyInterpreterState * */
	__u64 tstate_current; /* address of the variable that holds the GIL's owner (to 3.11), or 0 */
	__u64 code_type;      /* &PyCode_Type, or 0 */
	__u32 layout;         /* index into map layouts */
	__u16 refused;        /* the memory of one of several contradicts its layout: it is not sampled */
	__u16 thread_bias;    /* of its C library: pthread_self() lies this many bytes below the thread pointer */
	__u32 code_before;    /* the interpreter's machine code begins this many bytes before interp_head */
	__u32 code_size;      /* its bytes; 0: not known */
	struct pybpf_asyncio asyncio;
};

/*
 * Value of map procs: the kernel side's entry of a process. Key: its tgid in pybpf's PID namespace. Valid for one
 * program of one process: for this start time and this mm.
 */
struct pybpf_proc {
	struct pybpf_runtime runtimes[PYBPF_MAX_RUNTIMES]; /* an index keeps its layout as long as proc_id holds */
	__u64 mm;                                          /* address of its mm_struct: an exec makes another */
	__u64 start;   /* of the process, in clock ticks since boot (field 22 of /proc/PID/stat) */
	__u64 proc_id; /* one program of one process: a new number for each fork and exec, never reused in a run */
	__u64 stale_pointer; /* what the kernel had as the first thread's thread pointer at its exec, or 0 */
	__u32 nr_runtimes;
	__u32 state;          /* enum pybpf_proc_state */
	__u32 reported;       /* user space knows proc_id */
	__u32 stale_switches; /* how often the first thread had been switched away from then: until the next time */
};
_Static_assert(sizeof(struct pybpf_proc) == 304, "pybpf_proc has no hidden padding");

enum pybpf_proc_state {
	PYBPF_PROC_CLAIMED = 1, /* user space asks for this process: process_find fills it in */
	PYBPF_PROC_UNDECIDED,   /* user space does not know yet whether it runs Python */
	PYBPF_PROC_READY,
	PYBPF_PROC_OTHER,    /* it runs a program without an interpreter, so far */
	PYBPF_PROC_UNWANTED, /* a Python that is not to be sampled */
};

/* A program's file as the kernel knows it; key of map files. */
struct pybpf_file_key {
	__u64 inode;
	__u64 ctime; /* ns since 1970 */
	__u32 dev;   /* the kernel's own encoding: major << 20 | minor */
	__u32 pad;
};

/* Value of map files: the kind of a program, and where its Python is. Addresses as linked. */
struct pybpf_file {
	__u64 code_start; /* of its first executable segment: mm_struct.start_code less the load bias */
	__u64 interp_head, tstate_current, code_type;
	__u32 layout;
	__u16 kind;                   /* enum pybpf_program_kind */
	__u16 thread_bias;            /* as in struct pybpf_runtime */
	__u32 code_before, code_size; /* as in struct pybpf_runtime */
	struct pybpf_asyncio asyncio;
};

enum pybpf_program_kind {
	PYBPF_PROGRAM_OTHER = 1, /* no Python, unless it loads one unexpectedly */
	PYBPF_PROGRAM_PYTHON,    /* the interpreter is in the file: its processes are ready from their exec on */
	PYBPF_PROGRAM_LOADS,     /* it is known to load a Python: undecided until it does */
};

/* A filter's verdict on a user or a cgroup; values of maps users and cgroups. */
enum pybpf_filter {
	PYBPF_FILTER_INCLUDE = 1,
	PYBPF_FILTER_EXCLUDE,
};

enum pybpf_process_what {
	PYBPF_PROCESS_FOUND = 1, /* it existed before the run: from process_find */
	PYBPF_PROCESS_FORKED,    /* by other_id, whose program it runs */
	PYBPF_PROCESS_EXECED,    /* another program; other_id: the program before, if that was known */
	PYBPF_PROCESS_EXITED,
};

/* An event of a process: found, forked, executed or ended. */
struct pybpf_process_event {
	__u32 what; /* enum pybpf_process_what */
	__u32 tgid;
	__u32 inner_tgid; /* in the process's own PID namespace */
	__u32 state;      /* enum pybpf_proc_state: what it is now, as far as the kernel knows */
	__u32 wanted;     /* the filters of users and cgroups let it pass */
	__u32 layout;     /* of PYBPF_PROGRAM_PYTHON */
	__u64 proc_id;
	__u64 other_id;
	__u64 mm;                   /* as in struct pybpf_proc */
	__u64 start;                /* clock ticks since boot */
	__u64 cpu_ns;               /* PYBPF_PROCESS_EXITED: CPU time of its threads */
	struct pybpf_file_key file; /* the program's */
	__u32 kind;                 /* enum pybpf_program_kind, 0 where the kernel does not know the file */
	__u32 pad;
	char comm[16];
};
_Static_assert(sizeof(struct pybpf_process_event) == 112, "pybpf_process_event has no hidden padding");

#endif

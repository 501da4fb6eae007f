/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Types and constants shared by the BPF programs and user space: layouts, map keys and values, ring buffer records,
 * counters. */
#ifndef PYBPF_H
#define PYBPF_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

/* Most frames that are kept of one stack. A deeper stack keeps its leaf half and its root half. */
#define PYBPF_MAX_FRAMES  8192
#define PYBPF_HALF_FRAMES (PYBPF_MAX_FRAMES / 2)
/* Most addresses that are kept of a stack in the kernel: PERF_MAX_STACK_DEPTH (include/uapi/linux/perf_event.h) and one
 * for alignment. */
#define PYBPF_KERNEL_FRAMES 128
/* Most frames that one walk visits: bounds the time of one sample. */
#define PYBPF_MAX_WALK 65536
/* Most interpreters and thread states that one search visits. */
#define PYBPF_MAX_THREADS 16384

/* Runtimes of one process that are sampled; a thread is looked for in each of them. */
#define PYBPF_MAX_RUNTIMES 4

/* Largest windows that the walk reads of one struct; a layout that needs more is refused. */
#define PYBPF_TSTATE_WINDOW 320
#define PYBPF_FRAME_WINDOW  144
#define PYBPF_CODE_WINDOW   256

/* Stands for the offset of a field that this Python lacks. */
#define PYBPF_NO_OFFSET 0xffff

/* How a frame stores its position. */
enum pybpf_position_kind {
	PYBPF_POS_LASTI = 1, /* f_lasti, an int: bytes to 3.9, code units in 3.10 */
	PYBPF_POS_INSTR_PTR, /* a pointer into the code object: prev_instr 3.11-3.12, instr_ptr 3.13+ */
};

enum pybpf_string_kind {
	PYBPF_STR_BYTES = 1, /* 2.7 str */
	PYBPF_STR_UNICODE,   /* PEP 393 */
};

/* How a code object maps positions to lines. */
enum pybpf_line_kind {
	PYBPF_LINES_LNOTAB_UNSIGNED = 1, /* to 3.5: unsigned line deltas */
	PYBPF_LINES_LNOTAB,              /* 3.6-3.9: signed line deltas */
	PYBPF_LINES_PEP626,              /* 3.10: co_linetable of pairs */
	PYBPF_LINES_PEP657,              /* 3.11+: location table with varints */
};

/*
 * Where the GIL's variables are to 3.6, in bytes from the variable interp_head on: each build has its own order.
 * last_holder is 0 where they are not known, or the GIL is a struct; lock is 0 in 3.6, and all that follow it are
 * in 2.7.
 */
struct pybpf_gil_variables {
	__s32 last_holder; /* 3.6: gil_last_holder; 2.7: _PyThreadState_Current */
	__s32 lock; /* 2.7: interpreter_lock, a pointer to a semaphore (PyThread_type_lock); NULL without threads */
	/* 3.6: static variables of Python/ceval_gil.h, whose names begin with gil_ but for the last two's. */
	__s32 locked;
	__s32 switch_number;
	__s32 cond;
	__s32 mutex;
	__s32 switch_cond;
	__s32 switch_mutex;
};

/* Whose garbage collection runs in the interpreter of a thread. */
enum pybpf_collection {
	PYBPF_COLLECTION_UNKNOWN, /* this Python does not tell, or the memory could not be read */
	PYBPF_COLLECTION_NONE,
	PYBPF_COLLECTION_SOMEBODYS, /* there is one, and this Python does not tell whose */
	PYBPF_COLLECTION_OTHERS,    /* another thread's, or the thread's own below a function of Python */
	PYBPF_COLLECTION_OWN,       /* the thread's innermost function has set it off */
};

/*
 * Offsets of the fields of one build of CPython, in bytes from the start of the struct that the prefix names;
 * PYBPF_NO_OFFSET where the build has no such field.
 */
struct pybpf_layout {
	__u16 major;
	__u16 minor;

	/* PyInterpreterState */
	__u32 interp_code_guard; /* a counter, see walk_trust_codes; 0 where none is known */
	__u32 interp_gil;        /* 3.12+: ceval.gil, a pointer; 0: no such field */
	__s32 gil_from_head;     /* 3.7-3.11: _PyRuntime.ceval.gil, from the variable at interp_head on; 0: unknown */
	struct pybpf_gil_variables gil; /* to 3.6 */
	__u32 interp_modules;           /* sys.modules, a pointer to a dict; 0: unknown */
	__u32 interp_collecting;        /* 3.9+: gc.collecting, an int; 0: unknown */
	__s32 collecting_from_head;     /* 3.7, 3.8: _PyRuntime.gc.collecting, as gil_from_head */
	__u32 interp_gc_frame;          /* 3.15+: gc.frame, the frame that set off the collection; 0: no such field */
	__u16 interp_next;
	__u16 interp_threads_head;

	/* PyThreadState; window: bytes to read so that every field below is in one read */
	__u16 tstate_next;
	__u16 tstate_interp;
	__u16 tstate_thread_id;
	__u16 tstate_frame;         /* the frame, or the cframe where cframe_frame is an offset */
	__u16 tstate_status;        /* 3.12+: the 32-bit field _status; 0 where there is none */
	__u16 tstate_datastack_top; /* 3.11+, followed by the limit; 0 where there is none */
	__u16 tstate_exc_info;      /* 3.11, 3.12; 0 where it is not needed */
	__u16 tstate_executor;      /* current_executor (3.14+); 0 where there is none */
	__u16 tstate_handled;       /* 3.7+: exc_info, a pointer to an _PyErr_StackItem; 0: unknown */
	__u16 tstate_raised;        /* 3.7+: the exception that is being raised, or its type; 0: unknown */
	__u16 handled_value;        /* _PyErr_StackItem.exc_value */
	__u16 tstate_window;
	__u16 tstate_cframe; /* 3.10-3.12 */
	__u16 cframe_previous;
	__u16 cframe_frame; /* _PyCFrame.current_frame (3.11, 3.12), followed by previous */

	/* PyFrameObject (to 3.10) or _PyInterpreterFrame */
	__u16 frame_window;
	__u16 frame_code;
	__u16 frame_previous;
	__u16 frame_position;
	__u16 frame_owner;
	__u16 frame_entry;      /* is_entry (3.11); in 3.12 the owner tells */
	__u16 frame_tlbc_index; /* free-threaded 3.14+ */
	__u16 frame_mark;       /* see walk_is_compiled: f_trace (to 3.10), frame_obj (3.11, 3.12), f_funcobj (3.13+) */
	__u16 frame_stack;      /* stackpointer (3.14+), which is valid while no evaluation loop runs the frame */

	/* PyGenObject, and those of coroutines and asynchronous generators (3.14+); 0 in others */
	__u16 gen_frame; /* gi_iframe: the frame itself */
	__u16 gen_state; /* gi_frame_state, a char */

	/* PyCodeObject; code_window covers all but co_code_adaptive and co_tlbc, which may lie beyond */
	__u16 code_window;
	__u16 code_type; /* ob_type */
	__u16 code_filename;
	__u16 code_name;
	__u16 code_qualname;  /* 3.11+ */
	__u16 code_linetable; /* co_lnotab to 3.9 */
	__u16 code_firstlineno;
	__u16 code_version;  /* co_version (3.12+), unique to a code object of an interpreter */
	__u16 code_adaptive; /* co_code_adaptive (3.11+) */
	__u16 code_tlbc;     /* co_tlbc (free-threaded 3.14+) */

	/* PyASCIIObject and PyCompactUnicodeObject; for PYBPF_STR_BYTES str_length and str_ascii_data are
	 * those of PyStringObject, and str_hash its ob_shash */
	__u16 str_length;
	__u16 str_hash;
	__u16 str_state; /* the 32-bit bit field */
	__u16 str_ascii_data;
	__u16 str_compact_data;

	/* PyBytesObject (PyStringObject in 2.7) */
	__u16 bytes_size;
	__u16 bytes_data;

	/* Frames whose owner is this or more are no Python frames: entry, shim, C stack. */
	__u8 owner_not_python;
	/* Mask of the tag bits in the frame's executable (3.14+), else 0. */
	__u8 code_tag_mask;
	__u8 position_kind; /* enum pybpf_position_kind */
	__u8 string_kind;   /* enum pybpf_string_kind */
	__u8 line_kind;     /* enum pybpf_line_kind */
	__u8 free_threaded;
	__u8 debug_build;
	__u8 str_kind_shift; /* bit of the 3-bit field "kind" in the state word */
	/* Bytes of the counter at interp_code_guard: 8 count code objects that were freed (3.14+); 4 count those that
	 * were made (3.13), and are 0 once they have run out. */
	__u8 code_guard_size;
	__u8 code_bytecode; /* PyCodeObject.co_code (to 3.10); 0 where there is none */
};
_Static_assert(sizeof(struct pybpf_layout) == 164, "pybpf_layout has no hidden padding");

/*
 * Bits of PyThreadState._status (3.12 to 3.15, cpython/pystate.h). A thread state that was deleted keeps its thread_id
 * and the bits bound and active: unbound tells. bound_gilstate is set when a thread state is attached, and cleared when
 * another one of its thread is (tstate_activate, bind_gilstate_tstate).
 */
#define PYBPF_TSTATE_BOUND    (1u << 1)
#define PYBPF_TSTATE_UNBOUND  (1u << 2)
#define PYBPF_TSTATE_GILSTATE (1u << 3)
/* It is attached now: its thread holds the GIL, or needs none. */
#define PYBPF_TSTATE_ACTIVE (1u << 4)

/*
 * From PyThreadState.context_ver, which counts the contexts entered and left, to datastack_top: context_ver, id,
 * datastack_chunk and datastack_top stand one after the other in 3.12 to 3.15 (Include/cpython/pystate.h), and 3.11 has
 * trace_info, of 48 bytes, after id.
 */
#define PYBPF_CONTEXT_VER      24
#define PYBPF_CONTEXT_VER_3_11 72

/*
 * Where asyncio's tasks are. From 3.14 on the module _asyncio gives the offsets (section .AsyncioDebug,
 * Py_AsyncioModuleDebugOffsets in Modules/_asynciomodule.c); from 3.7 to 3.13 user space has them in a table, and looks
 * for the module's dict {loop: task}. Offsets in bytes.
 */
struct pybpf_asyncio {
	__u64 current_tasks; /* address of the dict _asyncio._current_tasks (3.7 to 3.13); 0: not found (yet) */
	__u16 running_task;  /* _PyThreadStateImpl.asyncio_running_task (3.14+); 0: not known */
	/* Fields of TaskObj; those but name and coroutine are FutureObj's, too. */
	__u8 task_name; /* 0: tasks have no names (3.7) */
	__u8 task_coro;
	__u8 awaited_by;        /* 3.14+: one task or future, or a set of them */
	__u8 awaited_by_is_set; /* a char: whether it is a set */
	__u8 task_node;         /* 3.14+: TaskObj.task_node: next and previous of the list of tasks that it is in */
	__u8 loaded;            /* the process has the module */
	__u16 thread_tasks; /* _PyThreadStateImpl.asyncio_tasks_head: the list of the tasks that a thread has made */
	__u16 running_loop; /* _PyThreadStateImpl.asyncio_running_loop (3.14+); 0: not known */
	__u32 interp_tasks; /* PyInterpreterState.asyncio_tasks_head: of those whose threads have ended */
};
_Static_assert(sizeof(struct pybpf_asyncio) == 24, "pybpf_asyncio has no hidden padding");

/* One CPython in a process: a library or a program with its own interpreters, threads and types. */
struct pybpf_runtime {
	__u64 interp_head;    /* address of the variable that holds the first PyInterpreterState * */
	__u64 tstate_current; /* address of the variable that holds the GIL's owner (to 3.11), or 0 */
	__u64 code_type;      /* &PyCode_Type, or 0 */
	__u32 layout;         /* index into map layouts */
	__u32 refused;        /* the memory of one of several contradicts its layout: it is not sampled */
	__u32 code_before;    /* the interpreter's machine code begins so many bytes before interp_head */
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
	__u32 nr_runtimes;
	__u32 state; /* enum pybpf_proc_state */
	__u32 told;  /* user space knows proc_id */
	__u32 pad;
};
_Static_assert(sizeof(struct pybpf_proc) == 296, "pybpf_proc has no hidden padding");

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
	__u32 kind;                   /* enum pybpf_file_kind */
	__u32 code_before, code_size; /* as in struct pybpf_runtime */
	struct pybpf_asyncio asyncio;
};

enum pybpf_file_kind {
	PYBPF_FILE_OTHER = 1, /* no Python, unless it loads one unexpectedly */
	PYBPF_FILE_PYTHON,    /* the interpreter is in the file: its processes are ready from their exec on */
	PYBPF_FILE_LOADS,     /* it is known to load a Python: undecided until it does */
};

enum pybpf_frame_kind {
	PYBPF_FRAME_PYTHON,
	PYBPF_FRAME_MARKER, /* stands for something that is not a function: code is an enum pybpf_marker */
};

enum pybpf_marker {
	PYBPF_MARKER_INTERPRETER = 1, /* callers in another interpreter follow */
};

/* One frame: 16 bytes, many of them cross to user space. */
struct pybpf_frame {
	union {
		struct {
			__u64 code : 56; /* address of the code object: user space ends below 2^56 */
			__u64 kind : 7;  /* enum pybpf_frame_kind */
			__u64 entry : 1; /* C code called it: it is the first of a run of the evaluation loop */
		};
		__u64 word; /* the three fields above as one word */
	};
	__u32 sig;      /* tells the code object from a later one at the same address (walk_code_signature) */
	__s32 position; /* f_lasti, or bytes from the code object's start to the instruction */
};
_Static_assert(sizeof(struct pybpf_frame) == 16, "pybpf_frame has no hidden padding");
#define PYBPF_FRAME_KIND(kind)   ((__u64)(kind) << 56)
#define PYBPF_FRAME_ENTRY(entry) ((__u64)(entry) << 63)

/* Bit of a signature that includes the code object's texts: user space computes the same signature. */
#define PYBPF_SIG_TEXTS 1u

/* Stands for a position that is not known: the frame is printed without a line. */
#define PYBPF_NO_POSITION (-0x7fffffff - 1)

/* Why a stack is not whole; bits of pybpf_stack_event.flags. */
enum pybpf_stack_flags {
	PYBPF_STACK_CUT = 1u << 0,        /* deeper than PYBPF_MAX_FRAMES: the middle is not kept */
	PYBPF_STACK_NO_ROOT = 1u << 1,    /* deeper than PYBPF_MAX_WALK: the root was not reached */
	PYBPF_STACK_FAULT = 1u << 2,      /* a frame or code object could not be read */
	PYBPF_STACK_NOT_CODE = 1u << 3,   /* a frame's executable was no code object: left out */
	PYBPF_STACK_CYCLE = 1u << 4,      /* the frame chain runs in a circle */
	PYBPF_STACK_NO_CALLERS = 1u << 5, /* callers in another thread state of the thread: their place is not known */
	PYBPF_STACK_OUTER = 1u << 6,      /* called from frames of another runtime, which are not kept */
	PYBPF_STACK_BESIDE = 1u << 7,     /* another runtime has frames, too, and it is not known which are inner */
	PYBPF_STACK_GC = 1u << 8,         /* a garbage collection runs, which the last frame set off */
};

enum pybpf_event_type {
	PYBPF_EVENT_STACK = 1,
	PYBPF_EVENT_CODE,
	PYBPF_EVENT_TIME,
	PYBPF_EVENT_WAIT,
	PYBPF_EVENT_TASKS,
	PYBPF_EVENT_THREAD,
	PYBPF_EVENT_INTERVAL,
	PYBPF_EVENT_WAKER,
	PYBPF_EVENT_MEMORY,
};

struct pybpf_event {
	__u16 type;   /* enum pybpf_event_type */
	__u8 runtime; /* runtime of the stack or code object: index into pybpf_proc.runtimes */
	__u8 sets;    /* sets in which its sample was counted, see PYBPF_SETS */
	__u32 size;   /* of the whole record */
};

/* Rights with which a thread opens files (struct cred): its user and group as numbered in the initial user namespace.
 */
struct pybpf_rights {
	__u32 fsuid, fsgid;
	__u64 capabilities; /* effective, in the thread's own user namespace */
};

/* What is counted in place of a stack, for samples without Python frames. */
struct pybpf_row {
	__u32 without; /* why there are no frames: enum pybpf_counter, of class WITHOUT; 0: there are frames */
	__u32 pad;
	char comm[16]; /* the thread's, in a row by thread name; else empty */
};

/* How a stack's record has an opcode. */
#define PYBPF_OPCODE(opcode) (1u + (opcode))
#define PYBPF_OPCODE_UNKNOWN 257u

/* Minor versions of Python 3 from INLINING_FIRST on whose frames may point into an inline cache. */
#define PYBPF_CACHES_FIRST    11u
#define PYBPF_CACHES_VERSIONS 2u
/* In place of the length of an inline cache: the bytecode alone does not tell it. */
#define PYBPF_CACHES_UNKNOWN 255

/* A stack that is seen for the first time; its kept frames (struct pybpf_frame) follow, leaf first, and then the
 * addresses
 * (__u64) of its functions in the kernel, leaf first. */
struct pybpf_stack_event {
	struct pybpf_event event;
	__u64 stack_id;
	__u64 proc_id;
	__u32 depth; /* Python frames on the thread; more than PYBPF_MAX_FRAMES are not kept, see walk_push */
	__u32 flags; /* enum pybpf_stack_flags */
	struct pybpf_rights rights;
	struct pybpf_row row;
	__u64 task_id; /* of the record of its asyncio tasks, which comes before; 0: none */
	/* Frames from the leaf to the one of the task's coroutine, both included; 0: the coroutine does not run. */
	__u32 task_depth;
	__u32 nr_kernel; /* addresses in the kernel, at most PYBPF_KERNEL_FRAMES */
	__u32 opcode;    /* that the last frame executes: PYBPF_OPCODE or PYBPF_OPCODE_UNKNOWN; 0: not asked for */
	__u32 pad;
};
_Static_assert(sizeof(struct pybpf_stack_event) == 96, "pybpf_stack_event has no hidden padding");

/* From the end of a type's PyObject_HEAD (struct _typeobject, Include/cpython/object.h, the same in 3.7 to 3.15). */
#define PYBPF_TYPE_NAME  8
#define PYBPF_TYPE_FLAGS 152
#define PYBPF_TYPE_BASE  240
/* Include/object.h */
#define PYBPF_TPFLAGS_HEAPTYPE         (1ULL << 9)
#define PYBPF_TPFLAGS_LONG_SUBCLASS    (1ULL << 24)
#define PYBPF_TPFLAGS_UNICODE_SUBCLASS (1ULL << 28)

/*
 * From the end of an int's PyObject_HEAD (struct _PyLongValue, Include/cpython/longintrepr.h of 3.12+): a tag, whose
 * two lowest bits are 0 for a positive number and that has the number of digits from bit 3 on, and digits of 30 bits.
 */
#define PYBPF_LONG_TAG    0
#define PYBPF_LONG_DIGITS 8
#define PYBPF_LONG_SIGN   3
#define PYBPF_DIGIT_BITS  30

/* Classes between that of an object and _asyncio's that are looked at. */
#define PYBPF_TASK_BASES 4

/* How the name of a task is written. */
enum pybpf_task_form {
	PYBPF_TASK_UNKNOWN, /* no task of _asyncio's, or not readable */
	PYBPF_TASK_NUMBER,  /* the name is Task-N, not written out yet: N, a 64-bit number */
	PYBPF_TASK_ASCII,   /* characters of a string object */
	PYBPF_TASK_LATIN1,
	PYBPF_TASK_UCS2,
	PYBPF_TASK_UCS4,
};

/* Bytes of a name that are kept. */
#define PYBPF_TASK_TEXT 64

struct pybpf_task_name {
	__u32 form; /* enum pybpf_task_form */
	__u32 size; /* bytes of the whole name */
	__u8 text[PYBPF_TASK_TEXT];
};

/* Most tasks of a chain. */
#define PYBPF_TASKS 8
/* Tasks and futures that are looked at: between a task and the one that awaits it, gather() has a future. */
#define PYBPF_TASK_STEPS (2 * PYBPF_TASKS)

enum pybpf_tasks_flags {
	PYBPF_TASKS_MORE = 1u << 0,    /* the chain is longer */
	PYBPF_TASKS_SEVERAL = 1u << 1, /* several tasks await the last one */
};

/* The running task, the task that awaits it, and so on; sent before each stack with such tasks. */
struct pybpf_task_event {
	struct pybpf_event event;
	__u64 task_id; /* a hash of all that follows */
	__u32 count;
	__u32 flags; /* enum pybpf_tasks_flags */
	struct pybpf_task_name tasks[PYBPF_TASKS];
};
_Static_assert(sizeof(struct pybpf_task_event) == 24 + PYBPF_TASKS * 72, "pybpf_task_event has no hidden padding");

/* The unit of a count. */
enum pybpf_kind {
	PYBPF_KIND_CPU,    /* samples of running threads, all of the same weight: the kind has no values */
	PYBPF_KIND_EVENTS, /* an event in a thread; the value is the number of events that the samples stand for */
};

/* Key of map counts. */
struct pybpf_count_key {
	__u64 stack_id;
	__u64 proc_id;
	__u32 tid; /* 0 if the thread is not told; so is the next */
	/* When the thread was started, ms since boot modulo 2^32: the process's next thread may get the same TID. */
	__u32 tid_start_ms;
	__u32 kind;    /* enum pybpf_kind */
	__u32 without; /* as in struct pybpf_row */
};
_Static_assert(sizeof(struct pybpf_count_key) == 32, "pybpf_count_key has no hidden padding");

/* Value of map counts. */
struct pybpf_count {
	__u64 count; /* number of samples */
	__u64 value; /* sum of the samples' values, in the kind's unit; 0 where the kind has no values */
};

/*
 * In a run without end, the map of counts, and the maps of the stacks and code objects that user space knows, exist
 * twice: samples use one set of each while user space takes and empties the other. One word names the sets in use, with
 * a set's number in each bit. The second set of known objects is a new generation: stacks and code objects are sent
 * anew, and those that are not met any more are forgotten.
 */
#define PYBPF_SETS               2
#define PYBPF_COUNTS_SET(sets)   ((sets)&1)
#define PYBPF_KNOWN_SET(sets)    ((sets) >> 1 & 1)
#define PYBPF_OTHER_COUNTS(sets) ((sets) ^ 1)
#define PYBPF_OTHER_KNOWN(sets)  ((sets) ^ 2)

/* One sample, where the times of samples are kept; it is in map counts as well. */
struct pybpf_time_event {
	struct pybpf_event event;
	__u64 time_ns; /* CLOCK_MONOTONIC */
	struct pybpf_count_key key;
};
_Static_assert(sizeof(struct pybpf_time_event) == 48, "pybpf_time_event has no hidden padding");

/* What happened to a range of a process's memory. Bounds that are inside of a page are rounded up. */
enum pybpf_memory_what {
	PYBPF_MEMORY_TOUCHED = 1, /* the page at start became resident and, with it, `bytes` of what is around it */
	PYBPF_MEMORY_POPULATED,   /* `bytes` became resident in the range; length 0: in that of the thread's next MAPPED
				   */
	PYBPF_MEMORY_MAPPED,      /* see POPULATED */
	PYBPF_MEMORY_GIVEN_BACK,
	PYBPF_MEMORY_MOVED, /* to target */
};

/*
 * One change of a process's resident memory. Records of a range are in the order of the changes: those of one that is
 * touched or given back are sent while the kernel holds the lock under which it changes the page tables.
 */
struct pybpf_memory_event {
	struct pybpf_event event;
	__u32 what; /* enum pybpf_memory_what */
	__u32 tid;
	__u64 start, length;
	union {
		__u64 bytes;
		__u64 target;
	};
	__u32 anonymous; /* TOUCHED: these are no pages of files, nor shared ones */
	__u32 pad;
	struct pybpf_count_key key; /* of who touched it; else only its proc_id is valid */
};
_Static_assert(sizeof(struct pybpf_memory_event) == 80, "pybpf_memory_event has no hidden padding");

/* Numbers of the system calls that change the memory of their process. */
struct pybpf_memory_calls {
	__s64 mmap, munmap, mremap, madvise, brk, mlock, mlock2;
};

/* Longest raw copy of each part of a code object that the kernel takes; the rest user space reads. */
#define PYBPF_COPY_STRING 1024
#define PYBPF_COPY_LINES  (32 << 10)

enum pybpf_code_part {
	PYBPF_CODE_NAME,  /* the string object, from its header on */
	PYBPF_CODE_FILE,  /* likewise */
	PYBPF_CODE_LINES, /* the line table's bytes, without header */
	PYBPF_CODE_PARTS,
};

#define PYBPF_SIZE_UNKNOWN 0xffffffff

/* A code object that is seen for the first time; what the kernel could copy of its parts follows, one by one. */
struct pybpf_code_event {
	struct pybpf_event event;
	__u64 code;
	__u64 proc_id;
	__u64 part_addr[PYBPF_CODE_PARTS]; /* the objects, for user space to read where copied < size */
	__u32 part_size[PYBPF_CODE_PARTS]; /* bytes that a whole copy has, or PYBPF_SIZE_UNKNOWN */
	__u32 part_copied[PYBPF_CODE_PARTS];
	__u32 sig;
	__s32 first_line;
};
_Static_assert(sizeof(struct pybpf_code_event) == 80, "pybpf_code_event has no hidden padding");

/* Key of map codes. */
struct pybpf_code_key {
	__u64 code;
	__u64 proc_id;
	__u32 sig;
	__u32 pad;
};
_Static_assert(sizeof(struct pybpf_code_key) == 24, "pybpf_code_key has no hidden padding");

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
	__u32 layout;     /* of PYBPF_FILE_PYTHON */
	__u64 proc_id;
	__u64 other_id;
	__u64 mm;                   /* as in struct pybpf_proc */
	__u64 start;                /* clock ticks since boot */
	__u64 cpu_ns;               /* PYBPF_PROCESS_EXITED: CPU time of its threads */
	struct pybpf_file_key file; /* the program's */
	__u32 kind;                 /* enum pybpf_file_kind, 0 where the kernel does not know the file */
	__u32 pad;
	char comm[16];
};
_Static_assert(sizeof(struct pybpf_process_event) == 112, "pybpf_process_event has no hidden padding");

/* Values of stack_id that are no stack's. */
enum pybpf_stack_id {
	/* Samples of an undecided process: user space finds out later whether they were of a Python. */
	PYBPF_STACK_ID_UNDECIDED,
	/* The rest is used for the time of threads only. */
	PYBPF_STACK_ID_EARLIER,        /* asleep since before the run: user space has read the stack, if anybody */
	PYBPF_STACK_ID_NEW,            /* a new thread that has not run yet */
	PYBPF_STACK_ID_NO_THREAD,      /* Python does not know the thread */
	PYBPF_STACK_ID_NO_FRAMES,      /* it is in no Python function */
	PYBPF_STACK_ID_NO_INTERPRETER, /* none runs, or the thread is ending */
	PYBPF_STACK_ID_UNREADABLE,
	PYBPF_STACK_ID_SHORT,       /* waits of a thread whose stack is not kept, in sum by state */
	PYBPF_STACK_ID_STACKS = 16, /* a stack's own id is this or more */
};

/* A filter's verdict on a user or a cgroup; values of maps users and cgroups. */
enum pybpf_filter {
	PYBPF_FILTER_INCLUDE = 1,
	PYBPF_FILTER_EXCLUDE,
};

/* Indices in map chain of the parts of the sampler, for kernels without bpf_loop. */
enum pybpf_chain {
	PYBPF_CHAIN_WALK,
	PYBPF_CHAIN_FINISH,
	PYBPF_CHAIN_PROGRAMS,
};

/* Key of map thread_names: a thread as struct pybpf_count_key has it. */
struct pybpf_thread_key {
	__u64 proc_id;
	__u32 tid;
	__u32 tid_start_ms;
};
_Static_assert(sizeof(struct pybpf_thread_key) == 16, "pybpf_thread_key has no hidden padding");

struct pybpf_thread_name {
	char comm[16];
};

/* A thread whose name the kernel side keeps from now on. */
struct pybpf_thread_event {
	struct pybpf_event event;
	struct pybpf_thread_key thread;
	__u64 thread_id; /* pthread_self() */
};
_Static_assert(sizeof(struct pybpf_thread_event) == 32, "pybpf_thread_event has no hidden padding");

/* Longest read of user memory, bytes. */
#define PYBPF_READ_MAX PYBPF_COPY_LINES
_Static_assert(PYBPF_COPY_STRING <= PYBPF_READ_MAX, "copies are read at once");

/* Key of map bounces: a trie's, all of whose bits count. */
struct pybpf_bounce_key {
	__u32 bits;
	__u32 cpu;
};
#define PYBPF_BOUNCE_KEY_BITS 32

/*
 * What becomes of a sample. Every sample that hits a wanted process is in exactly one of LOST, WITHOUT and PYTHON: LOST
 * ones have nothing to show, WITHOUT ones met no Python frame and are counted in a row of the profile (OTHER_PROGRAM:
 * in none), PYTHON is counted with its stack. INCOMPLETE ones are among the latter two. ASKED is the sum of all, which
 * user space makes. OTHER ones are left out because an option asks for threads in a state, and are in no sum; nor are
 * GIL ones, which are all that --mode=gil counts.
 * X(name, class, key in --json-stats, how people are told of it after a number of samples)
 */
#define PYBPF_COUNTERS(X)                                                                                              \
	X(ASKED, ASKED, "asked", "in the profiled processes")                                                          \
	X(NOT_READY, LOST, "not_ready", "taken before the interpreter was found")                                      \
	X(MISSED, LOST, "missed", "in processes that ended before they could be looked at")                            \
	X(NO_ROOM, LOST, "process_table_full", "in processes that found no room in the table (see --max-processes)")   \
	X(NO_SCRATCH, LOST, "no_scratch", "taken on a CPU that is not known")                                          \
	X(TABLE_FULL, LOST, "stack_table_full", "with a new stack when the table was full (see --max-stacks)")         \
	X(TABLE_BUSY, LOST, "stack_table_busy", "while another context held the stack table")                          \
	X(MEMORY_FULL, LOST, "memory_limit", "with a new stack when the memory was used up (see --max-memory)")        \
	X(UNREADABLE, LOST, "unreadable", "whose frames were being switched, or not readable")                         \
	X(NO_INTERPRETER, WITHOUT, "no_interpreter", "where no interpreter ran: starting or ended")                    \
	X(OTHER_PROGRAM, WITHOUT, "other_program", "in other programs, which are not in the profile")                  \
	X(NO_THREAD_STATE, WITHOUT, "no_thread_state", "on threads that Python does not know")                         \
	X(NO_FRAMES, WITHOUT, "no_frames", "on Python threads outside of any Python function")                         \
	X(PYTHON, PYTHON, "python", "with Python frames")                                                              \
	X(OTHER_STATE, OTHER, "other_state", "of threads that --gil or --mode=exception does not ask for")             \
	X(STATE_UNKNOWN, OTHER, "state_unknown",                                                                       \
	  "of Pythons that do not tell what --gil or --mode=exception asks for")                                       \
	X(CUT, INCOMPLETE, "cut", "deeper than 8,192 frames: leaf and root kept")                                      \
	X(NO_ROOT, INCOMPLETE, "no_root", "so deep that the root was not reached")                                     \
	X(FAULT, INCOMPLETE, "fault", "with a frame that could not be read")                                           \
	X(NOT_CODE, INCOMPLETE, "not_code", "with a frame that had no code object")                                    \
	X(CYCLE, INCOMPLETE, "cycle", "with a frame chain that ran in a circle")                                       \
	X(NO_CALLERS, INCOMPLETE, "no_callers", "whose callers in another interpreter could not be told")              \
	X(JIT, INCOMPLETE, "jit", "in code that Python's JIT compiled: the last function is shown without a line")     \
	X(COMPILED, INCOMPLETE, "compiled", "in code that Nuitka compiled: its functions are shown without a line")    \
	X(OUTER, INCOMPLETE, "other_python_outside", "called from another Python's functions, which are not shown")    \
	X(BESIDE, INCOMPLETE, "other_python_beside",                                                                   \
	  "in functions of two Pythons at once, of which one is shown: which of them ran is not known")                \
	X(UNTIMED, INCOMPLETE, "untimed",                                                                              \
	  "without their time: the ring buffer or the memory for times was full, or the process was not known yet")    \
	X(GIL_INTERPRETER, GIL, "interpreter", "in the interpreter, with the GIL")                                     \
	X(GIL_OTHER_CODE, GIL, "other_code", "in code of other files, with the GIL")                                   \
	X(GIL_UNKNOWN_CODE, GIL, "unknown_code", "in code that is not told from the interpreter's, with the GIL")      \
	X(GIL_KERNEL, GIL, "kernel", "in the kernel, with the GIL")

enum pybpf_counter {
#define X(name, class, key, text) PYBPF_COUNT_##name,
	PYBPF_COUNTERS(X)
#undef X
	PYBPF_NR_COUNTERS,
};

/* Value of map counters. */
struct pybpf_counters {
	__u64 value[PYBPF_NR_COUNTERS];
};

/*
 * Contexts in which programs run. On its own CPU a program may be interrupted by a program of another context, but
 * never of its own: so each context has its own counters and its own working memory.
 */
enum pybpf_context {
	PYBPF_CONTEXT_EVENT,  /* perf events and tracepoints of perf's: one at a time on a CPU (bpf_prog_active) */
	PYBPF_CONTEXT_SWITCH, /* the switch to another thread, with interrupts off */
	PYBPF_CONTEXTS,
};

#endif

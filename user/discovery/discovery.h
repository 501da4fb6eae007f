// SPDX-License-Identifier: Apache-2.0
/* Finds out whether a process runs CPython, which version it is, and where its runtime is. */
#ifndef DISCOVERY_H
#define DISCOVERY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "cpython/layout.h"
#include "base/procfs.h"

enum discovery_result {
	DISCOVERY_OK = 0,
	DISCOVERY_NOT_PYTHON,   /* no CPython in its mappings (so far) */
	DISCOVERY_UNMAPPED,     /* it maps no executable file, or its libraries in part: it is in exec or in its end */
	DISCOVERY_UNSUPPORTED,  /* a Python that is refused: *error says which and what was found */
	DISCOVERY_CONTRADICTED, /* a Python's memory and files differ (a loader may be at work) */
	DISCOVERY_GONE,         /* no such process, or it ended meanwhile */
	DISCOVERY_ZOMBIE,       /* it has ended and waits for its parent */
	DISCOVERY_DENIED,       /* not readable: *error says what is missing */
	DISCOVERY_PENDING,      /* only from discovery/ask.h: the answer is not there yet */
	DISCOVERY_LATER,        /* only from discovery/ask.h: it cost too much lately, see *error */
};

struct discovery_python {
	pid_t pid;
	uint64_t start_time; /* clock ticks since boot */
	char comm[64];
	struct layout_build build;
	struct pybpf_asyncio asyncio; /* loaded is 0: not loaded (yet) */
	int version_major, version_minor, version_micro;
	char version[32]; /* as the binary spells it: "3.11.2", "3.15.0a1" */
	bool debug_build, free_threaded;
	bool is_static;  /* the interpreter is in the executable itself */
	char path[4096]; /* the ELF file that holds the runtime, as the process sees it */
	uint64_t load_bias;
	uint64_t runtime_addr;           /* _PyRuntime (3.7+) or interp_head, in the process */
	uint64_t interp_head_addr;       /* address of the variable that holds the first PyInterpreterState * */
	uint64_t tstate_current_addr;    /* address of the variable that holds the GIL's owner (to 3.11), else 0
					  */
	uint64_t code_type_addr;         /* &PyCode_Type; 0: no symbol for it */
	uint64_t file_id;                /* identifies the file with the runtime, in its present state */
	struct procfs_map map;           /* that file's first executable mapping; path is "" */
	bool follows_file;               /* less the bias, the addresses are the same wherever the file is mapped */
	uint64_t code_start;             /* link-time address of that file's first executable segment */
	uint32_t code_before, code_size; /* of that mapping, as in struct pybpf_runtime */
	uint16_t thread_bias;            /* of the process's C library, as in struct pybpf_runtime */
	char version_source[64], runtime_source[64]; /* for -v: "Py_Version", ".dynsym _PyRuntime" */
};

/*
 * What is remembered of the files that processes map, so that a second process of a known binary costs no parsing, and
 * of their containers.
 */
struct discovery;

/* Returns NULL without memory. */
struct discovery *discovery_new(void);
void discovery_free(struct discovery *discovery);

/* What a mapped file says about its process. */
enum discovery_mapped {
	DISCOVERY_MAPPED_NOTHING,
	DISCOVERY_MAPPED_PYTHON,  /* it may be a Python */
	DISCOVERY_MAPPED_ASYNCIO, /* it uses asyncio */
};

/*
 * Analyses the file that is mapped at [start, end) of the process. *id: the value of discovery_python.file_id for the
 * file. Returns 0, or negative errno when the file cannot be opened (any more).
 */
int discovery_mapped_file(struct discovery *discovery, pid_t pid, uint64_t start, uint64_t end,
			  enum discovery_mapped *what, uint64_t *id);

/*
 * Finds every Python of the process, in all files that it maps, in one pass. *count is the number of them; out has the
 * first `room`. On DISCOVERY_OK *error is empty, or has a sentence about another Python of the process that is refused;
 * on any other result it has one sentence (what was tried, what was found, what to do). DISCOVERY_CONTRADICTED is about
 * one of the Pythons: the others are in out. An interpreter need not be initialised yet: everything is known from the
 * mapped files. Analysed files are remembered by device, inode, size and change time.
 */
enum discovery_result discovery_runtimes(struct discovery *discovery, pid_t pid, struct discovery_python *out,
					 size_t room, size_t *count, struct error *error);

/*
 * Checks that it can be known which asyncio task each thread of this version of Python runs. Returns 0, or -ENOTSUP
 * with one sentence in *error, which may be NULL.
 */
int discovery_check_tasks(const struct discovery_python *python, struct error *error);

/*
 * Warns of a Python that is newer than those known, and says what is left out of it: once for each version and kind of
 * build in the life of this process.
 */
void discovery_warn_newer(const struct discovery_python *python);

/* Returns whether the Python has an interpreter. True also when its memory cannot be read. */
bool discovery_is_running(const struct discovery_python *python);

/*
 * Checks that the layout fits the live process: interp_head's interpreter has a thread state that points back
 * to it, whose thread id is plausible. Returns 0; -EAGAIN when the interpreter is not initialised yet;
 * -EINVAL when memory contradicts the layout (*error says what); -ESRCH when the process has ended; -EPERM.
 */
int discovery_validate(const struct discovery_python *python, struct error *error);

/*
 * Between begin and end, a mapped file without a Python is not opened again for other processes that map it. This is
 * for one pass over many processes, which is too short for another file to get the same inode, path and size of
 * mapping.
 */
void discovery_memo_begin(struct discovery *discovery);
void discovery_memo_end(struct discovery *discovery);

#endif

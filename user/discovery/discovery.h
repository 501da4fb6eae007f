// SPDX-License-Identifier: Apache-2.0
/* Is this process a Python, which one, and where is its runtime? */
#ifndef DISCOVERY_H
#define DISCOVERY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "discovery/layout.h"
#include "base/procfs.h"

enum discovery_result {
	DISCOVERY_OK = 0,
	DISCOVERY_NOT_PYTHON,   /* no CPython in its mappings (yet: see discovery_process) */
	DISCOVERY_UNSUPPORTED,  /* a Python that is refused: *error says which and what was found */
	DISCOVERY_CONTRADICTED, /* a Python whose memory does not say what its files do (yet: a loader can be at work)
				 */
	DISCOVERY_GONE,         /* no such process, or it ended meanwhile */
	DISCOVERY_ZOMBIE,       /* it has ended and waits for its parent */
	DISCOVERY_DENIED,       /* not readable: *error says what is missing */
	DISCOVERY_PENDING,      /* by discovery_ask.h alone: the answer is not there yet */
	DISCOVERY_LATER,        /* likewise: its user's processes are not asked about now; *error has a sentence */
};

struct discovery_python {
	pid_t pid;
	uint64_t start_time; /* clock ticks since boot */
	char comm[64];
	struct layout_build build;
	int version_major, version_minor, version_micro;
	char version[32]; /* as the binary spells it: "3.11.2", "3.15.0a1" */
	bool debug_build, free_threaded;
	bool is_static;  /* the interpreter is in the executable itself */
	char path[4096]; /* the ELF file that holds the runtime, as the process sees it */
	uint64_t load_bias;
	uint64_t runtime_addr;        /* _PyRuntime (3.7+) or interp_head, in the process */
	uint64_t interp_head_addr;    /* address of the variable that holds the first PyInterpreterState * */
	uint64_t tstate_current_addr; /* address of the variable that holds the GIL's owner (to 3.11), else 0
				       */
	uint64_t code_type_addr;      /* &PyCode_Type, or 0 when no symbol tells */
	uint64_t file_id;             /* of the analysed file with the runtime, in its present state */
	struct procfs_map map;        /* that file's first executable mapping; path is "" */
	bool follows_file;            /* every process that maps the file has these addresses, but for the bias */
	uint64_t code_start;          /* where that file's first executable segment begins, as linked */
	char version_source[64], runtime_source[64]; /* for -v: "Py_Version", ".dynsym _PyRuntime" */
};

/*
 * Looks at the file that is mapped at [start, end) of the process: *python says whether its process may be a Python by
 * it, *id is what discovery_python.file_id would be. Returns 0, or negative errno where it can't be opened (any more).
 */
int discovery_mapped_file(pid_t pid, uint64_t start, uint64_t end, bool *python, uint64_t *id);

/*
 * Looks once for every Python of the process, in all of its files: *count says how many there are, of which out has the
 * first `room`. Not DISCOVERY_OK: one sentence in *error (what was tried, what was found, what to do); on DISCOVERY_OK
 * a sentence about a Python that is refused beside those, or none. DISCOVERY_CONTRADICTED is of one of them: the others
 * are in out. An interpreter need not be initialised yet: everything is known from the mapped files. Analysed files are
 * remembered by device, inode, size and change time, so a second process of a known binary costs no parsing.
 */
enum discovery_result discovery_runtimes(pid_t pid, struct discovery_python *out, size_t room, size_t *count,
					 struct error *error);

/* Has the Python an interpreter? One that cannot be read may have. */
bool discovery_is_running(const struct discovery_python *python);

/*
 * Checks that the layout fits the live process: interp_head's interpreter has a thread state that points back
 * to it, whose thread id is plausible. Returns 0; -EAGAIN when the interpreter is not initialised yet;
 * -EINVAL when memory contradicts the layout (*error says what); -ESRCH when the process has ended; -EPERM.
 */
int discovery_validate(const struct discovery_python *python, struct error *error);

/*
 * Between the two a mapped file that was found to be no Python is not opened again for other processes that map it: for
 * a look at many processes, which takes too short for another file to get its inode, path and size of mapping.
 */
void discovery_memo_begin(void);
void discovery_memo_end(void);

/* Forgets every remembered file. */
void discovery_free(void);

#endif

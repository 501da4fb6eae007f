// SPDX-License-Identifier: Apache-2.0
/*
 * Code objects by process and address: their names, files and lines. Processes end, and are forgotten; what is equal in
 * several of them is kept once.
 */
#ifndef SYMBOLS_PYSYM_H
#define SYMBOLS_PYSYM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "pybpf.h"

/* Which line a frame gets. */
enum pysym_line_mode {
	PYSYM_LINES_CURRENT, /* the one being executed */
	PYSYM_LINES_FIRST,   /* the function's first */
	PYSYM_LINES_NONE,
};

struct pysym;

struct pysym_frame {
	const char *name;   /* UTF-8; valid until the process is removed */
	const char *file;   /* as the options want it; "" when unknown; valid as long */
	const char *path;   /* the whole of it; valid as long */
	int32_t line;       /* -1 when unknown or not wanted */
	int32_t first_line; /* of the function; -1 when unknown */
	bool hidden;        /* not a function of the program: the interpreter's own trampoline */
	uint32_t *cookie; /* the caller's own, one for each function and position, UINT32_MAX at first: what is equal in
			     two processes has the same. Valid until the next pysym_resolve. */
};

/* Of all processes, those that were removed too. */
struct pysym_counters {
	uint64_t codes;    /* distinct code objects */
	uint64_t unnamed;  /* whose name could not be had */
	uint64_t no_lines; /* whose line table could not be had */
};

struct pysym *pysym_new(enum pysym_line_mode mode, bool full_filenames);

/*
 * From now on shown_at tells what pysym_shown_at does, which looks at file systems: one that does not answer keeps it
 * waiting for good.
 */
void pysym_look_at_paths_by(struct pysym *s, int (*shown_at)(pid_t pid, const char *path));
void pysym_free(struct pysym *s);

/* Makes a process known, with the layout of its first runtime. Returns 0 or -ENOMEM. */
int pysym_add_process(struct pysym *s, uint64_t proc_id, pid_t pid, const struct pybpf_layout *layout);
/* And the layout of another one; runtime: below PYBPF_MAX_RUNTIMES, as in pybpf_code_event. */
void pysym_add_runtime(struct pysym *s, uint64_t proc_id, uint32_t runtime, const struct pybpf_layout *layout);
bool pysym_has_process(const struct pysym *s, uint64_t proc_id);

/* Forgets a process and its code objects; one that is not known is none to forget. */
void pysym_remove_process(struct pysym *s, uint64_t proc_id);

/* Forgets the code objects of all processes, which stay known. */
void pysym_forget_codes(struct pysym *s);

/* Calls visit for each known code object of a process. */
void pysym_each_code(const struct pysym *s, uint64_t proc_id, void (*visit)(void *arg, uint64_t code, uint32_t sig),
		     void *arg);

/*
 * Takes what the kernel copied of a code object (size: of the whole record), and reads from the process at once what
 * it did not get. Returns 0; -EBADMSG for a record that contradicts itself; -ENOENT, keeping nothing, for one of a
 * process that is not known; -ENOMEM.
 */
int pysym_add_code(struct pysym *s, const struct pybpf_code_event *event, size_t size);

/*
 * Names a frame of a runtime. A code object that the kernel has not announced is read from the process. Returns 0;
 * -ENOENT when nothing is known of it or of the process; -ENOMEM.
 */
int pysym_resolve(struct pysym *s, uint64_t proc_id, uint32_t runtime, const struct pybpf_frame *frame,
		  struct pysym_frame *out);

const struct pysym_counters *pysym_get_counters(const struct pysym *s);
/*
 * Bytes of the path, a source file's as process pid sees it, that pysym_short_path cuts off. -ESRCH: its directories
 * cannot be looked at, for the process has ended.
 */
int pysym_shown_at(pid_t pid, const char *path);

/* Whether that depends on directories; else pysym_short_path with a root of NULL tells as much. */
bool pysym_path_needs_look(const char *path);

/*
 * Cuts a source path down to its importable part: what follows site-packages, dist-packages, lib/pythonX.Y or a zip
 * archive; else the packages (directories with __init__.py, looked for below root, a directory such as /proc/PID/root
 * or ""; not at all where root is NULL) that it is in, and its name. Returns a pointer into path. "<string>" and
 * relative paths stay.
 */
const char *pysym_short_path(const char *path, const char *root);

#endif

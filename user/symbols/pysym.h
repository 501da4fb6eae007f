// SPDX-License-Identifier: Apache-2.0
/*
 * Code objects by process and address: their names, files and lines. Processes end and are forgotten; content that is
 * equal in several of them is stored once.
 */
#ifndef SYMBOLS_PYSYM_H
#define SYMBOLS_PYSYM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "profile/profile.h"
#include "pybpf.h"
#include "symbols/lines.h"

/* Selects the line that a frame gets. */
enum pysym_line_mode {
	PYSYM_LINES_CURRENT, /* the line being executed */
	PYSYM_LINES_FIRST,   /* the function's first */
	PYSYM_LINES_NONE,
	PYSYM_EXPRESSIONS, /* as PYSYM_LINES_CURRENT, and where in it the expression is */
};

struct pysym;

/* What the directories of a process tell of the path of a source file. It has no padding. */
struct pysym_file {
	uint32_t shown;          /* offset of its importable part */
	uint32_t console_script; /* whether it is a program as console_script.h has them */
};

typedef int pysym_look(pid_t pid, const char *path, struct pysym_file *out);

struct pysym_frame {
	const char *name;       /* UTF-8; valid until the process is removed */
	const char *file;       /* as the options want it; "" when unknown; valid as long */
	const char *path;       /* the complete path; valid as long */
	int32_t line;           /* -1 when unknown or not wanted */
	int32_t first_line;     /* of the function; -1 when unknown */
	struct pysym_span span; /* with PYSYM_EXPRESSIONS */
	bool console_script;    /* the file is one, so that its module's code is a package's */
	bool hidden;            /* not a function of the program: the interpreter's own trampoline */
	uint32_t *cookie; /* the caller's number, one for each function and position, UINT32_MAX at first; equal ones in
			     two processes share it. Valid until the next pysym_resolve(). */
};

/* Counts over all processes, including those that were removed. */
struct pysym_counters {
	uint64_t codes;      /* distinct code objects */
	uint64_t unnamed;    /* code objects whose name could not be read */
	uint64_t no_lines;   /* code objects whose line table could not be read */
	uint64_t no_columns; /* with PYSYM_EXPRESSIONS: code objects whose line table has no columns */
};

struct pysym *pysym_new(enum pysym_line_mode mode, bool full_filenames);

/*
 * Sets the function that replaces pysym_look_at_path() from now on. That one accesses file systems: one that does not
 * answer would keep this process waiting forever.
 */
void pysym_look_at_paths_by(struct pysym *s, pysym_look *look);

/*
 * From now on what is missing of code objects is read, and their paths are looked at, for that long in sum, and then no
 * more: a process could make each of them costly. It is CPU time, of the helpers, too. What its caller does in between
 * does not count. Without it there is no such limit.
 */
void pysym_read_for(struct pysym *s, uint64_t time_ns);
void pysym_free(struct pysym *s);

/* Adds a process, with the layout of its first runtime. Returns 0 or -ENOMEM. */
int pysym_add_process(struct pysym *s, uint64_t proc_id, pid_t pid, const struct pybpf_layout *layout);
/* Adds the layout of another runtime of the process. runtime: below PYBPF_MAX_RUNTIMES, as in pybpf_code_event. */
void pysym_add_runtime(struct pysym *s, uint64_t proc_id, uint32_t runtime, const struct pybpf_layout *layout);
bool pysym_has_process(const struct pysym *s, uint64_t proc_id);
/* Returns the layout of a runtime, valid until the next change of processes; NULL for an unknown process. */
const struct pybpf_layout *pysym_layout(const struct pysym *s, uint64_t proc_id, uint32_t runtime);

/* Forgets a process and its code objects. Does nothing for an unknown process. */
void pysym_remove_process(struct pysym *s, uint64_t proc_id);

/* Forgets the code objects of all processes, which stay known. */
void pysym_forget_codes(struct pysym *s);

/* Calls visit for each known code object of a process. */
void pysym_each_code(const struct pysym *s, uint64_t proc_id, void (*visit)(void *arg, uint64_t code, uint32_t sig),
		     void *arg);

/*
 * Takes the part of a code object that the kernel copied (size: bytes of the whole record), and reads the missing parts
 * from the process at once. Returns 0; -EBADMSG for a record that contradicts itself; -ENOENT, keeping nothing, for an
 * unknown process; -ENOMEM.
 */
int pysym_add_code(struct pysym *s, const struct pybpf_code_event *event, size_t size);
/* The same for a record of pysym_record_code(): what it lacks could not be read from the process. */
int pysym_add_read_code(struct pysym *s, const struct pybpf_code_event *event, size_t size);

/*
 * Names a frame of a runtime. A code object that the kernel has not announced is read from the process. Returns 0;
 * -ENOENT when the code object cannot be read or the process is unknown; -ENOMEM.
 */
int pysym_resolve(struct pysym *s, uint64_t proc_id, uint32_t runtime, const struct pybpf_frame *frame,
		  struct pysym_frame *out);

/*
 * Reads the words of a frame's code object from the process (words.h). Returns them, which the caller frees, and the
 * bytes that they take; NULL when they cannot be read, or the time to read is over.
 */
char *pysym_read_words(struct pysym *s, uint64_t proc_id, uint32_t runtime, const struct pybpf_frame *frame,
		       size_t *size);

const struct pysym_counters *pysym_get_counters(const struct pysym *s);
/*
 * Fills *out with what the directories of process pid tell of the path of a source file. Returns 0, or -ESRCH when the
 * process has ended, so that they cannot be looked at.
 */
int pysym_look_at_path(pid_t pid, const char *path, struct pysym_file *out);

/*
 * Returns whether that depends on directories; if not, pysym_short_path() with a root of NULL gives the same result,
 * and the file is no console script.
 */
bool pysym_path_needs_look(const char *path);

/*
 * Cuts a source path down to its importable part: the rest after site-packages, dist-packages, lib/pythonX.Y or a zip
 * archive, whose name tells it or which is a file; otherwise the file's name with the packages that it is in
 * (directories with __init__.py). Both are looked for below root, a directory such as /proc/PID/root or ""; not if root
 * is NULL. Returns a pointer into path. "<string>" and relative paths stay.
 */
const char *pysym_short_path(const char *path, const char *root);

/*
 * Returns whose code is in a source file, by its complete path: of the standard library in lib/pythonX.Y, in its
 * archive, or frozen; of a package in site-packages, dist-packages, an egg or a wheel; else the program's own.
 */
enum profile_origin pysym_origin(const char *path);

#endif

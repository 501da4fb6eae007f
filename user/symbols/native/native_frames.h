// SPDX-License-Identifier: Apache-2.0
/*
 * Native frames of stacks: the files that they are in, the names of their functions, and where they stand between
 * Python's frames.
 */
#ifndef SYMBOLS_NATIVE_FRAMES_H
#define SYMBOLS_NATIVE_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/ask.h"
#include "native/lines.h"
#include "profile/profile.h"
#include "pybpf.h"

struct native_frames;

struct native_frames_options {
	bool all;        /* also show what the interpreter does to run Python's functions */
	bool lines;      /* lines are wanted, too, of what is shown */
	bool full_paths; /* of the sources that these are in */
};

/* Returns NULL without memory. */
struct native_frames *native_frames_new(const struct native_frames_options *options);
/* Accepts NULL. */
void native_frames_free(struct native_frames *t);

/* Adds a file, whose frames may come from now on. path: as it is mapped. Returns its number, or 0 without memory. */
uint32_t native_frames_add_file(struct native_frames *t, const char *path);
/* Returns the file's name without its folders, or "" where there is no such file. */
const char *native_frames_file_name(const struct native_frames *t, uint32_t file);

/* Says what the file is: whether it evaluates Python's frames, where its code is, and from where pcs are counted. */
void native_frames_describe_file(struct native_frames *t, uint32_t file, const struct native_file *about);

/*
 * Instructions whose names were asked for and are not there: fills pcs with at most max of one file, in order, and
 * *file. Returns their number; 0: there are none.
 */
uint32_t native_frames_wanted(const struct native_frames *t, uint32_t *file, uint32_t *pcs, uint32_t max);
/* Gives a name to an instruction; NULL, or an empty one, for one that has none. */
void native_frames_set_name(struct native_frames *t, uint32_t file, uint32_t pc, const struct native_name *name);
/*
 * Fills pcs with at most max instructions of a file that have names, in order, of which the first `skip` that were met
 * are left out. Returns their number.
 */
uint32_t native_frames_named(const struct native_frames *t, uint32_t file, uint32_t skip, uint32_t *pcs, uint32_t max);
/* Returns whether an instruction has this name, of a function that begins at the same address, or has none. */
bool native_frames_has_name(const struct native_frames *t, uint32_t file, uint32_t pc, const struct native_name *name);
/* Makes instructions without a name one with that at another pc, the first one of their row. */
void native_frames_set_row(struct native_frames *t, uint32_t file, uint32_t pc, uint32_t row);

/* As native_frames_wanted(), of instructions that have their names and want lines. */
uint32_t native_frames_want_lines(const struct native_frames *t, uint32_t *file, uint32_t *pcs, uint32_t max);
/* Returns the number of all instructions that want lines. */
uint32_t native_frames_count_without_lines(const struct native_frames *t);
/* Says what is at an instruction, as native_lines_find() does; count 0: nothing is known. Returns 0 or -ENOMEM. */
int native_frames_set_lines(struct native_frames *t, uint32_t file, uint32_t pc, const struct native_line *lines,
			    uint32_t count);

/* Notes which files have frames, of the stacks since the profile was forgotten the time before last. */
void native_frames_note_met(struct native_frames *t);
/* Returns whether the file had some then. */
bool native_frames_was_met(const struct native_frames *t, uint32_t file);

/*
 * Puts an instruction off that wants its name, or its lines: neither native_frames_wanted() nor
 * native_frames_want_lines() tells it until native_frames_resume() is called for its file, and its stacks wait.
 */
void native_frames_put_off(struct native_frames *t, uint32_t file, uint32_t pc);
/* Returns the file in which most instructions are put off, and their number in *count; 0: none is. */
uint32_t native_frames_most_put_off(const struct native_frames *t, uint32_t *count);
/* What is put off in the file is wanted again. */
void native_frames_resume(struct native_frames *t, uint32_t file);

/* Where the search for a process's native frames has ended because something was missing. */
struct native_gap {
	uint32_t file; /* in which a function has no call frame information; 0: a mapping or a table was missing */
	uint32_t pc;   /* in it: that of the frame */
	bool is_innermost;
};
typedef void native_frames_on_gap(void *arg, uint64_t proc_id, const struct native_gap *gap);
void native_frames_set_on_gap(struct native_frames *t, native_frames_on_gap *on_gap, void *arg);

/* The file may have frames, whether there were some or not: native_frames_forget_profile() keeps it. */
void native_frames_keep_file(struct native_frames *t, uint32_t file);
/*
 * The profile is another one now: frames have other numbers. What was not met since the one before is forgotten: names
 * of instructions, which are wanted again if they are met, and files that have not been kept either, twice in a row.
 */
void native_frames_forget_profile(struct native_frames *t);

/* How the native frames of a stack were joined with those of Python. */
enum native_join {
	NATIVE_JOIN_NONE,     /* there are none, or the search for them did not come to an end */
	NATIVE_JOIN_EXACT,    /* as many runs of the evaluation loop as Python's frames say */
	NATIVE_JOIN_PLUS_ONE, /* one more: the innermost one has no frame of Python's yet, or none any more */
	NATIVE_JOIN_OTHER,    /* another number: only what Python's last function called is shown */
	NATIVE_JOINS,
};

/* The native frames of one stack, while it is built from its root on. */
struct native_stack {
	const uint64_t *frames; /* leaf first */
	uint32_t count;
	uint32_t left; /* frames that are not in the stack yet */
	enum native_join join;
	enum pybpf_native_end end; /* PYBPF_NATIVE_END_SWITCH is found by names, and not by the kernel side */
};

/*
 * Begins with the native frames of a stack, which lie behind its record, and whose Python frames have this many
 * entries. Returns 0, or -ENOENT when names are missing, which are wanted from then on; last: what has no name by now
 * gets none. -ENOMEM.
 */
int native_frames_begin(struct native_frames *t, const struct pybpf_stack_event *event, const uint64_t *frames,
			uint32_t entries, bool last, struct native_stack *out);

/*
 * Puts on top of *stack what called the next run of the evaluation loop, and that run. To be called before each Python
 * frame that is an entry.
 */
int native_frames_push_run(struct native_frames *t, struct native_stack *native, struct profile *profile,
			   uint32_t *stack);
/* Puts the rest on top of *stack: what the last Python frame called, or, without one, all. */
int native_frames_push_rest(struct native_frames *t, struct native_stack *native, struct profile *profile,
			    uint32_t *stack);

#endif

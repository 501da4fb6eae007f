// SPDX-License-Identifier: Apache-2.0
/* Declarations shared by the edit_*.c files. */
#ifndef PROFILE_EDIT_INTERNAL_H
#define PROFILE_EDIT_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "profile/edit.h"
#include "profile/profile.h"

/*
 * Return the anonymized name or path: its parts, which dots or slashes separate, are hashed. The caller frees it. NULL:
 * no memory.
 */
char *edit_hidden_name(const struct profile_edit *edit, const char *name);
char *edit_hidden_path(const struct profile_edit *edit, const char *path);
/*
 * Likewise; hashed is what a wait is for: the part behind the colon in "[network: tcp 10.0.0.5:5432]", and the function
 * in "[GIL: held in compute]".
 */
char *edit_hidden_note(const struct profile_edit *edit, const char *note);
/* Returns the hash of a text without parts; kind is the letter before the hash. The empty text stays empty. */
char *edit_hidden(const struct profile_edit *edit, char kind, const char *text);

/* Returns whose a frame's file is in the copy. */
enum profile_origin edit_origin_of(const struct profile *p, const struct profile_frame *frame,
				   const struct profile_edit *edit);

/* Which filters the frames of a stack match, those of the stacks below it included. */
struct edit_match {
	uint64_t focus; /* a bit for each expression that matches a frame */
	bool ignore, under;
	bool hide; /* of its leaf alone */
};

/* The copying of one profile into another. Maps hold PROFILE_NONE for entries that were not copied. */
struct edit {
	struct profile *to;
	const struct profile *from;
	const struct profile_edit *edit;
	struct edit_match *matches; /* indexed by stack */
	uint32_t *frames, *stacks, *processes, *threads, *samples;
	bool *wanted; /* by stack: a sample that passes the filters needs it */
	bool *idle;   /* by stack: it waits for work, and is to be folded; NULL: none is */
};

/* edit_choose.c */

/* Returns whether the sample's stack is added up with others. */
bool edit_is_other(const struct edit *e, size_t sample);
/* Returns whether the stack waits for work and is folded into one row. */
bool edit_is_folded(const struct edit *e, uint32_t stack);
/* Returns whether the stack's leaf is the outermost frame after the frames below `under` were cut off. */
bool edit_is_first(const struct edit *e, uint32_t stack);
/* Chooses the samples that pass the filters, marks their stacks in e->wanted, and adds up the others in *left_out. */
void edit_choose_samples(struct edit *e, bool *passes, uint64_t *left_out);

/* edit_copy.c */

/* Copies the wanted stacks. A parent has a smaller index than its children. Returns 0 or -ENOMEM. */
int edit_copy_stacks(struct edit *e);
/* Copies the samples that pass, with their processes and threads. Returns 0 or -ENOMEM. */
int edit_copy_samples(struct edit *e, const bool *passes);
/* Copies the events of the samples. to_start: of the copy, as edit_start_of() tells it. Returns 0 or negative errno. */
int edit_copy_events(struct edit *e, uint64_t to_start);
/* Copies the sources of the files that have frames in the copy. Returns 0 or -ENOMEM. */
int edit_copy_sources(struct edit *e);
/* Returns the start of the run in nanoseconds since 1970; 0: unknown. */
uint64_t edit_start_of(const struct profile *p);

/* edit_match.c, edit_tasks.c and edit_run.c */

/*
 * Computes the matches of each stack of the profile, in a new array that the caller frees. Returns 0, or negative errno
 * with one sentence in *error.
 */
int edit_match_stacks(const struct profile *p, const struct profile_edit *edit, struct edit_match **matches,
		      struct error *error);
/*
 * Adds to the matches of each stack those of the tasks that await its task: what every sample matches in which such a
 * task awaits. Returns 0 or -ENOMEM.
 */
int edit_match_tasks(const struct profile *p, struct edit_match *of_stacks);
/* Compiles the regular expressions to find errors. Returns 0, or negative errno with one sentence in *error. */
int edit_check_patterns(const struct profile_edit *edit, struct error *error);

/*
 * Add the account and the facts of one profile to another; without_states: not the time of threads by state. Return 0
 * or negative errno.
 */
int edit_add_account(struct profile *to, const struct profile *from, bool without_states);
int edit_add_facts(struct profile *to, const struct profile *from, const struct profile_edit *edit);

#endif

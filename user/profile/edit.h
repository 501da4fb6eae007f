// SPDX-License-Identifier: Apache-2.0
/* Of one profile into another: to merge several, to leave out what is not wanted, to hide names. */
#ifndef PROFILE_EDIT_H
#define PROFILE_EDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "profile/profile.h"
#include "base/siphash.h"

/* How many regular expressions there can be in focus: one bit each. */
#define PROFILE_EDIT_FOCUS_MAX 64

struct profile_edit_texts {
	const char **items; /* not owned */
	size_t count, room;
};

struct profile_edit_pids {
	int32_t *items;
	size_t count, room;
};

/*
 * What is to pass, and as what; all zero: everything, as it is. Of each list that is not empty one must fit, but all of
 * focus. Free it with profile_edit_free.
 */
struct profile_edit {
	struct profile_edit_pids pids;        /* as the host sees them */
	struct profile_edit_texts threads;    /* TIDs, or globs of thread names */
	struct profile_edit_texts containers; /* globs of names, or beginnings of IDs */
	const char *under;                    /* glob of a qualname: that frame nearest to the root becomes the root */
	struct profile_edit_texts focus;      /* POSIX extended regular expressions: a frame must fit each of them */
	struct profile_edit_texts ignore;     /* and none of these; both see "qualname (file.py:LINE)" */
	bool merge_processes;                 /* those of one name and container become one, of no PID */
	bool no_sources;                      /* no source text */
	bool anonymize;            /* names become hashes; facts, other than numbers, and sources are dropped */
	uint8_t salt[SIPHASH_KEY]; /* of these hashes: profile_edit_check draws it */
};

/* Returns 0 or -ENOMEM. */
int profile_edit_add_pid(struct profile_edit_pids *pids, int32_t pid);
int profile_edit_add_text(struct profile_edit_texts *texts, const char *text);
void profile_edit_free(struct profile_edit *edit);

/*
 * To be called once, before profiles are added: reads the regular expressions on trial, and draws the salt when names
 * are to be hashed. Returns 0, or negative errno with one sentence in *error.
 */
int profile_edit_check(struct profile_edit *edit, struct error *error);

/*
 * Adds what the edit (NULL: everything) lets pass of one profile to another, which takes nothing of the rest: no name,
 * no source. Focus and ignore see the whole stack, whatever under cuts off.
 *
 * An empty profile takes the other's measure and roots. To one that is not, roots are added; and a measure that is not
 * the same is refused with -EINVAL: samples of one rate and of another are no sum of anything. The sentence in *error
 * calls the profiles "one" and "the other": the caller says which. -ENOMEM and -EOVERFLOW likewise.
 *
 * Account entries are added up, and what was left out becomes one. Facts that differ are joined with a comma; the start
 * is the earliest, durations are added up. Events are moved by the distance of the starts where both are known, and
 * else keep their times. Sources come along where a frame that passed has their file.
 *
 * Anonymized, the same name becomes the same hash in whatever is added with the same struct, and another one with
 * another. Kept are the structure, lines, PIDs, TIDs, times, notes, and of names the dots and slashes, ".py", and what
 * Python itself gives (<module>, <locals>, <lambda>...).
 */
int profile_edit_add(struct profile *to, const struct profile *from, const struct profile_edit *edit,
		     struct error *error);

#endif

// SPDX-License-Identifier: Apache-2.0
/* Of one profile into another: to merge several, to leave out what is not wanted, to hide names. */
#ifndef PROFILE_EDIT_H
#define PROFILE_EDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile.h"

/* Of the salt that names are hashed with. */
#define PROFILE_EDIT_SALT 16

struct profile_edit_texts {
	const char **items; /* not owned */
	size_t count;
};

struct profile_edit_pids {
	int32_t *items;
	size_t count;
};

/*
 * What is to pass, and as what; all zero: everything, as it is. Of each list that is not empty one must fit, but all of
 * focus. Free it with profile_edit_free.
 */
struct profile_edit {
	struct profile_edit_pids pids;        /* as the host sees them */
	struct profile_edit_texts threads;    /* TIDs, or globs of thread names */
	struct profile_edit_texts containers; /* names, or beginnings of IDs */
	const char *under;                    /* glob of a qualname: that frame nearest to the root becomes the root */
	struct profile_edit_texts focus;      /* POSIX extended regular expressions: a frame must fit each of them */
	struct profile_edit_texts ignore;     /* and none of these; both see "qualname (file.py:LINE)" */
	bool merge_processes;                 /* those of one name and container become one, of no PID */
	bool no_threads;                      /* samples of all threads of a process together */
	bool no_sources;                      /* no source text */
	bool anonymize;                  /* names become hashes; facts, other than numbers, and sources are dropped */
	uint8_t salt[PROFILE_EDIT_SALT]; /* of these hashes: profile_edit_check draws it */
};

/* Returns 0 or -ENOMEM. */
int profile_edit_add_pid(struct profile_edit_pids *pids, int32_t pid);
int profile_edit_add_text(struct profile_edit_texts *texts, const char *text);
void profile_edit_free(struct profile_edit *edit);

/*
 * To be called once, before profiles are added: reads the regular expressions on trial, and draws the salt when names
 * are to be hashed. Returns 0, or negative errno with one sentence in why.
 */
int profile_edit_check(struct profile_edit *edit, char *why, size_t why_size);

/*
 * Adds what the edit (NULL: everything) lets pass of one profile to another, which takes nothing of the rest: no name,
 * no source. An empty profile takes the other's measure and roots; else the roots are joined, and a measure that is not
 * the same gives -EINVAL with the end of a sentence in why, "the first counts..., the second ..."; the caller says of
 * which. -ENOMEM likewise.
 *
 * Account entries are added up; samples that were left out are one of them. Facts that differ are both there, with a
 * comma between; the start is the earliest, durations are added up. Events keep their times, moved by the distance of
 * the starts where both are known. Sources come along where a frame has their file.
 *
 * Anonymized, the same name gives the same hash in every profile that has been added with the same struct, and never in
 * another. Kept are the structure, lines, PIDs, times, the names that Python itself gives (<module>, <lambda>), and
 * where paths have slashes.
 */
int profile_edit_add(struct profile *to, const struct profile *from, const struct profile_edit *edit, char *why,
		     size_t why_size);

#endif

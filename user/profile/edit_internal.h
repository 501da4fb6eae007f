// SPDX-License-Identifier: Apache-2.0
/* What the parts of editing share. */
#ifndef PROFILE_EDIT_INTERNAL_H
#define PROFILE_EDIT_INTERNAL_H

#include "base/error.h"
#include "profile/edit.h"

/* What a name or path becomes; both have their parts hashed, which dots or slashes part. Caller frees. NULL: no memory.
 */
char *edit_hidden_name(const struct profile_edit *edit, const char *name);
char *edit_hidden_path(const struct profile_edit *edit, const char *path);
/* One that has no parts; kind is the letter before its hash. The empty text stays empty. */
char *edit_hidden(const struct profile_edit *edit, char kind, const char *text);

/* What of a stack is wanted: what its frames are, for each stack of a profile and for it and all below. */
struct edit_match {
	uint64_t focus; /* a bit for each that a frame fits */
	bool ignore, under;
};

/*
 * For each stack of the profile, in a new array that the caller frees. Returns 0, or negative errno with one sentence
 * in *error.
 */
int edit_match_stacks(const struct profile *p, const struct profile_edit *edit, struct edit_match **matches,
		      struct error *error);
/* Reads the regular expressions on trial. Returns 0, or negative errno with one sentence in *error. */
int edit_check_patterns(const struct profile_edit *edit, struct error *error);

/* Adds account and facts of one to the other. Returns 0 or negative errno. */
int edit_add_account(struct profile *to, const struct profile *from);
int edit_add_facts(struct profile *to, const struct profile *from, const struct profile_edit *edit);

#endif

// SPDX-License-Identifier: Apache-2.0
/* Files for debuggers that are fetched after a run, for functions that have no name or no line without them. */
#ifndef SESSION_NATIVE_FETCH_H
#define SESSION_NATIVE_FETCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/intern.h"
#include "native/ask.h"

struct session;
struct session_native_account;
struct session_native_state;

struct native_fetching {
	struct intern files; /* struct fetched_file */
	bool is_over;        /* nothing is fetched any more */
	uint32_t current;    /* number of the file, as frames have it, whose file for debuggers is there; 0: none is */
	int refused;         /* negative errno of the helper that was to read that; 0: it could */
	uint64_t bytes;      /* of all */
};

void native_fetch_init(struct native_fetching *f);
void native_fetch_free(struct native_fetching *f);

/* Returns whether the file's file for debuggers may be fetched later: what is not known without is put off then. */
bool native_may_fetch(const struct session *s, uint32_t number);
/* Has what was fetched read in place of a file, if that is the one that is there. */
void native_fetch_set_source(const struct session *s, uint32_t number, struct native_source *source);

/*
 * Fetches the files that were put off, one after the other, has each read by work(s, seconds), which returns when there
 * is no more to do or the time is over, and forgets it.
 */
void native_fetch_files(struct session *s, void (*work)(struct session *s));

/* Adds to the account what was fetched. */
void native_tell_fetched(const struct session_native_state *n, struct session_native_account *out);

#endif

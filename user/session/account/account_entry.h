// SPDX-License-Identifier: Apache-2.0
/* A number of the account: where it is in struct session_account, and its key in the JSON. */
#ifndef SESSION_ACCOUNT_ENTRY_H
#define SESSION_ACCOUNT_ENTRY_H

#include <stdbool.h>
#include <stddef.h>

#include "session/session.h"

/* How a number is stored and written. */
enum session_entry_kind {
	SESSION_ENTRY_COUNT,    /* uint64_t */
	SESSION_ENTRY_RATE,     /* unsigned; 0: there is no timer */
	SESSION_ENTRY_EVENT,    /* what is counted: by the timer, or in place of time */
	SESSION_ENTRY_PERIOD,   /* uint64_t; 0: there is a timer */
	SESSION_ENTRY_SECONDS,  /* uint64_t in ns */
	SESSION_ENTRY_FRACTION, /* double; negative: not known */
};

struct session_entry {
	const char *object; /* its object in the JSON; "": the outermost one; NULL: not in the JSON */
	const char *key;    /* NULL: behind the last entry */
	bool in_epochs;     /* session_account_since() has it: a count or a time; counters[] are in any epoch */
	enum session_entry_kind kind;
	size_t offset;
	/* In the profile's account, whose groups output_account_group() prints as lines; NULL: not in it. */
	const char *group, *text;
	const char *fact; /* key of the profile's fact; NULL: not a fact */
};

#define SESSION_ENTRY_AT(field) .offset = offsetof(struct session_account, field)
#define SESSION_COUNT(field)    .kind = SESSION_ENTRY_COUNT, SESSION_ENTRY_AT(field)
#define SESSION_SECONDS(field)  .kind = SESSION_ENTRY_SECONDS, SESSION_ENTRY_AT(field)
/* Numbers that epochs have. */
#define SESSION_EPOCH_COUNT(field)   .in_epochs = true, SESSION_COUNT(field)
#define SESSION_EPOCH_SECONDS(field) .in_epochs = true, SESSION_SECONDS(field)
#define SESSION_FRACTION(field)      .kind = SESSION_ENTRY_FRACTION, SESSION_ENTRY_AT(field)

#endif

// SPDX-License-Identifier: Apache-2.0
/* Callbacks that blocked their event loops, by place: --async. */
#ifndef SESSION_BLOCKS_H
#define SESSION_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/intern.h"
#include "session/blocks_account.h"

struct session;
struct session_due;

struct session_blocks {
	struct intern places; /* by frame of the profile */
	struct intern tasks;  /* of each place */
};

void session_blocks_init(struct session_blocks *b);
void session_blocks_free(struct session_blocks *b);

/*
 * Takes the callbacks of the processes that are due, unless options.loop_block_ns is 0. At the end of the run those of
 * threads that are asleep lasted until then. Returns 0 or negative errno.
 */
int session_blocks_settle(struct session *s, const struct session_due *due);

/* Puts the places into the account. */
void session_blocks_tell(const struct session *s, struct session_blocks_account *account);
/* Empties the names that were listed. */
void session_blocks_hide(struct session_blocks_account *account);
void session_blocks_print(const struct session_blocks_account *account, FILE *out);
/* Writes the member "loop_blocks" of the account's JSON, with a comma before it; null if they were not looked for. */
void session_blocks_json(const struct session_blocks_account *account, FILE *out);

#endif

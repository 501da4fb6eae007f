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
struct session_measure;

struct session_blocks {
	struct intern places; /* by frame of the profile */
	struct intern tasks;  /* of each place */
};

/* Empties the names that were listed. */
void session_blocks_hide(struct session_blocks_account *account);
void session_blocks_print(const struct session_blocks_account *account, FILE *out);
/* Writes the member "loop_blocks" of the account's JSON, with a comma before it; null if they were not looked for. */
void session_blocks_json(const struct session_blocks_account *account, FILE *out);

extern const struct session_measure session_blocks_measure;

#endif

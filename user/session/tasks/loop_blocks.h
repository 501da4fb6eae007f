// SPDX-License-Identifier: Apache-2.0
/* Callbacks that blocked their event loops, by place: --async. */
#ifndef SESSION_LOOP_BLOCKS_H
#define SESSION_LOOP_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/intern.h"
#include "session/tasks/loop_blocks_account.h"

struct session;
struct session_measure;

struct session_loop_blocks {
	struct intern places; /* by frame of the profile */
	struct intern tasks;  /* of each place */
};

extern const struct session_measure session_loop_blocks_measure;

#endif

// SPDX-License-Identifier: Apache-2.0
/* For the end of which thread another one waits, in threading.Thread.join(). */
#ifndef DUMP_JOIN_H
#define DUMP_JOIN_H

#include <stdint.h>

#include "symbols/objects/py_value.h"
#include "symbols/walk/walk_user.h"

/*
 * Returns pthread_self() of the thread that one with this stack joins, if it sleeps for a lock; 0: none. *frames: how
 * many of the innermost functions that takes.
 */
uint64_t dump_join_read(struct py_values *v, const struct py_values_of *of, const struct walk_stack *stack,
			uint32_t *frames);

#endif

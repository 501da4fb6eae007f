// SPDX-License-Identifier: Apache-2.0
/* What a thread waits for, in words. */
#ifndef SESSION_WAIT_NAME_H
#define SESSION_WAIT_NAME_H

#include <stddef.h>

#include "pybpf_wait.h"

struct task_read;

/* Longest text, with its NUL. */
#define SESSION_WAIT_NAME 192

/* Returns the name of a state, such as "waiting for a CPU". */
const char *session_state_name(enum pybpf_state state);

/* Makes a name of this many bytes the text of a wait, which has none yet; one that is too long is cut in its middle. */
void session_set_wait_text(struct pybpf_wait *wait, const char *name, size_t size);

/* Writes the leaf of a stack that waits: "[network: tcp 10.0.0.5:5432]", "[disk: read app.db]", "[lock]". */
void session_name_wait(const struct pybpf_wait *wait, char *out, size_t size);

/* Returns what a suspended task awaits, which the caller frees, or NULL without memory: "tcp 10.0.0.5:5432", "Future".
 */
char *session_name_awaited(const struct task_read *task);

#endif

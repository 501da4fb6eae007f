// SPDX-License-Identifier: Apache-2.0
/* --as: which user a command runs as. */
#ifndef CLI_AS_H
#define CLI_AS_H

#include <stdbool.h>

#include "rights/caller.h"

/*
 * Finds the user: text is a name, a UID with an account, or "caller". Fills *as, which the caller frees. Returns 0, or
 * an exit code after one sentence on stderr.
 */
int cli_as_find(struct caller *as, const char *text);

/* Warns that the command runs as root, if another user called sudo. */
void cli_as_tell_root(void);

#endif

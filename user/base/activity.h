// SPDX-License-Identifier: Apache-2.0
/* What a process is opening right now, for another process that may have to kill it. */
#ifndef BASE_ACTIVITY_H
#define BASE_ACTIVITY_H

#include <stddef.h>

/* From now on activities are written to that memory, of so many bytes. */
void activity_show(char *where, size_t size);
/* Notes a path, or "" for nothing; does nothing where no memory was given. */
void activity_set(const char *path);

#endif

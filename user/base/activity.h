// SPDX-License-Identifier: Apache-2.0
/* Tells another process, which may have to kill this one, what this process is opening. */
#ifndef BASE_ACTIVITY_H
#define BASE_ACTIVITY_H

#include <stddef.h>

/* Sets the memory, of size bytes, to which activity_set() writes from now on. */
void activity_show(char *where, size_t size);
/* Writes a path, or "" for nothing, to that memory. Does nothing without it. */
void activity_set(const char *path);

#endif

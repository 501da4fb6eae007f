// SPDX-License-Identifier: Apache-2.0
/* The functions of the program's own, among those of libraries. */
#ifndef PROFILE_APPLICATION_FRAMES_H
#define PROFILE_APPLICATION_FRAMES_H

#include "profile/edit.h"
#include "profile/profile.h"

/*
 * Looks for a function of the program's own, from the one that runs or waits towards the root, and returns for each
 * stack that of the first. Without one it is that of the first function of an installed package, else of the standard
 * library, else the stack that runs or waits: PROFILE_ROOT for a wait without functions. The caller frees the array.
 * NULL: no memory.
 */
uint32_t *profile_nearest_own(const struct profile *p);

/* Returns whether a file is one of these paths, or in a folder that is. Only the file's name is looked at. */
bool profile_is_in(const struct profile_edit_texts *paths, const char *file);

#endif

// SPDX-License-Identifier: Apache-2.0
/* A place in a program, in words. */
#ifndef SESSION_PLACE_NAME_H
#define SESSION_PLACE_NAME_H

#include <stddef.h>
#include <stdint.h>

struct profile;

/* Writes "function (file:line)" of the profile's frame of that index, or what of it is known. */
void session_name_place(const struct profile *profile, uint32_t index, char *out, size_t size);

#endif

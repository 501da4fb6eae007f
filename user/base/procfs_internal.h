// SPDX-License-Identifier: Apache-2.0
/* What the parsers of /proc share. */
#ifndef BASE_PROCFS_INTERNAL_H
#define BASE_PROCFS_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Parses a number of digits in base and stops at the first other character; false if there is none, or it overflows.
 */
bool procfs_parse_number(char **text, int base, uint64_t *out);
/* Skips the character; false if it is not there. */
bool procfs_skip(char **text, char expected);

#endif

// SPDX-License-Identifier: Apache-2.0
/* The text of expressions, of profiles that have columns and sources. */
#ifndef OUTPUT_EXPRESSION_H
#define OUTPUT_EXPRESSION_H

#include "profile/profile.h"

/*
 * Returns the first line of the expression at a place in a file, as text_printable() has it; the caller frees it. "":
 * its columns or the source are not known, or no expression can be there, since the text is not the one that ran. NULL:
 * no memory.
 */
char *output_expression(const struct profile *p, uint32_t file, const struct profile_place *place);

#endif

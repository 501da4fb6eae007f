// SPDX-License-Identifier: Apache-2.0
/* Texts of other programs, which can hold any byte, for a terminal and for JSON. */
#ifndef TEXT_H
#define TEXT_H

#include <stddef.h>
#include <stdio.h>

/*
 * A copy, which the caller frees, with control characters (C1's, too) and bytes that are no UTF-8 as \xNN; NULL without
 * memory.
 */
char *text_printable(const char *text);
/* How many columns printable UTF-8 takes, one for each code point. */
size_t text_width(const char *text);
/* How many bytes of it fill at most that many columns. */
size_t text_fit(const char *text, size_t width);
/* Writes a JSON string with its quotes; bytes that are no UTF-8 as U+FFFD, and < > & as \uNNNN: it may stand in HTML.
 */
void text_json(const char *text, FILE *out);

#endif

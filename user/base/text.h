// SPDX-License-Identifier: Apache-2.0
/* Texts of other programs, which can hold any byte, for a terminal, for JSON and for XML. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/*
 * Bytes of the character that the text, which is not empty, begins with: one where it is no UTF-8. *plain: it is UTF-8,
 * no control character (C1's count, too), separates no lines, does not change the direction of what is around it, and
 * takes room where it stands.
 */
size_t text_character(const char *text, bool *plain);

/* A copy, which the caller frees, with the bytes of what is not plain as \xNN; NULL without memory. */
char *text_printable(const char *text);
/* Writes the same. Takes no memory. */
void text_print(const char *text, FILE *out);
/* How many columns printable UTF-8 takes, one for each code point. */
size_t text_width(const char *text);
/* How many bytes of it fill at most that many columns. */
size_t text_fit(const char *text, size_t width);
/*
 * Writes a JSON string with its quotes; bytes that are no UTF-8 as U+FFFD, and < > & and what is not plain as \uNNNN
 * (above U+FFFF as two of them): it may stand in HTML, and is one line to everybody.
 */
void text_json(const char *text, FILE *out);

/*
 * Writes what whole characters there are in that many bytes as text of XML 1.0, in an element or in an attribute; what
 * is not plain (see text_character), or no character of XML, as U+FFFD.
 */
void text_xml(const char *text, size_t size, FILE *out);

#endif

// SPDX-License-Identifier: Apache-2.0
/* Escapes texts of other programs, which can hold any byte, for a terminal, for JSON and for XML. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Returns the bytes of the character that the non-empty text begins with, 1 if it is not UTF-8. *plain: it is UTF-8,
 * not a control character (C1's included), does not separate lines, does not change the direction of text around it,
 * and has a width.
 */
size_t text_character(const char *text, bool *plain);

/* Return the ending of a plural: "1 stack", "2 stacks"; "1 process", "2 processes". */
const char *text_s(uint64_t n);
const char *text_es(uint64_t n);
/* Returns the part of a path behind the last slash. */
const char *text_base_name(const char *path);

/*
 * Returns a copy, which the caller frees, with the bytes of characters that are not plain as \xNN; NULL without memory.
 */
char *text_printable(const char *text);
/* As text_printable(), but writes to out and takes no memory. */
void text_print(const char *text, FILE *out);
/*
 * Likewise, but writes as many characters as have room, without a NUL. *size: the bytes written. Returns the rest of
 * the text.
 */
const char *text_put(const char *text, char *out, size_t room, size_t *size);
/* Returns the columns that printable UTF-8 takes on a terminal: two for a wide character of East Asia, else one. */
size_t text_width(const char *text);
/* Returns the bytes of the character that printable, not empty UTF-8 begins with. *columns: those that it takes. */
size_t text_measure(const char *text, size_t *columns);
/* Returns the bytes of the text's beginning that fill at most that many columns. */
size_t text_fit(const char *text, size_t width);
/* Stands for what is left out of a text: in ASCII, as the width of U+2026 depends on the terminal. */
#define TEXT_ELLIPSIS "..."
/*
 * Returns a copy of printable UTF-8, which the caller frees, of at most that many columns: of a longer text the
 * beginning and the end, with TEXT_ELLIPSIS between. NULL without memory.
 */
char *text_shorten(const char *text, size_t width);
/* As text_shorten(), but keeps of a longer text the end only: for paths. */
char *text_keep_end(const char *text, size_t width);
/*
 * Writes printable text and a line feed, broken at blanks, a long word anywhere, so that no line is longer than width
 * (0: any). The text begins at column `at`; further lines begin at `indent`.
 */
void text_wrap(const char *text, size_t at, size_t indent, size_t width, FILE *out);
/*
 * Writes a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD; < > & and characters that are not plain
 * become \uNNNN (two of them above U+FFFF). The result may be part of HTML, and is one line to every reader.
 */
void text_json(const char *text, FILE *out);
/* As text_json(), but not for HTML: < > & stand for themselves, and a backslash is \u005c. */
void text_json_bare(const char *text, FILE *out);

/*
 * Writes the whole characters in size bytes as text of XML 1.0, for an element or an attribute. Characters that are not
 * plain (see text_character), or not XML's, become U+FFFD.
 */
void text_xml(const char *text, size_t size, FILE *out);

#endif

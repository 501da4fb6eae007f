// SPDX-License-Identifier: Apache-2.0
/*
 * A writer of JSON that places commas and quotes, and keeps nothing in memory. key is the name of an object's member,
 * or NULL for an element of an array and for the outermost value. ferror() of the stream tells failures.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
	FILE *out;
	bool follows; /* a value precedes the next one, so a comma goes between */
	bool bare;    /* not for HTML: see text_json_bare() */
};

void json_begin_object(struct json *j, const char *key);
void json_end_object(struct json *j);
void json_begin_array(struct json *j, const char *key);
void json_end_array(struct json *j);
/*
 * Writes a string of any bytes: invalid UTF-8 becomes U+FFFD, and < > & are escaped so that the text may be part of
 * HTML, unless it is bare.
 */
/*
 * The linker's name of json_string() and of json_null() differs from that of jansson's functions, whose own calls would
 * lead here otherwise.
 */
void json_string(struct json *j, const char *key, const char *text) __asm__("json_write_string");
void json_uint(struct json *j, const char *key, uint64_t number);
void json_int(struct json *j, const char *key, int64_t number);
/* Writes number / 10^places exactly; places: at most 19. */
void json_decimal(struct json *j, const char *key, uint64_t number, unsigned places);
/* Writes a number; NaN and infinity, which JSON lacks, become null. */
void json_double(struct json *j, const char *key, double number);
/* Writes a value that is JSON already. */
void json_raw(struct json *j, const char *key, const char *value);
void json_bool(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key) __asm__("json_write_null");
/* Ends a line of JSON Lines; the next value is an outermost one. */
void json_line(struct json *j);

#endif

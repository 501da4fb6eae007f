// SPDX-License-Identifier: Apache-2.0
/*
 * A writer of JSON that keeps commas and quotes right, and nothing in memory. Keys are for members of objects, and NULL
 * for elements of arrays and for the outermost value. What fails shows in ferror() of the stream.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
	FILE *out;
	bool follows; /* a value stands before the next one: a comma goes between */
};

void json_begin_object(struct json *j, const char *key);
void json_end_object(struct json *j);
void json_begin_array(struct json *j, const char *key);
void json_end_array(struct json *j);
/* Any bytes: those that are no UTF-8 become U+FFFD, and < > & are escaped so that the text may stand in HTML. */
/* The linker's name is another than jansson's json_string, which is linked statically; so is json_null's. */
void json_string(struct json *j, const char *key, const char *text) __asm__("json_write_string");
void json_uint(struct json *j, const char *key, uint64_t number);
void json_int(struct json *j, const char *key, int64_t number);
/* number / 10^places, exactly; places: at most 19. */
void json_decimal(struct json *j, const char *key, uint64_t number, unsigned places);
/* What JSON has no word for (NaN, infinity) becomes null. */
void json_double(struct json *j, const char *key, double number);
/* A value that another writer of JSON has written. */
void json_raw(struct json *j, const char *key, const char *value);
void json_bool(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key) __asm__("json_write_null");
/* Ends a line of JSON Lines: what comes next begins anew. */
void json_line(struct json *j);

#endif

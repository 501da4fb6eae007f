// SPDX-License-Identifier: Apache-2.0
/* Profiles made by hand, and helpers that run a writer on them. */
#ifndef PROFILES_H
#define PROFILES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "output/output.h"
#include "profile/profile.h"

static inline struct profile *new_profile(void)
{
	struct profile *p = profile_new();

	assert_non_null(p);
	return p;
}

static inline uint32_t process(struct profile *p, int pid, const char *name)
{
	uint32_t i = profile_add_process(p, &(struct profile_process_info){.pid = pid, .name = name});

	assert_int_not_equal(i, PROFILE_NONE);
	return i;
}

/* The stack with a Python frame on top of another. */
static inline uint32_t on(struct profile *p, uint32_t stack, const char *name, const char *file, int line)
{
	uint32_t s =
		profile_add_stack(p, stack, profile_add_frame(p, PROFILE_PYTHON, name, file, line, PROFILE_NO_LINE));

	assert_int_not_equal(s, PROFILE_NONE);
	return s;
}

/* Likewise, in an expression of the line that ends on end_line. */
static inline uint32_t on_expression(struct profile *p, uint32_t stack, const char *name, struct profile_place place)
{
	uint32_t s = profile_add_stack(p, stack, profile_add_python(p, name, "app.py", &place));

	assert_int_not_equal(s, PROFILE_NONE);
	return s;
}

/* Likewise, a function of compiled code. */
static inline uint32_t on_native(struct profile *p, uint32_t stack, const char *name, const char *file)
{
	uint32_t s = profile_add_stack(
		p, stack, profile_add_frame(p, PROFILE_NATIVE, name, file, PROFILE_NO_LINE, PROFILE_NO_LINE));

	assert_int_not_equal(s, PROFILE_NONE);
	return s;
}

static inline void take_in(struct profile *p, uint32_t stack, uint32_t owner, uint64_t value)
{
	assert_int_equal(profile_add_sample(p, stack, owner, PROFILE_NONE, value), 0);
}

/* Returns the bytes that a writer writes for a profile, and their number in *size; the caller frees them. */
static inline char *written_bytes(const struct profile *p,
				  int (*write)(const struct profile *, const struct output_options *, FILE *),
				  const struct output_options *options, size_t *size)
{
	char *bytes = NULL;
	FILE *out = open_memstream(&bytes, size);

	assert_non_null(out);
	assert_int_equal(write(p, options, out), 0);
	assert_int_equal(fclose(out), 0);
	return bytes;
}

/* Returns the text that a writer writes for a profile; the caller frees it. */
static inline char *written(const struct profile *p,
			    int (*write)(const struct profile *, const struct output_options *, FILE *))
{
	size_t size;
	char *text = written_bytes(p, write, &(struct output_options){0}, &size);

	assert_int_equal(strlen(text), size);
	return text;
}

static inline void assert_folded(const struct profile *p, const char *want)
{
	char *text = written(p, output_folded);

	assert_string_equal(text, want);
	free(text);
}

#endif

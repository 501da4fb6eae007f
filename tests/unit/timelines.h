// SPDX-License-Identifier: Apache-2.0
/* Profiles with times, made by hand, and helpers that parse the JSON written for them. */
#ifndef TIMELINES_H
#define TIMELINES_H

#include <jansson.h>

#include "profiles.h"

#define MS 1000000ull

/* One more sample of that stack, at that time. */
static inline void tick(struct profile *p, uint64_t time_ms, uint32_t stack, uint32_t owner, uint32_t thread)
{
	assert_int_equal(profile_add_sample(p, stack, owner, thread, 1), 0);
	assert_int_equal(profile_add_event(p, time_ms * MS, profile_find_sample(p, stack, owner, thread), 1), 0);
}

static inline void measure_cpu(struct profile *p)
{
	assert_int_equal(profile_set_measure(p, &(struct profile_measure){"samples", "count", 10 * MS}), 0);
}

/*
 * Two threads at 100 Hz. main: main -> f at 0 ms, main -> f -> g at 10 and 20, main -> h at 31 (a timer is not exact),
 * nothing until main -> f at 100. Then, of the other: run -> w at 5 and 15. Events are not in order.
 */
static inline struct profile *timeline(void)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 42, "python3");
	uint32_t one = profile_add_thread(p, owner, 42, "python3"), two = profile_add_thread(p, owner, 43, "worker");
	uint32_t root = on(p, PROFILE_ROOT, "main", "app.py", 10);
	uint32_t f = on(p, root, "f", "app.py", 3), g = on(p, f, "g", "lib.py", 7), h = on(p, root, "h", "app.py", 20);
	uint32_t w = on(p, on(p, PROFILE_ROOT, "run", "threading.py", 5), "w", "app.py", 30);

	measure_cpu(p);
	tick(p, 100, f, owner, one);
	tick(p, 15, w, owner, two);
	tick(p, 0, f, owner, one);
	tick(p, 10, g, owner, one);
	tick(p, 20, g, owner, one);
	tick(p, 31, h, owner, one);
	tick(p, 5, w, owner, two);
	return p;
}

/* Each name that could end something it should not. */
static inline struct profile *hostile(void)
{
	static const char *const names[] = {
		"<script>alert(1)</script>",
		"]]><!--\"'&amp;",
		"a;b c (d) {e}\n\tf\r\x1b[31m",
		"\xff\xfe\xc3(\xed\xa0\x80",
		"\xe2\x80\xae(evil)\xe2\x80\xac",
		"\xef\xbf\xbe\xef\xbf\xbf\xc2\x85",
		"",
		" ",
		"\\x3b\\",
	};
	struct profile *p = new_profile();

	measure_cpu(p);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct profile_process_info info = {.pid = 7, .name = names[i], .container = names[i]};
		uint32_t owner = profile_add_process(p, &info);
		uint32_t thread = profile_add_thread(p, owner, 7 + (int)i, names[i]);
		uint32_t stack = on(p, on(p, PROFILE_ROOT, names[i], names[i], 1), names[i], "", PROFILE_NO_LINE);

		tick(p, i, stack, owner, thread);
		tick(p, 100 - i, stack, owner, thread);
	}
	assert_int_equal(profile_set_fact(p, PROFILE_FACT_HOST, names[1]), 0);
	assert_int_equal(profile_set_fact(p, PROFILE_FACT_EVENT, names[2]), 0);
	return p;
}

/* Returns the output of a writer, parsed; it must be one JSON value. */
static inline json_t *parsed(const struct profile *p,
			     int (*write)(const struct profile *, const struct output_options *, FILE *))
{
	char *text = written(p, write);
	json_error_t why;
	json_t *json = json_loads(text, 0, &why);

	if (!json)
		print_error("%s at %d of %.4000s\n", why.text, why.position, text);
	assert_non_null(json);
	free(text);
	return json;
}

/* The member of an object, which must be there. */
static inline json_t *member(const json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);

	if (!value)
		print_error("there is no %s\n", key);
	assert_non_null(value);
	return value;
}

static inline const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(member(object, key));

	assert_non_null(text);
	return text;
}

static inline json_int_t number_of(const json_t *object, const char *key)
{
	json_t *value = member(object, key);

	assert_true(json_is_integer(value));
	return json_integer_value(value);
}

#endif

// SPDX-License-Identifier: Apache-2.0
/* Profiles that are made to harm their writers: names that no program should have, and nothing at all. */
#ifndef PROFILES_HOSTILE_H
#define PROFILES_HOSTILE_H

#include "profiles.h"

#define HOSTILE_LONG 100000

/* Quotes, markup, control characters, what is no UTF-8, what turns text around, what looks like a format's own words.
 */
static const char *const hostile_names[] = {
	"\"'`\\",
	"</script><script>alert(1)</script>&amp;",
	"line\nbreak\r\n\ttab",
	"\x01\x1b[31m\x7f",
	"\xff\xfe\xc0\x80\xed\xa0\x80\xe2\x82",
	"\xff",
	"\\xff",
	"\xc2\x85\xc2\x9b",
	/* NOLINTNEXTLINE(misc-misleading-bidirectional): that it misleads is its use. */
	"\xe2\x80\xaegnp.yp\xe2\x80\xac\xe2\x81\xa6\xd8\x9c",
	"\xe2\x80\xa8\xe2\x80\xa9",
	"a;b (c.py:1) 7",
	"(1)",
	"fn=(2) x",
	"calls=1 1",
	" ",
	"",
	"na\xc3\xafve \xf0\x9f\x90\x8d",
	"%s%n%d",
};

#define NR_HOSTILE (sizeof(hostile_names) / sizeof(*hostile_names))

/*
 * Every name as function, file, process, thread and container, in stacks of the one before it on top; the sample of
 * name i has the value 1 << i. A very long name comes last.
 */
static inline struct profile *hostile_profile(void)
{
	struct profile *p = new_profile();
	char *long_name = malloc(HOSTILE_LONG + 1);
	uint32_t stack = PROFILE_ROOT;

	memset(long_name, 'x', HOSTILE_LONG);
	long_name[HOSTILE_LONG] = '\0';
	for (size_t i = 0; i <= NR_HOSTILE; i++) {
		const char *name = i == NR_HOSTILE ? long_name : hostile_names[i];
		struct profile_process_info info = {.pid = (int)i + 1, .name = name, .container = name};
		uint32_t owner = profile_add_process(p, &info);
		uint32_t thread = profile_add_thread(p, owner, (int)i + 1, name);

		stack = on(p, stack, name, name, (int)i + 1);
		assert_int_equal(profile_add_sample(p, stack, owner, thread, 1ULL << i), 0);
		assert_int_equal(profile_add_account(p, name, name, name, i), 0);
		assert_int_equal(profile_set_fact(p, name, name), 0);
	}
	free(long_name);
	return p;
}

#endif

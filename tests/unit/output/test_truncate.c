// SPDX-License-Identifier: Apache-2.0
/* Names and places in the width of a terminal. */
#include "output/truncate.h"
#include "profiles.h"
#include "base/text.h"

/* "name (place)", of which both are shortened; width 0: whole. */
static char *truncated(const char *name, const char *place, size_t width)
{
	char *own_name = output_escaped_copy(name), *own_place = output_escaped_copy(place), *text = NULL;

	assert_true(own_name && own_place);
	if (width)
		assert_int_equal(output_truncate(&own_name, &own_place, strlen(" ()"), width), 0);
	assert_true(asprintf(&text, *own_place ? "%s (%s)" : "%s", own_name, own_place) > 0);
	free(own_name);
	free(own_place);
	return text;
}

static void assert_truncated(const char *name, const char *place, size_t width, const char *want)
{
	char *text = truncated(name, place, width);

	assert_string_equal(text, want);
	free(text);
}

static void test_frames(void **unused)
{
	(void)unused;
	assert_truncated("Server.run", "app/server.py:12", 0, "Server.run (app/server.py:12)");
	assert_truncated("Server.run", "app/server.py:12", 29, "Server.run (app/server.py:12)");
	assert_truncated("Server.run", "app/server.py:12", 28, "Server.run (...server.py:12)");
	assert_truncated("Server.run", "app/server.py:12", 24, "Server.run (...er.py:12)");
	assert_truncated("Server.run", "app/server.py:12", 18, "Server.run (...12)");
	/* From here on both give way. */
	assert_truncated("Server.run", "app/server.py:12", 14, "Ser...un (...)");
	assert_truncated("Server.run", "", 9, "Ser...run");
	assert_truncated("run", "server.py", 14, "run (...er.py)");
	/* A short place leaves its room to the name. */
	assert_truncated("Server.handle.<locals>.answer", "a.py:1", 26, "Server.....answer (a.py:1)");
}

static void assert_function_truncated(const char *name, const char *file, size_t width, const char *want)
{
	struct profile *p = new_profile();
	struct profile_groups groups;
	size_t size;
	char *text = NULL;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	on(p, PROFILE_ROOT, name, file, 1);
	assert_int_equal(profile_groups_make(&groups, p, PROFILE_BY_FUNCTION), 0);
	assert_int_equal(output_group_truncated(p, profile_group_at(&groups, 0), false, width, out), 0);
	assert_int_equal(fclose(out), 0);
	assert_string_equal(text, want);
	free(text);
	profile_groups_free(&groups);
	profile_free(p);
}

/* In a table of functions the file gives way to the name, and not to a row that says little of both. */
static void test_functions(void **unused)
{
	(void)unused;
	assert_function_truncated("Server.handle_request", "app/server.py", 37,
				  "Server.handle_request (app/server.py)\n");
	assert_function_truncated("Server.handle_request", "app/server.py", 34, "Server.handle_request (...rver.py)\n");
	assert_function_truncated("Server.handle_request", "app/server.py", 33, "Server.handle_request\n");
	assert_function_truncated("Server.handle_request", "app/server.py", 20, "Server.ha..._request\n");
	assert_function_truncated("Server.handle_request.<locals>.answer_the_client", "app/server.py", 40,
				  "Server.handl...r_the_client (...rver.py)\n");
}

/* Whatever the name and the place are, and however narrow it is, a frame is never wider. */
static void test_never_wider(void **unused)
{
	static const char *const texts[] = {"f", "Server.run", "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e", "a;b\\c\nd\xff"};
	static char long_name[4001];
	const char *all[] = {texts[0], texts[1], texts[2], texts[3], long_name};

	(void)unused;
	memset(long_name, 'x', sizeof(long_name) - 1);
	for (size_t i = 0; i < 25; i++) {
		const char *name = all[i / 5], *place = all[i % 5];
		char *whole = truncated(name, place, 0);

		for (size_t width = 10; width < 300; width++) {
			char *text = truncated(name, place, width);

			assert_true(text_width(text) <= width);
			/* It is shortened only where it has to be, and then fills the width but for a wide character.
			 */
			if (text_width(whole) <= width)
				assert_string_equal(text, whole);
			else
				assert_true(text_width(text) + 3 >= width);
			free(text);
		}
		free(whole);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_functions),
		cmocka_unit_test(test_never_wider),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* Mistyped words, and durations. */
#include "cli/suggestions.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "cli/cli.h"

static const char *const options[] = {"pid",      "children",   "all",     "container", "cgroup",
				      "duration", "freq",       "rate",    "threads",   "max-memory",
				      "quiet",    "json-stats", "verbose", "lines",     "max-stacks"};
static const char *const functions[] = {"Server.run", "Server.handle", "Handler.handle", "parse", "main"};

static const char *ask(const char *word, const char *const *candidates, size_t count)
{
	static char text[256];
	struct cli_suggestions suggestions;

	cli_suggestions_begin(&suggestions, word);
	for (size_t i = 0; i < count; i++)
		cli_suggestions_try(&suggestions, candidates[i]);
	return cli_suggestions_text(&suggestions, "--", text, sizeof(text));
}

#define ASK(word, candidates) ask(word, candidates, sizeof(candidates) / sizeof(*(candidates)))

static void test_slips(void **state)
{
	(void)state;
	assert_string_equal(ASK("pids", options), "; did you mean --pid?");
	assert_string_equal(ASK("PID", options), "; did you mean --pid?");
	/* Swapped, missing, wrong and surplus letters. */
	assert_string_equal(ASK("threasd", options), "; did you mean --threads?");
	assert_string_equal(ASK("duraton", options), "; did you mean --duration?");
	assert_string_equal(ASK("verbase", options), "; did you mean --verbose?");
	assert_string_equal(ASK("quieet", options), "; did you mean --quiet?");
	/* Part of some. */
	assert_string_equal(ASK("max", options), "; did you mean --max-memory or --max-stacks?");
}

static void test_other_words(void **state)
{
	char longest[1000];

	(void)state;
	assert_string_equal(ASK("idle", options), "");
	assert_string_equal(ASK("x", options), "");
	assert_string_equal(ASK("", options), "");
	memset(longest, 'p', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_string_equal(ASK(longest, options), "");
}

static void test_the_nearest_are_asked_for(void **state)
{
	static const char *const many[] = {"abcdefgh1234", "abcdefgh", "abcdefghi",
					   "abcdefghij",   "abcdefgx", "abcdefgh"};

	(void)state;
	assert_string_equal(ASK("abcdefgh", many), "; did you mean --abcdefgh, --abcdefghi or --abcdefgx?");
}

static void test_functions_by_their_last_part(void **state)
{
	(void)state;
	assert_string_equal(ASK("handle", functions), "; did you mean --Server.handle or --Handler.handle?");
	assert_string_equal(ASK("hanlde", functions), "; did you mean --Server.handle or --Handler.handle?");
	assert_string_equal(ASK("Server.rum", functions), "; did you mean --Server.run?");
}

static void test_a_long_question_is_cut(void **state)
{
	static const char *const twins[] = {"aaaaaaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaaaaab", "aaaaaaaaaaaaaaaaaaac"};
	struct cli_suggestions suggestions;
	char text[24];

	(void)state;
	cli_suggestions_begin(&suggestions, twins[0]);
	for (size_t i = 0; i < 3; i++)
		cli_suggestions_try(&suggestions, twins[i]);
	assert_int_equal(strlen(cli_suggestions_text(&suggestions, "", text, sizeof(text))), sizeof(text) - 1);
}

static void test_durations(void **state)
{
	static const struct {
		const char *text;
		double seconds;
	} good[] = {{"30", 30},    {"0.5", 0.5},    {".5", 0.5}, {"1m", 60},      {"500ms", 0.5},      {"2h", 7200},
		    {"1d", 86400}, {"1.5m", 90},    {"10s", 10}, {"1m30s", 90},   {"1h1m1s", 3661},    {"2min", 120},
		    {"30sec", 30}, {"0.001", 1e-3}, {"0", 0},    {"500us", 5e-4}, {"1ms500us", 1.5e-3}};
	static const char *const bad[] = {"",
					  "m",
					  "1x",
					  "5 m",
					  " 5",
					  "-1",
					  "+1",
					  "nan",
					  "inf",
					  "1e3",
					  "1m30",
					  "1.2.3",
					  "1ms2",
					  "30 s",
					  "1M",
					  "0x10",
					  "unlimited",
					  "1,5",
					  "9999999999999999999999999999999999s"};
	double seconds;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_int_equal(cli_duration(good[i].text, &seconds), 0);
		assert_true(fabs(seconds - good[i].seconds) < 1e-12);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_not_equal(cli_duration(bad[i], &seconds), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slips),
		cmocka_unit_test(test_other_words),
		cmocka_unit_test(test_the_nearest_are_asked_for),
		cmocka_unit_test(test_functions_by_their_last_part),
		cmocka_unit_test(test_a_long_question_is_cut),
		cmocka_unit_test(test_durations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

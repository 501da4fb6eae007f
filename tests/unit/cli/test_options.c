// SPDX-License-Identifier: Apache-2.0
/* A made-up command's options: what is taken, what is refused, what --help says. */
#include "cli/options.h"

#include <getopt.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/host.h"
#include "base/log.h"

enum colour {
	GREEN = 7,
	BLUE = 9,
};

struct kitchen {
	bool hot;
	int loud;
	const char *cook;
	enum colour colour;
	uint64_t plates;
};

static const struct cli_word colours[] = {{"green", GREEN}, {"red", 8}, {"blue", BLUE}, {0}};

static int take_plates(const struct cli_option *option, const char *value, void *target)
{
	struct kitchen *kitchen = target;

	return cli_option_whole(option, value, 1, 12, &kitchen->plates);
}

static void list_plates(void)
{
	cli_print_entry("        soup", 14, "a deep one");
}

static const struct cli_option kitchen_options[] = {
	{"hot", 'H', NULL, "with fire", .take = cli_take_flag, .offset = offsetof(struct kitchen, hot)},
	{"loud", 'l', NULL, "more noise", .take = cli_take_count, .offset = offsetof(struct kitchen, loud)},
	{"cook", 'c', "NAME", "who cooks", .take = cli_take_text, .offset = offsetof(struct kitchen, cook)},
	{"chef", .value = "NAME", .take = cli_take_text, .offset = offsetof(struct kitchen, cook)},
	{0},
};

static const struct cli_option table_options[] = {
	{"colour", 0, "COLOUR",
	 "of the table cloth, which is one of those that are in the cupboard behind the door of the cellar",
	 .take = cli_take_word, .offset = offsetof(struct kitchen, colour), .words = colours},
	{"plates-and-bowls-of-clay", 'p', "NUMBER", "on the table", .list = list_plates, .take = take_plates},
	CLI_OPTION_HELP,
	{0},
};

static const struct cli_other_tool other_tools[] = {
	{"raw", 'r', "everything is cooked here"},
	{"", 'q', "it is never quiet"},
	{0},
};

static const struct cli_example examples[] = {
	{"kitchen --hot", "soup"},
	{"kitchen --cook=Ann -p 3", "lunch"},
	{0},
};

static char said[256]; /* the last sentence */

static void hear(enum log_level level, const char *text)
{
	(void)level;
	snprintf(said, sizeof(said), "%s", text);
}

#define WORDS_MAX 16

static char operands[64]; /* in a row, each in brackets */

static int take_operand(const char *operand, void *target)
{
	(void)target;
	snprintf(operands + strlen(operands), sizeof(operands) - strlen(operands), "[%s]", operand);
	return 0;
}

/* Parses the words; *end is the first operand. */
static int parse_words(struct kitchen *kitchen, bool command_follows, bool *helped, int *end, const char *const *words)
{
	const struct cli_option_group groups[] = {
		{"The kitchen", kitchen_options, kitchen},
		{"The table", table_options, kitchen},
		{0},
	};
	const struct cli_options command = {
		.command = "kitchen",
		.about = "kitchen makes meals.",
		.examples = examples,
		.usage = "  kitchen [options]\n",
		.groups = groups,
		.notes = "One line.\nAnother line.",
		.other_tools = other_tools,
		.command_follows = command_follows,
	};
	char *argv[WORDS_MAX] = {"kitchen"};
	int argc = 1, code;

	for (; words[argc - 1]; argc++)
		argv[argc] = (char *)words[argc - 1];
	*said = '\0';
	log_set_sink(hear);
	code = cli_options_parse(&command, argc, argv, helped);
	log_set_sink(NULL);
	*end = optind;
	return code;
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_values_are_taken(void **state)
{
	struct kitchen k = {0};
	bool helped;
	int end;

	(void)state;
	assert_int_equal(parse_words(&k, true, &helped, &end,
				     WORDS("-lH", "--cook", "Ann", "--colour=blue", "-p12", "--loud", "rest", "--hot")),
			 0);
	assert_false(helped);
	assert_true(k.hot);
	assert_int_equal(k.loud, 2);
	assert_string_equal(k.cook, "Ann");
	assert_int_equal(k.colour, BLUE);
	assert_int_equal(k.plates, 12);
	assert_int_equal(end, 7);
	assert_string_equal(said, "");
}

static void test_the_last_value_counts(void **state)
{
	struct kitchen k = {0};
	bool helped;
	int end;

	(void)state;
	assert_int_equal(parse_words(&k, true, &helped, &end,
				     WORDS("-c", "Ann", "--chef", "Ben", "--colour", "blue", "--colour", "green")),
			 0);
	assert_string_equal(k.cook, "Ben");
	assert_int_equal(k.colour, GREEN);
	assert_false(k.hot);
}

static void test_an_unambiguous_beginning_is_enough(void **state)
{
	struct kitchen k = {0};
	bool helped;
	int end;

	(void)state;
	assert_int_equal(parse_words(&k, true, &helped, &end, WORDS("--col=green", "--che=Ben", "--ho")), 0);
	assert_int_equal(k.colour, GREEN);
	assert_string_equal(k.cook, "Ben");
	assert_true(k.hot);
	/* --cook, --colour. */
	assert_int_equal(parse_words(&k, true, &helped, &end, WORDS("--co=green")), 2);
	assert_string_equal(said, "--co may be any of --cook, --colour");
}

static void test_options_behind_an_operand(void **state)
{
	struct kitchen k = {0};
	bool helped;
	int end;

	(void)state;
	assert_int_equal(parse_words(&k, true, &helped, &end, WORDS("soup", "--hot", "-Z")), 0);
	assert_int_equal(end, 1);
	assert_false(k.hot);
	assert_int_equal(parse_words(&k, false, &helped, &end, WORDS("soup", "--hot", "--", "-Z")), 0);
	assert_int_equal(end, 3);
	assert_true(k.hot);
}

/* Operands may come between options; behind -- all are. */
static void test_operands(void **state)
{
	struct kitchen k = {0};
	const struct cli_option_group groups[] = {{"The kitchen", kitchen_options, &k}, {0}};
	const struct cli_options command = {.command = "kitchen", .groups = groups, .take_operand = take_operand};
	char *argv[] = {"kitchen", "soup", "--hot", "tea", "--", "-l", "--cook", NULL};
	bool helped;

	(void)state;
	*operands = '\0';
	assert_int_equal(cli_options_parse(&command, 7, argv, &helped), 0);
	assert_true(k.hot);
	assert_int_equal(k.loud, 0);
	assert_string_equal(operands, "[soup][tea][-l][--cook]");
}

/* The kernel's highest rate is taken, and none above it. */
static void test_rates(void **state)
{
	const struct cli_option option = {.name = "freq", .letter = 'F'};
	int64_t limit = host_max_sample_rate();
	char value[32];
	unsigned rate = 0;

	(void)state;
	assert_true(limit >= 1 && limit < UINT32_MAX);
	log_set_sink(hear);
	snprintf(value, sizeof(value), "%lld", (long long)limit);
	assert_int_equal(cli_option_rate(&option, value, &rate), 0);
	assert_int_equal(rate, limit);
	snprintf(value, sizeof(value), "%lld", (long long)limit + 1);
	assert_int_equal(cli_option_rate(&option, value, &rate), 2);
	assert_non_null(strstr(said, "above this kernel's limit"));
	log_set_sink(NULL);
	assert_int_equal(rate, limit);
}

static void test_wrong_ones_are_refused(void **state)
{
	static const struct {
		const char *words[4], *sentence;
	} cases[] = {
		{{"--cold"}, "unknown option --cold; see `kitchen --help`"},
		{{"-Z"}, "unknown option -Z; see `kitchen --help`"},
		{{"--kook", "Ann"}, "unknown option --kook; did you mean --cook? See `kitchen --help`"},
		{{"--raw=3"}, "unknown option --raw; everything is cooked here"},
		{{"-lrH"}, "unknown option -r; everything is cooked here"},
		{{"-q"}, "unknown option -q; it is never quiet"},
		{{"--colour", "gren"}, "--colour gren: it takes green, red or blue; did you mean green?"},
		{{"-lZH"}, "unknown option -Z; see `kitchen --help`"},
		{{"--hot=3"}, "--hot takes no value"},
		{{"-H", "-c"}, "-c needs a value; see `kitchen --help`"},
		{{"--cook"}, "--cook needs a value; see `kitchen --help`"},
		{{"--colour", "pink"}, "--colour pink: it takes green, red or blue"},
		{{"--colour="}, "--colour : it takes green, red or blue"},
		{{"-p", "0"}, "-p 0: it takes a whole number from 1 to 12"},
		{{"-p", "13"}, "-p 13: it takes a whole number from 1 to 12"},
		{{"-p", "1.5"}, "-p 1.5: it takes a whole number from 1 to 12"},
		{{"--plates", "two"}, "-p two: it takes a whole number from 1 to 12"},
		/* The first mistake is told, and help that is asked for behind it is not printed. */
		{{"-p", "x", "--colour=pink", "-h"}, "-p x: it takes a whole number from 1 to 12"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const char *words[5] = {0};
		struct kitchen k = {0};
		bool helped;
		int end;

		memcpy(words, cases[i].words, sizeof(cases[i].words));
		assert_int_equal(parse_words(&k, true, &helped, &end, words), 2);
		assert_string_equal(said, cases[i].sentence);
		assert_false(helped);
		assert_int_equal(k.plates, 0);
	}
}

static const char help[] = "kitchen makes meals.\n"
			   "\n"
			   "Examples:\n"
			   "  kitchen --hot            soup\n"
			   "  kitchen --cook=Ann -p 3  lunch\n"
			   "\n"
			   "Usage:\n"
			   "  kitchen [options]\n"
			   "\n"
			   "The kitchen:\n"
			   "  -H, --hot               with fire\n"
			   "  -l, --loud              more noise\n"
			   "  -c, --cook, --chef NAME\n"
			   "                          who cooks\n"
			   "\n"
			   "The table:\n"
			   "      --colour COLOUR     of the table cloth, which is one of those that are in\n"
			   "                          the cupboard behind the door of the cellar\n"
			   "  -p, --plates-and-bowls-of-clay NUMBER\n"
			   "                          on the table\n"
			   "        soup  a deep one\n"
			   "  -h, --help              print this text\n"
			   "\n"
			   "One line.\n"
			   "Another line.\n";

static void test_help_is_printed_from_the_table(void **state)
{
	char printed[4096] = "";
	FILE *out = tmpfile();
	struct kitchen k = {0};
	int end, code, before;
	bool helped;

	(void)state;
	assert_non_null(out);
	fflush(stdout);
	before = dup(STDOUT_FILENO);
	dup2(fileno(out), STDOUT_FILENO);
	code = parse_words(&k, true, &helped, &end, WORDS("--loud", "--help", "--cold"));
	fflush(stdout);
	dup2(before, STDOUT_FILENO);
	close(before);
	rewind(out);
	assert_true(fread(printed, 1, sizeof(printed) - 1, out) > 0);
	fclose(out);
	assert_int_equal(code, 0);
	assert_true(helped);
	assert_string_equal(said, "");
	assert_string_equal(printed, help);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values_are_taken),
		cmocka_unit_test(test_the_last_value_counts),
		cmocka_unit_test(test_an_unambiguous_beginning_is_enough),
		cmocka_unit_test(test_options_behind_an_operand),
		cmocka_unit_test(test_operands),
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_wrong_ones_are_refused),
		cmocka_unit_test(test_help_is_printed_from_the_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

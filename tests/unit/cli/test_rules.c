// SPDX-License-Identifier: Apache-2.0
/* Options that exclude each other or need another one: each rule of each command refuses what it says. */
#include "cli/rules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "cli/cli.h"

static const struct cli_rules *const commands[] = {
	&cli_record_rules, &cli_output_rules, &cli_receiver_rules, &cli_select_rules,
	&cli_dump_rules,   &cli_report_rules, &cli_agent_rules,    &cli_agent_push_rules,
};

static char said[512]; /* the last sentence */

static void hear(enum log_level level, const char *text)
{
	(void)level;
	snprintf(said, sizeof(said), "%s", text);
}

/* Names of a row, one after the other, in `name`. Returns whether there is one more. */
static bool next_name(const char **names, char name[64])
{
	size_t length = *names ? strcspn(*names, ",") : 0;

	if (!length)
		return false;
	assert_true(length < 64);
	snprintf(name, 64, "%.*s", (int)length, *names);
	*names += length;
	*names += strspn(*names, ", ");
	return true;
}

static const struct cli_choice *find_choice(const struct cli_rules *rules, const char *name)
{
	const struct cli_choice *c = rules->choices;

	while (c->name && strcmp(c->name, name) != 0)
		c++;
	if (!c->name)
		fail_msg("%s: a rule names %s, which is no choice", rules->command, name);
	assert_true(c->size > 0 && c->size <= sizeof(uint64_t) && c->offset + c->size <= rules->size);
	return c;
}

static void write_field(const struct cli_choice *c, void *options, uint64_t number)
{
	memcpy((char *)options + c->offset, &number, c->size);
}

static void choose(const struct cli_rules *rules, const char *name, void *options)
{
	const struct cli_choice *c = find_choice(rules, name);

	write_field(c, options, c->bits == UINT64_MAX ? 1 : c->bits ? c->bits : c->number);
}

/* Returns options without any choice: zeroed, but for fields of which 0 is a choice, such as a mode. */
static void *new_options(const struct cli_rules *rules)
{
	void *options = calloc(1, rules->size);

	assert_non_null(options);
	for (const struct cli_choice *c = rules->choices; c->name; c++) {
		if (!c->bits)
			write_field(c, options, 0x7f);
	}
	return options;
}

/* Checks by one row alone. Returns what was said; "": nothing. */
static const char *check(const struct cli_rules *all, const struct cli_rule *row, const void *options)
{
	const struct cli_rule rows[] = {*row, {0}};
	const struct cli_rules one = {all->command, all->size, all->choices, rows};
	int code;

	said[0] = '\0';
	code = cli_rules_check(&one, options);
	assert_int_equal(code, said[0] ? CLI_USAGE : 0);
	return said;
}

/* Chooses an option of the row, and what it excludes, if it does, or needs; each of them, one after the other. */
static void assert_row_refuses(const struct cli_rules *rules, const struct cli_rule *row, const char *option)
{
	const char *needs = row->needs, *excludes = row->excludes;
	void *options = new_options(rules);
	char other[64];

	if (needs)
		assert_string_equal(check(rules, row, options), "");
	choose(rules, option, options);
	assert_string_equal(check(rules, row, options), needs ? row->sentence : "");
	free(options);
	while (next_name(&excludes, other)) {
		options = new_options(rules);
		choose(rules, other, options);
		assert_string_equal(check(rules, row, options), "");
		choose(rules, option, options);
		assert_string_equal(check(rules, row, options), row->sentence);
		assert_int_equal(cli_rules_check(rules, options), CLI_USAGE);
		free(options);
	}
	while (next_name(&needs, other)) {
		options = new_options(rules);
		choose(rules, option, options);
		assert_int_equal(cli_rules_check(rules, options), CLI_USAGE);
		choose(rules, other, options);
		assert_string_equal(check(rules, row, options), "");
		free(options);
	}
}

static void test_each_row_refuses(void **state)
{
	char option[64];

	(void)state;
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		assert_true(commands[i]->rules->options != NULL);
		for (const struct cli_rule *row = commands[i]->rules; row->options; row++) {
			const char *names = row->options;

			assert_true(row->needs || row->excludes);
			while (next_name(&names, option))
				assert_row_refuses(commands[i], row, option);
		}
	}
}

/*
 * Returns whether a sentence names an option: with its name; of several that begin alike, with the beginning and dots,
 * or the first one; of values of one option, with the value.
 */
static bool does_name(const char *sentence, const char *name)
{
	const char *value = strchr(name, '='), *dots = strstr(sentence, "...");

	if (strstr(sentence, name) || (value && strstr(sentence, value + 1)))
		return true;
	if (dots && dots - sentence > 7 && !strncmp(dots - 7, name, 7))
		return true;
	return strcmp(name, "--spool-size") == 0 && strstr(sentence, "--spool ");
}

/* Where any of several options is enough, the sentence may name one of them. */
static void test_each_sentence_names_both(void **state)
{
	char name[64];

	(void)state;
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		for (const struct cli_rule *row = commands[i]->rules; row->options; row++) {
			const char *options = row->options, *needs = row->needs, *excludes = row->excludes;
			bool met = !needs;

			while (next_name(&options, name) || next_name(&excludes, name)) {
				if (!does_name(row->sentence, name))
					fail_msg("\"%s\" does not name %s", row->sentence, name);
			}
			while (next_name(&needs, name))
				met |= does_name(row->sentence, name);
			if (!met)
				fail_msg("\"%s\" does not name what is needed: %s", row->sentence, row->needs);
		}
	}
}

/* A choice that no rule names is a slip: the rule that was meant would not be met. */
static void test_no_choice_is_without_a_rule(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		for (const struct cli_choice *c = commands[i]->choices; c->name; c++) {
			const struct cli_rule *row = commands[i]->rules;
			bool met = false;

			for (; row->options && !met; row++) {
				const char *const lists[] = {row->options, row->needs, row->excludes};
				char name[64];

				for (size_t list = 0; list < 3; list++) {
					for (const char *names = lists[list]; next_name(&names, name);)
						met |= strcmp(name, c->name) == 0;
				}
			}
			if (!met)
				fail_msg("%s: no rule is about %s", commands[i]->command, c->name);
		}
	}
}

/* The first rule that is broken speaks, and others do not. */
static void test_the_first_one_speaks(void **state)
{
	static const struct cli_choice choices[] = {{"--a", .offset = 0, .size = 1, .bits = UINT64_MAX},
						    {"--b", .offset = 1, .size = 1, .bits = 4},
						    {"--c", .offset = 2, .size = 1, .number = 0},
						    {0}};
	static const struct cli_rule rows[] = {{"--b", .excludes = "--c", .sentence = "b excludes c"},
					       {"--a", .excludes = "--b, --c", .sentence = "a stands alone"},
					       {"--a", .needs = "--c", .sentence = "a needs c"},
					       {0}};
	static const struct cli_rules rules = {"made up", 3, choices, rows};
	static const struct {
		const char options[3];
		const char *sentence;
	} cases[] = {
		{{0, 0, 0}, ""},
		{{0, 4, 0}, "b excludes c"},
		{{9, 6, 0}, "b excludes c"},
		{{0, 3, 0}, ""},
		{{1, 3, 0}, "a stands alone"},
		{{1, 4, 1}, "a stands alone"},
		{{1, 3, 1}, "a needs c"},
		{{0, 4, 1}, ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		said[0] = '\0';
		cli_rules_check(&rules, cases[i].options);
		assert_string_equal(said, cases[i].sentence);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_row_refuses),
		cmocka_unit_test(test_each_sentence_names_both),
		cmocka_unit_test(test_no_choice_is_without_a_rule),
		cmocka_unit_test(test_the_first_one_speaks),
	};

	log_set_sink(hear);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

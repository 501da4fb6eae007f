// SPDX-License-Identifier: Apache-2.0
/* Options that exclude each other, or need another one: a row of a table for each rule. */
#ifndef CLI_RULES_H
#define CLI_RULES_H

#include <stddef.h>
#include <stdint.h>

/* What a command line may choose, and the field of the options' struct that tells whether it does. */
struct cli_choice {
	const char *name; /* as typed, such as --merge, or --mode=wall; NULL ends a table */
	size_t offset;    /* of the field, in bytes */
	size_t size;      /* likewise; at most that of a uint64_t */
	uint64_t bits;    /* it is chosen if the field has one of these; 0: if the field is `number` */
	uint64_t number;
};

#define CLI_FIELD(type, field) .offset = offsetof(type, field), .size = sizeof(((type *)NULL)->field)
/* Chosen if the field is not 0, or NULL. */
#define CLI_CHOSEN(type, field)           CLI_FIELD(type, field), .bits = UINT64_MAX
#define CLI_CHOSEN_BITS(type, field, set) CLI_FIELD(type, field), .bits = (set)
#define CLI_CHOSEN_AS(type, field, value) CLI_FIELD(type, field), .number = (value)

/* Each of needs, excludes and options has names of choices, separated by ", ". */
struct cli_rule {
	const char *options;  /* the rule is about each of these; NULL ends a table */
	const char *needs;    /* with none of these they are refused; NULL: they need no other */
	const char *excludes; /* with one of these they are refused; NULL: they exclude no other */
	const char *sentence;
};

struct cli_rules {
	const char *command; /* whose options they are, for tests */
	size_t size;         /* of the options' struct */
	const struct cli_choice *choices;
	const struct cli_rule *rules;
};

/* The rules of all commands, for tests. */
extern const struct cli_rules cli_record_rules, cli_output_rules, cli_receiver_rules, cli_select_rules, cli_dump_rules,
	cli_report_rules, cli_agent_rules, cli_agent_push_rules;

/*
 * Checks the options by the rules, in their order. options: the struct that the choices are about. Returns 0, or
 * CLI_USAGE after the sentence of the first rule that they break, on stderr.
 */
int cli_rules_check(const struct cli_rules *rules, const void *options);

#endif

// SPDX-License-Identifier: Apache-2.0
/* Checks options by tables of what excludes what, and what needs what. */
#include "cli/rules.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

static bool is_chosen(const struct cli_choice *choice, const void *options)
{
	uint64_t field = 0;

	memcpy(&field, (const char *)options + choice->offset, choice->size);
	return choice->bits ? field & choice->bits : field == choice->number;
}

/* names: NULL: there are none. */
static bool is_any_chosen(const struct cli_choice *choices, const char *names, const void *options)
{
	for (const char *name = names; name && *name; name += strspn(name, ", ")) {
		size_t length = strcspn(name, ",");

		for (const struct cli_choice *c = choices; c->name; c++) {
			if (strlen(c->name) == length && !strncmp(c->name, name, length) && is_chosen(c, options))
				return true;
		}
		name += length;
	}
	return false;
}

static bool is_broken(const struct cli_rule *rule, const struct cli_choice *choices, const void *options)
{
	if (!is_any_chosen(choices, rule->options, options))
		return false;
	return (rule->needs && !is_any_chosen(choices, rule->needs, options)) ||
	       is_any_chosen(choices, rule->excludes, options);
}

/* Bytes of the names of all options that a rule is about. */
#define NAMES_MAX 256

static int refuse(const struct cli_rule *rule)
{
	char names[NAMES_MAX];

	snprintf(names, sizeof(names), "%s%s%s", rule->options, rule->excludes ? ", " : "", rule->excludes ?: "");
	return cli_usage_of(names, rule->sentence);
}

int cli_rules_check(const struct cli_rules *rules, const void *options)
{
	for (const struct cli_rule *rule = rules->rules; rule->options; rule++) {
		if (is_broken(rule, rules->choices, options))
			return refuse(rule);
	}
	return 0;
}

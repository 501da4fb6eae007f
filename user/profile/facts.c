// SPDX-License-Identifier: Apache-2.0
/* What is known of the facts of a run, one row each, and facts with several values, which are joined to a list. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "profile/facts.h"
#include "profile/profile.h"

/* The most bytes of joined facts; values that do not fit are left out. */
#define JOINED_MAX 1024

static const struct profile_fact_rule rules[] = {
	{PROFILE_FACT_VERSION, "pybpf", PROFILE_FACT_JOINED, PROFILE_FACT_KEPT},
	{PROFILE_FACT_HOST, "Machine", PROFILE_FACT_JOINED, PROFILE_FACT_HIDDEN},
	{PROFILE_FACT_KERNEL, "Kernel", PROFILE_FACT_JOINED, PROFILE_FACT_KEPT},
	{PROFILE_FACT_ARCH, "Architecture", PROFILE_FACT_JOINED, PROFILE_FACT_KEPT},
	{PROFILE_FACT_CPUS, "CPUs", PROFILE_FACT_JOINED, PROFILE_FACT_KEPT},
	{PROFILE_FACT_START, "Began", PROFILE_FACT_EARLIEST, PROFILE_FACT_KEPT},
	{PROFILE_FACT_DURATION, "Lasted", PROFILE_FACT_ADDED, PROFILE_FACT_KEPT},
	{PROFILE_FACT_FREQ, "Rate", PROFILE_FACT_JOINED, PROFILE_FACT_KEPT},
	{PROFILE_FACT_WEIGHT, "A sample counts for", PROFILE_FACT_JOINED, PROFILE_FACT_KEPT},
	{PROFILE_FACT_EVENT, "Event", PROFILE_FACT_JOINED, PROFILE_FACT_KEPT},
	{PROFILE_FACT_PYTHON, "Python", PROFILE_FACT_JOINED, PROFILE_FACT_KEPT},
	{PROFILE_FACT_OTHERS, "CPU time of others", PROFILE_FACT_ADDED, PROFILE_FACT_KEPT},
	{PROFILE_FACT_STOLEN, "CPU time stolen", PROFILE_FACT_ADDED, PROFILE_FACT_KEPT},
	{PROFILE_FACT_WAITED, "Waited for a CPU", PROFILE_FACT_ADDED, PROFILE_FACT_KEPT},
	{PROFILE_FACT_COMMAND, "Command", PROFILE_FACT_JOINED, PROFILE_FACT_LEFT_OUT},
};

struct profile_fact_rule profile_fact_rule(const char *key)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
		if (strcmp(rules[i].key, key) == 0)
			return rules[i];
	}
	return (struct profile_fact_rule){.key = key, .title = key};
}

/* Returns whether the value is in the list, whose items are separated by ", ". */
static bool has(const char *list, const char *value)
{
	size_t size = strlen(value);

	for (const char *at = list;; at += 2) {
		if (strncmp(at, value, size) == 0 && (!at[size] || strncmp(at + size, ", ", 2) == 0))
			return true;
		at = strstr(at, ", ");
		if (!at)
			return false;
	}
}

int profile_join_fact(struct profile *p, const char *key, const char *value)
{
	const char *before = profile_find_fact(p, key);
	char joined[JOINED_MAX];

	if (!before)
		return profile_set_fact(p, key, value);
	if (has(before, value) || snprintf(joined, sizeof(joined), "%s, %s", before, value) >= (int)sizeof(joined))
		return 0;
	return profile_set_fact(p, key, joined);
}

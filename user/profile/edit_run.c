// SPDX-License-Identifier: Apache-2.0
/* Merges the accounts and facts of several runs. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/edit_internal.h"
#include "profile/facts.h"

int edit_add_account(struct profile *to, const struct profile *from, bool without_states)
{
	size_t count;
	const struct profile_account *account = profile_account_entries(from, &count);
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		const char *group = profile_string(from, account[i].group);

		if (!without_states || strcmp(group, PROFILE_ACCOUNT_STATES) != 0)
			err = profile_add_account(to, group, profile_string(from, account[i].key),
						  profile_string(from, account[i].text), account[i].value);
	}
	return err;
}

static int add_fact(struct profile *to, const char *key, const char *value)
{
	const char *before = profile_find_fact(to, key);
	double sum;
	char number[64];

	if (!before)
		return profile_set_fact(to, key, value);
	switch (profile_fact_rule(key).merge) {
	case PROFILE_FACT_JOINED:
		return profile_join_fact(to, key, value);
	case PROFILE_FACT_EARLIEST:
		return strtoull(value, NULL, 10) < strtoull(before, NULL, 10) ? profile_set_fact(to, key, value) : 0;
	case PROFILE_FACT_ADDED:
		sum = strtod(before, NULL) + strtod(value, NULL);
		if (!isfinite(sum))
			return 0;
		snprintf(number, sizeof(number), "%.3f", sum);
		return profile_set_fact(to, key, number);
	}
	return 0;
}

/* Adds a name that stands for the value. */
static int add_hidden_fact(struct profile *to, const char *key, const char *value, const struct profile_edit *edit)
{
	char *hidden = edit_hidden(edit, 'h', value);
	int err = hidden ? add_fact(to, key, hidden) : -ENOMEM;

	free(hidden);
	return err;
}

int edit_add_facts(struct profile *to, const struct profile *from, const struct profile_edit *edit)
{
	size_t count;
	const struct profile_fact *facts = profile_facts(from, &count);
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		const char *key = profile_string(from, facts[i].key), *value = profile_string(from, facts[i].value);
		enum profile_fact_anonymized left = profile_fact_rule(key).anonymized;

		if (!edit->anonymize || left == PROFILE_FACT_KEPT)
			err = add_fact(to, key, value);
		else if (left == PROFILE_FACT_HIDDEN)
			err = add_hidden_fact(to, key, value, edit);
	}
	return err;
}

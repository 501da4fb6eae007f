// SPDX-License-Identifier: Apache-2.0
/* Merges the accounts and facts of several runs. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/edit_internal.h"

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

static bool is_one_of(const char *key, const char *const *keys)
{
	for (; *keys; keys++) {
		if (strcmp(key, *keys) == 0)
			return true;
	}
	return false;
}

static int add_fact(struct profile *to, const char *key, const char *value)
{
	const char *before = profile_find_fact(to, key);
	static const char *const sums[] = {PROFILE_FACT_DURATION, PROFILE_FACT_OTHERS, PROFILE_FACT_STOLEN,
					   PROFILE_FACT_WAITED, NULL};
	char number[64];

	if (!before)
		return profile_set_fact(to, key, value);
	if (strcmp(key, PROFILE_FACT_START) == 0) {
		uint64_t first = strtoull(before, NULL, 10), second = strtoull(value, NULL, 10);

		return second < first ? profile_set_fact(to, key, value) : 0;
	}
	if (is_one_of(key, sums)) {
		double sum = strtod(before, NULL) + strtod(value, NULL);

		if (!isfinite(sum))
			return 0;
		snprintf(number, sizeof(number), "%.3f", sum);
		return profile_set_fact(to, key, number);
	}
	return profile_join_fact(to, key, value);
}

int edit_add_facts(struct profile *to, const struct profile *from, const struct profile_edit *edit)
{
	static const char *const nameless[] = {
		PROFILE_FACT_VERSION,
		PROFILE_FACT_KERNEL,
		PROFILE_FACT_ARCH,
		PROFILE_FACT_CPUS,
		PROFILE_FACT_START,
		PROFILE_FACT_DURATION,
		PROFILE_FACT_FREQ,
		PROFILE_FACT_EVENT,
		PROFILE_FACT_PYTHON,
		PROFILE_FACT_OTHERS,
		PROFILE_FACT_STOLEN,
		PROFILE_FACT_WAITED,
		NULL,
	};
	size_t count;
	const struct profile_fact *facts = profile_facts(from, &count);
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		const char *key = profile_string(from, facts[i].key), *value = profile_string(from, facts[i].value);
		char *hidden;

		if (!edit->anonymize || is_one_of(key, nameless)) {
			err = add_fact(to, key, value);
		} else if (strcmp(key, PROFILE_FACT_HOST) == 0) {
			hidden = edit_hidden(edit, 'h', value);
			err = hidden ? add_fact(to, key, hidden) : -ENOMEM;
			free(hidden);
		}
	}
	return err;
}

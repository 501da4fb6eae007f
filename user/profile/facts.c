// SPDX-License-Identifier: Apache-2.0
/* Facts with several values, which are joined to a list. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "profile/profile.h"

/* The most bytes of joined facts; values that do not fit are left out. */
#define JOINED_MAX 1024

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

// SPDX-License-Identifier: Apache-2.0
/* Joins the functions of libraries to those of the program's own that have called them. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "output/formats/text_table.h"
#include "base/intern.h"

/* The value that a library's function has for one of the program's own. */
struct call {
	struct call_key {
		uint32_t library, own; /* rows */
	} key;
	uint64_t value;
};

static enum profile_origin origin_of(const struct profile *p, uint32_t stack)
{
	return profile_origin_of(p, profile_frame_at(p, profile_stack_at(p, stack)->frame)->file);
}

/* Returns 0 or -ENOMEM. */
static int add_call(struct intern *calls, uint32_t library, uint32_t own, uint64_t value)
{
	const struct call call = {.key = {library, own}};
	bool fresh;
	uint32_t i = intern_add(calls, &call, &fresh);

	if (i == INTERN_NONE)
		return -ENOMEM;
	((struct call *)intern_item(calls, i))->value += value;
	return 0;
}

/* Gives each row of a library the row of its own function with the most of it. Returns 0 or -ENOMEM. */
static int name_callers(struct text_table *t, const struct intern *calls)
{
	uint64_t *most = calloc((size_t)t->count + 1, sizeof(*most));

	if (!most)
		return -ENOMEM;
	for (uint32_t i = 0; i < calls->count; i++) {
		const struct call *call = intern_item(calls, i);
		struct text_row *row = &t->rows[call->key.library];

		row->more += row->from != PROFILE_NONE;
		if (call->value <= most[call->key.library])
			continue;
		most[call->key.library] = call->value;
		row->from = t->rows[call->key.own].group;
	}
	free(most);
	return 0;
}

int output_text_add_own(struct text_table *t, const uint32_t *row_of)
{
	const struct profile *p = t->profile;
	struct intern calls;
	int err = 0;

	intern_init(&calls, sizeof(struct call), sizeof(struct call_key));
	for (uint32_t s = 1; s < t->totals.count && !err; s++) {
		uint32_t own = t->own[s];

		if (!t->totals.self[s] || own == PROFILE_ROOT)
			continue;
		t->rows[row_of[own]].own += t->totals.self[s];
		if (row_of[s] != t->count && row_of[s] != row_of[own] && origin_of(p, own) == PROFILE_OWN)
			err = add_call(&calls, row_of[s], row_of[own], t->totals.self[s]);
	}
	err = err ?: name_callers(t, &calls);
	intern_free(&calls);
	return err;
}

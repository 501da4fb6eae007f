// SPDX-License-Identifier: Apache-2.0
/* Computes the self and total values of the stacks of a profile. */
#include "profile/totals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void add_values(struct profile_totals *t)
{
	size_t count;
	const struct profile_sample *samples = profile_samples(t->profile, &count);

	for (size_t i = 0; i < count; i++) {
		if (samples[i].stack != PROFILE_ROOT)
			t->self[samples[i].stack] += samples[i].value;
	}
	for (uint32_t s = 0; s < t->count; s++)
		t->total[s] = t->self[s];
	for (uint32_t s = t->count; s-- > 1;)
		t->total[profile_stack_at(t->profile, s)->parent] += t->total[s];
}

/* Fills order and end. A parent has a smaller index than its children: two passes give the sizes, then the places. */
static int put_in_order(struct profile_totals *t)
{
	uint32_t *size = calloc(t->count, sizeof(*size)), *place = calloc(t->count, sizeof(*place));
	uint32_t *next = calloc(t->count, sizeof(*next)); /* place of the stack's next child */
	int err = size && place && next ? 0 : -ENOMEM;

	for (uint32_t s = t->count; s-- > 0 && !err;) {
		size[s]++;
		if (s != PROFILE_ROOT)
			size[profile_stack_at(t->profile, s)->parent] += size[s];
	}
	for (uint32_t s = 0; s < t->count && !err; s++) {
		if (s != PROFILE_ROOT) {
			uint32_t parent = profile_stack_at(t->profile, s)->parent;

			place[s] = next[parent];
			next[parent] += size[s];
		}
		next[s] = place[s] + 1;
		t->order[place[s]] = s;
		t->end[place[s]] = place[s] + size[s];
	}
	free(size);
	free(place);
	free(next);
	return err;
}

int profile_totals_make(struct profile_totals *t, const struct profile *p)
{
	uint32_t count = profile_stack_count(p);

	*t = (struct profile_totals){
		.profile = p,
		.count = count,
		.self = calloc(count, sizeof(*t->self)),
		.total = calloc(count, sizeof(*t->total)),
		.order = calloc(count, sizeof(*t->order)),
		.end = calloc(count, sizeof(*t->end)),
	};
	if (!t->self || !t->total || !t->order || !t->end)
		return -ENOMEM;
	add_values(t);
	return put_in_order(t);
}

void profile_totals_free(struct profile_totals *t)
{
	free(t->self);
	free(t->total);
	free(t->order);
	free(t->end);
}

int profile_totals_outermost(const struct profile_totals *t, const uint32_t *keys, uint32_t nr_keys, bool *outermost)
{
	/* For each key: the place in the order where the subtree of its last outermost stack ends. */
	uint32_t *end = calloc(nr_keys ? nr_keys : 1, sizeof(*end));

	if (!end)
		return -ENOMEM;
	for (uint32_t i = 1; i < t->count; i++) {
		uint32_t s = t->order[i], key = keys[s];

		outermost[s] = i >= end[key];
		if (outermost[s])
			end[key] = t->end[i];
	}
	free(end);
	return 0;
}

uint64_t profile_suspended(const struct profile *p)
{
	size_t count;
	const struct profile_sample *samples = profile_samples(p, &count);
	uint64_t total = 0;

	for (size_t i = 0; i < count; i++) {
		if (strcmp(profile_string(p, profile_state_of(p, samples[i].stack)), PROFILE_STATE_SUSPENDED) == 0)
			total += samples[i].value;
	}
	return total;
}

// SPDX-License-Identifier: Apache-2.0
/* Questions about a whole profile, and about the leaves of a stack. */

#include "profile/profile.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/intern.h"

const char *profile_find_fact(const struct profile *p, const char *key)
{
	size_t count;
	const struct profile_fact *facts = profile_facts(p, &count);

	for (size_t i = 0; i < count; i++) {
		if (strcmp(profile_string(p, facts[i].key), key) == 0)
			return profile_string(p, facts[i].value);
	}
	return NULL;
}

uint64_t profile_total(const struct profile *p)
{
	size_t count;
	const struct profile_sample *samples = profile_samples(p, &count);
	uint64_t total = 0;

	for (size_t i = 0; i < count; i++) {
		if (samples[i].stack != PROFILE_ROOT)
			total += samples[i].value;
	}
	return total;
}

bool profile_has_counts(const struct profile *p)
{
	size_t count;
	const struct profile_sample *samples = profile_samples(p, &count);

	for (size_t i = 0; i < count; i++) {
		if (samples[i].count)
			return true;
	}
	return false;
}

bool profile_has_states(const struct profile *p)
{
	for (uint32_t i = 0; i < profile_frame_count(p); i++) {
		if (profile_frame_at(p, i)->state)
			return true;
	}
	return false;
}

bool profile_has_columns(const struct profile *p)
{
	for (uint32_t i = 0; i < profile_frame_count(p); i++) {
		if (profile_frame_at(p, i)->end_line)
			return true;
	}
	return false;
}

bool profile_has_code_places(const struct profile *p)
{
	for (uint32_t i = 0; i < profile_frame_count(p); i++) {
		if (profile_frame_at(p, i)->mapping || profile_frame_at(p, i)->marks)
			return true;
	}
	return false;
}

bool profile_has_wakers(const struct profile *p)
{
	for (uint32_t i = 0; i < profile_frame_count(p); i++) {
		if (profile_frame_at(p, i)->waker)
			return true;
	}
	return false;
}

uint32_t profile_state_of(const struct profile *p, uint32_t stack)
{
	return stack == PROFILE_ROOT ? 0 : profile_frame_at(p, profile_stack_at(p, stack)->frame)->state;
}

static bool is_of_kernel(const struct profile *p, uint32_t stack)
{
	return stack != PROFILE_ROOT && profile_frame_at(p, profile_stack_at(p, stack)->frame)->kind == PROFILE_KERNEL;
}

uint32_t profile_waiter_of(const struct profile *p, uint32_t stack)
{
	if (!profile_state_of(p, stack))
		return stack;
	while (profile_state_of(p, stack) || is_of_kernel(p, stack))
		stack = profile_stack_at(p, stack)->parent;
	return stack;
}

int32_t profile_waker_of(const struct profile *p, uint32_t stack)
{
	int32_t waker = 0;

	for (; !waker && profile_state_of(p, stack); stack = profile_stack_at(p, stack)->parent)
		waker = profile_frame_at(p, profile_stack_at(p, stack)->frame)->waker;
	return waker;
}

int profile_by_roots(const struct profile *p, struct profile_sample **samples, size_t *count)
{
	unsigned roots = profile_roots(p);
	size_t nr_samples;
	const struct profile_sample *all = profile_samples(p, &nr_samples);
	struct intern sums;
	int err = 0;

	intern_init(&sums, sizeof(struct profile_sample), offsetof(struct profile_sample, thread) + 4);
	for (size_t i = 0; i < nr_samples && !err; i++) {
		const struct profile_sample *sample = &all[i];
		struct profile_sample key = {
			.stack = sample->stack,
			.process = roots ? sample->process : PROFILE_NONE,
			.thread = roots & PROFILE_ROOT_THREAD ? sample->thread : PROFILE_NONE,
		};
		bool fresh;
		uint32_t at;

		if (sample->stack == PROFILE_ROOT)
			continue;
		at = intern_add(&sums, &key, &fresh);
		if (at == INTERN_NONE) {
			err = -ENOMEM;
		} else {
			((struct profile_sample *)intern_item(&sums, at))->value += sample->value;
			((struct profile_sample *)intern_item(&sums, at))->count += sample->count;
		}
	}
	*count = err ? 0 : sums.count;
	*samples = err ? NULL : sums.items;
	if (!err)
		sums.items = NULL;
	intern_free(&sums);
	return err;
}

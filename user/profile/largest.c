// SPDX-License-Identifier: Apache-2.0
/* Finds the largest stacks of each service, and copies a profile with the rest added up. */
#include "profile/largest.h"

#include <stdlib.h>

#include "base/intern.h"
#include "profile/edit.h"

/* A stack in all processes of a service. */
struct stack_sum {
	uint32_t service, stack; /* its key */
	uint64_t value;
	bool other; /* it is not among the largest */
};

static int compare_sums(const void *a, const void *b)
{
	const struct stack_sum *x = *(struct stack_sum *const *)a, *y = *(struct stack_sum *const *)b;

	if (x->service != y->service)
		return x->service < y->service ? -1 : 1;
	if (x->value != y->value)
		return x->value > y->value ? -1 : 1;
	return x->stack < y->stack ? -1 : x->stack > y->stack;
}

static struct stack_sum sum_of(const struct profile *p, const struct profile_sample *sample)
{
	return (struct stack_sum){.service = profile_process_at(p, sample->process)->service, .stack = sample->stack};
}

static int add_up(const struct profile *p, struct intern *sums)
{
	size_t count;
	const struct profile_sample *samples = profile_samples(p, &count);

	for (size_t i = 0; i < count; i++) {
		const struct stack_sum one = sum_of(p, &samples[i]);
		uint32_t at;

		if (samples[i].stack == PROFILE_ROOT)
			continue;
		at = intern_add(sums, &one, &(bool){false});
		if (at == INTERN_NONE)
			return -1;
		((struct stack_sum *)intern_item(sums, at))->value += samples[i].value;
	}
	return 0;
}

/* Marks those beyond the first `most` of each service. Returns whether there was memory. */
static bool mark(const struct intern *sums, uint32_t most)
{
	struct stack_sum **order = calloc(sums->count + (size_t)1, sizeof(*order));
	uint32_t rank = 0;

	if (!order)
		return false;
	for (uint32_t i = 0; i < sums->count; i++)
		order[i] = intern_item(sums, i);
	qsort(order, sums->count, sizeof(*order), compare_sums);
	for (uint32_t i = 0; i < sums->count; i++) {
		rank = i && order[i - 1]->service == order[i]->service ? rank + 1 : 0;
		order[i]->other = rank >= most;
	}
	free(order);
	return true;
}

/* Returns whether each sample is of the rest, which the caller frees; NULL without memory. */
static bool *find_others(const struct profile *p, uint32_t most)
{
	struct intern sums = INTERN_INIT(sizeof(struct stack_sum), offsetof(struct stack_sum, value));
	size_t count;
	const struct profile_sample *samples = profile_samples(p, &count);
	bool *others = calloc(count + 1, sizeof(*others));

	if (!others || add_up(p, &sums) || !mark(&sums, most)) {
		free(others);
		others = NULL;
	}
	for (size_t i = 0; i < count && others; i++) {
		const struct stack_sum one = sum_of(p, &samples[i]);

		if (samples[i].stack != PROFILE_ROOT)
			others[i] = ((struct stack_sum *)intern_item(&sums, intern_find(&sums, &one)))->other;
	}
	intern_free(&sums);
	return others;
}

struct profile *profile_keep_largest(const struct profile *p, uint32_t most)
{
	struct profile_edit edit = {.no_sources = true};
	struct profile *copy = profile_new();
	bool *others = find_others(p, most);
	struct error error;

	edit.others = others;
	if (!copy || !others || profile_edit_add(copy, p, &edit, &error)) {
		profile_free(copy);
		copy = NULL;
	}
	free(others);
	return copy;
}

// SPDX-License-Identifier: Apache-2.0
/* Adds up waits by what they are for, and by the functions in which they are. */
#include "output/formats/waits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/children.h"
#include "profile/idle.h"

static uint32_t group_of(const struct text_table *t, uint32_t stack)
{
	return t->groups.of_frame[profile_stack_at(t->profile, stack)->frame];
}

/* Counts the processes that a row's waits are for. Returns 0 or -ENOMEM. */
static int add_process(struct waits *w, uint32_t row, uint32_t wait)
{
	const struct awaited awaited = {.row = row, .wait = wait};
	bool fresh;

	if (intern_add(&w->processes, &awaited, &fresh) == INTERN_NONE)
		return -ENOMEM;
	((struct wait_row *)intern_item(&w->rows, row))->processes += fresh;
	return 0;
}

/* Returns 0 or -ENOMEM. */
static int add_stack(struct waits *w, uint32_t stack)
{
	const struct text_table *t = w->table;
	uint32_t waiter = profile_waiter_of(t->profile, stack), wait = group_of(t, stack);
	unsigned kind = profile_child_kind(t->profile, profile_stack_at(t->profile, stack)->frame);
	bool for_process = kind < PROFILE_CHILD_KINDS, fresh;
	struct wait_row row = {.key = {for_process ? PROFILE_NONE : wait, kind, PROFILE_NONE, PROFILE_NONE, 0},
			       .first = wait,
			       .idle = profile_is_folded_idle(t->profile, stack)};
	const char *state = profile_string(t->profile, profile_state_of(t->profile, stack));

	row.key.task = strcmp(state, PROFILE_STATE_SUSPENDED) == 0;
	if (waiter != PROFILE_ROOT) {
		row.key.waiter = group_of(t, waiter);
		row.key.own = group_of(t, t->own[stack]);
	}
	w->of_stack[stack] = intern_add(&w->rows, &row, &fresh);
	if (w->of_stack[stack] == INTERN_NONE)
		return -ENOMEM;
	((struct wait_row *)intern_item(&w->rows, w->of_stack[stack]))->value += t->totals.self[stack];
	return for_process ? add_process(w, w->of_stack[stack], wait) : 0;
}

static struct wait_row *row_of(struct waits *w, uint32_t stack)
{
	return w->of_stack[stack] == PROFILE_NONE ? NULL : intern_item(&w->rows, w->of_stack[stack]);
}

/* Adds what the table says of single waits. */
static void add_single(struct waits *w)
{
	const struct profile *p = w->table->profile;
	const struct profile_sample *samples;
	const struct profile_event *events;
	size_t count;

	samples = profile_samples(p, &count);
	for (size_t i = 0; i < count; i++) {
		struct wait_row *row = row_of(w, samples[i].stack);

		if (row)
			row->count += samples[i].count;
		w->counted |= row && samples[i].count;
	}
	events = profile_events(p, &count);
	for (size_t i = 0; i < count; i++) {
		struct wait_row *row = row_of(w, samples[events[i].sample].stack);

		if (row && events[i].value > row->longest)
			row->longest = events[i].value;
		w->timed |= row != NULL;
	}
}

static int by_value(const void *a, const void *b)
{
	const struct wait_row *x = a, *y = b;

	if (x->idle != y->idle)
		return x->idle ? 1 : -1;
	if (x->idle && x->key.task != y->key.task)
		return x->key.task ? -1 : 1;
	if (x->value != y->value)
		return x->value > y->value ? -1 : 1;
	return memcmp(&x->key, &y->key, sizeof(x->key));
}

static int by_count(const void *a, const void *b)
{
	const struct wait_row *x = a, *y = b;

	if (x->idle == y->idle && x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return by_value(a, b);
}

static void sort(struct waits *w)
{
	qsort(w->sorted, w->count, sizeof(*w->sorted),
	      w->table->options.sort == OUTPUT_SORT_COUNT ? by_count : by_value);
}

int output_waits_collect(struct waits *w, const struct text_table *t)
{
	int err = 0;

	*w = (struct waits){.table = t};
	intern_init(&w->rows, sizeof(struct wait_row), sizeof(struct wait_key));
	intern_init(&w->processes, sizeof(struct awaited), sizeof(struct awaited));
	w->of_stack = malloc(t->totals.count * sizeof(*w->of_stack));
	if (!w->of_stack)
		return -ENOMEM;
	w->of_stack[PROFILE_ROOT] = PROFILE_NONE;
	for (uint32_t s = 1; s < t->totals.count && !err; s++) {
		w->of_stack[s] = PROFILE_NONE;
		if (t->totals.self[s] && profile_state_of(t->profile, s))
			err = add_stack(w, s);
	}
	if (err)
		return err;
	add_single(w);
	w->count = w->rows.count;
	w->sorted = calloc((size_t)w->count + 1, sizeof(*w->sorted));
	if (!w->sorted)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->count; i++) {
		w->sorted[i] = *(const struct wait_row *)intern_item(&w->rows, i);
		w->sorted[i].index = i;
	}
	sort(w);
	return 0;
}

/* Counts the processes again that rows are for, as two of them may be for the same one. Returns 0 or -ENOMEM. */
static int count_processes(struct waits *w, const uint32_t *first)
{
	uint32_t *row_of = calloc((size_t)w->count + 1, sizeof(*row_of)); /* sorted, by their index */
	struct intern counted;
	int err = row_of ? 0 : -ENOMEM;

	intern_init(&counted, sizeof(struct awaited), sizeof(struct awaited));
	for (uint32_t i = 0; i < w->count && !err; i++) {
		row_of[w->sorted[i].index] = first[i];
		w->sorted[i].processes = 0;
	}
	for (uint32_t i = 0; i < w->processes.count && !err; i++) {
		const struct awaited *awaited = intern_item(&w->processes, i);
		const struct awaited one = {.row = row_of[awaited->row], .wait = awaited->wait};
		bool fresh;

		if (intern_add(&counted, &one, &fresh) == INTERN_NONE)
			err = -ENOMEM;
		else
			w->sorted[one.row].processes += fresh;
	}
	intern_free(&counted);
	free(row_of);
	return err;
}

int output_waits_add_up(struct waits *w, const uint32_t *first)
{
	int err = count_processes(w, first);
	uint32_t kept = 0;

	for (uint32_t i = 0; i < w->count; i++) {
		struct wait_row *row = &w->sorted[first[i]];

		if (first[i] == i)
			continue;
		row->value += w->sorted[i].value;
		row->count += w->sorted[i].count;
		if (w->sorted[i].longest > row->longest)
			row->longest = w->sorted[i].longest;
	}
	for (uint32_t i = 0; i < w->count; i++) {
		if (first[i] == i)
			w->sorted[kept++] = w->sorted[i];
	}
	w->count = kept;
	sort(w);
	return err;
}

void output_waits_free(struct waits *w)
{
	intern_free(&w->rows);
	intern_free(&w->processes);
	free(w->of_stack);
	free(w->sorted);
}

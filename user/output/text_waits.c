// SPDX-License-Identifier: Apache-2.0
/* A table of waits by their time: how often, how long, and in which function. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "output/amount.h"
#include "output/fit.h"
#include "output/text_table.h"
#include "profile/children.h"
#include "profile/idle.h"
#include "base/intern.h"
#include "base/text.h"
#include "base/text_stream.h"

/* Groups; PROFILE_NONE: no function. */
struct wait_key {
	uint32_t wait;   /* PROFILE_NONE: for processes, each with a group of its own */
	uint32_t kind;   /* of profile_child_kind() */
	uint32_t own;    /* the nearest function that is the program's own */
	uint32_t waiter; /* the innermost function */
};

struct wait_row {
	struct wait_key key;
	uint64_t value, count, longest;
	uint32_t first;     /* the first group of them: its name is the row's, if it is the only one */
	uint32_t processes; /* that are waited for, where each has a group of its own */
	bool idle;          /* waits for work, which are the last row */
};

/* A process that a row's waits are for. */
struct awaited {
	uint32_t row, wait; /* wait: its group */
};

struct waits {
	const struct text_table *table;
	struct intern rows;      /* struct wait_row */
	struct intern processes; /* struct awaited */
	uint32_t *of_stack;      /* the row of each stack; PROFILE_NONE: it is no wait */
	struct wait_row *sorted;
	bool counted, timed; /* it is known how many waits there were, and how long each was */
};

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
	struct wait_row row = {.key = {for_process ? PROFILE_NONE : wait, kind, PROFILE_NONE, PROFILE_NONE},
			       .first = wait,
			       .idle = profile_is_folded_idle(t->profile, stack)};

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

static int collect(struct waits *w)
{
	const struct text_table *t = w->table;
	int err = 0;

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
	w->sorted = malloc((w->rows.count + 1) * sizeof(*w->sorted));
	if (!w->sorted)
		return -ENOMEM;
	if (w->rows.count)
		memcpy(w->sorted, w->rows.items, w->rows.count * sizeof(*w->sorted));
	qsort(w->sorted, w->rows.count, sizeof(*w->sorted), t->options.sort == OUTPUT_SORT_COUNT ? by_count : by_value);
	return 0;
}

/* Writes " in FUNCTION, via FUNCTION", the latter where there is room. used: columns of width that are written. */
static int write_place(const struct text_table *t, const struct wait_key *key, size_t used, size_t width, FILE *out)
{
	static const char in[] = " in ";
	const struct output_pair pair = {.first = key->own,
					 .second = key->waiter == key->own ? PROFILE_NONE : key->waiter,
					 .between = OUTPUT_VIA};
	size_t room = 0;

	if (key->own == PROFILE_NONE)
		return 0;
	used += strlen(in);
	if (width)
		room = width > used + OUTPUT_FIT_LEAST ? width - used : OUTPUT_FIT_LEAST;
	fputs(in, out);
	return output_pair_fitted(t->profile, &t->groups, t->options.by_line, &pair, room, out);
}

/* Returns what the row's waits are for, which the caller frees. NULL: no memory. */
static char *name_of(const struct text_table *t, const struct wait_row *row)
{
	if (row->processes > 1)
		return profile_children_name(row->key.kind, row->processes);
	return strdup(profile_string(t->profile, profile_group_at(&t->groups, row->first)->name));
}

static int write_wait(const struct text_table *t, const struct wait_row *row, size_t width, FILE *out)
{
	static const char unfolds[] = " in idle pools and loops (--idle shows each)";
	char *name = name_of(t, row), *wait = name ? output_text_printed(name, width / 2) : NULL;
	int err = 0;

	free(name);
	if (!wait)
		return -ENOMEM;
	fputs(wait, out);
	if (!row->idle)
		err = write_place(t, &row->key, text_width(wait), width, out);
	else if (!width || text_width(wait) + strlen(unfolds) <= width)
		fputs(unfolds, out);
	fputc('\n', out);
	free(wait);
	return err;
}

/* The width of "1,234.567 s" without its comma, and of a number of waits. */
#define AMOUNT_WIDTH 10
#define COUNT_WIDTH  8

/* Writes the numbers of a row. Returns 0 or -ENOMEM. */
static int write_row(const struct waits *w, const struct wait_row *row, bool narrow, size_t room, FILE *out)
{
	const struct profile_measure measure = profile_get_measure(w->table->profile);
	char amount[OUTPUT_AMOUNT_MAX];

	if (!narrow)
		fprintf(out, "%*s ", AMOUNT_WIDTH, output_amount(&measure, row->value, amount));
	fprintf(out, "%6.1f%%  ", output_text_percent(row->value, w->table->all));
	if (!narrow && w->counted && row->count)
		fprintf(out, "%*" PRIu64 "  %*s  ", COUNT_WIDTH, row->count, AMOUNT_WIDTH,
			output_amount(&measure, row->value / row->count, amount));
	else if (!narrow && w->counted)
		fprintf(out, "%*s  ", COUNT_WIDTH + 2 + AMOUNT_WIDTH, "");
	if (!narrow && w->timed)
		fprintf(out, "%*s  ", AMOUNT_WIDTH, row->longest ? output_amount(&measure, row->longest, amount) : "");
	return write_wait(w->table, row, room, out);
}

static int write_rows(const struct waits *w, FILE *out)
{
	const struct text_table *t = w->table;
	const size_t percent = strlen(" 100.0%  ");
	const size_t wide = AMOUNT_WIDTH + percent + (w->counted ? COUNT_WIDTH + AMOUNT_WIDTH + 4 : 0) +
			    (w->timed ? AMOUNT_WIDTH + 2 : 0);
	/* A narrow terminal has no room for the numbers. */
	bool narrow = t->options.width && t->options.width < wide + 2 * OUTPUT_FIT_LEAST;
	size_t room = output_text_room(t, narrow ? percent : wide);
	const struct wait_row *last = &w->sorted[w->rows.count - 1];
	uint32_t shown = w->rows.count < t->options.rows ? w->rows.count : t->options.rows;
	int err = 0;

	if (!narrow)
		fprintf(out, "%*s ", AMOUNT_WIDTH, "time");
	fprintf(out, "%7s  ", "share");
	if (!narrow && w->counted)
		fprintf(out, "%*s  %*s  ", COUNT_WIDTH, "waits", AMOUNT_WIDTH, "mean");
	if (!narrow && w->timed)
		fprintf(out, "%*s  ", AMOUNT_WIDTH, "longest");
	fputs("wait\n", out);
	for (uint32_t i = 0; i < shown && !err; i++)
		err = write_row(w, last->idle && i + 1 == shown ? last : &w->sorted[i], narrow, room, out);
	if (w->rows.count > shown)
		fprintf(out, "and %u wait%s more (--limit)\n", w->rows.count - shown,
			w->rows.count - shown == 1 ? "" : "s");
	fputc('\n', out);
	return err;
}

int output_text_waits(const struct text_table *t, FILE *out)
{
	struct waits w = {.table = t};
	int err;

	if (!profile_has_states(t->profile))
		return 0;
	intern_init(&w.rows, sizeof(struct wait_row), sizeof(struct wait_key));
	intern_init(&w.processes, sizeof(struct awaited), sizeof(struct awaited));
	err = collect(&w);
	if (!err && w.rows.count)
		err = write_rows(&w, out);
	intern_free(&w.rows);
	intern_free(&w.processes);
	free(w.of_stack);
	free(w.sorted);
	return err;
}

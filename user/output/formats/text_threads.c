// SPDX-License-Identifier: Apache-2.0
/* A table of threads by their samples: what each did most of the time, and in which function. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/amount.h"
#include "output/truncate.h"
#include "output/formats/text_table.h"
#include "base/intern.h"
#include "base/text.h"

/* Most states of a thread that are shown: those with the most time. */
#define STATES_SHOWN 2
#define BETWEEN      2
/* Columns beside the numbers that a terminal needs to show everything, and to show one state but no process. */
#define ROOM_FOR_ALL   80
#define ROOM_FOR_STATE 56
/* Columns before the function. */
enum {
	LABEL_THREAD,
	LABEL_PROCESS,
	LABEL_STATES,
	LABELS
};

/* A part of a thread's value: in one state, or in one function. */
struct part {
	struct part_key {
		uint32_t thread, of; /* of: string of the state, or group */
	} key;
	uint64_t value;
};

struct thread_row {
	uint32_t thread;
	uint64_t value;
	struct part hottest, states[STATES_SHOWN]; /* value 0: none */
	char *labels[LABELS];
};

struct threads {
	const struct text_table *table;
	struct intern states, functions; /* struct part */
	struct thread_row *rows;         /* of all threads; those without samples last */
	uint32_t count, shown;           /* count: with samples */
	int states_shown;                /* states of a thread */
	size_t widths[LABELS];           /* 0: the column is left out */
};

/* Returns 0 or -ENOMEM. */
static int add_part(struct intern *parts, uint32_t thread, uint32_t of, uint64_t value)
{
	const struct part part = {.key = {thread, of}};
	bool fresh;
	uint32_t i = intern_add(parts, &part, &fresh);

	if (i == INTERN_NONE)
		return -ENOMEM;
	((struct part *)intern_item(parts, i))->value += value;
	return 0;
}

static int add_sample(struct threads *t, const struct profile_sample *sample)
{
	const struct text_table *table = t->table;
	const struct profile *p = table->profile;
	uint32_t own = table->own[sample->stack];
	uint32_t frame = profile_stack_at(p, own == PROFILE_ROOT ? sample->stack : own)->frame;

	t->rows[sample->thread].value += sample->value;
	return add_part(&t->functions, sample->thread, table->groups.of_frame[frame], sample->value)
		       ?: add_part(&t->states, sample->thread, profile_state_of(p, sample->stack), sample->value);
}

/* Puts a part in its place among the largest ones. */
static void keep_largest(struct part *largest, int most, const struct part *part)
{
	int at = most;

	while (at > 0 && part->value > largest[at - 1].value)
		at--;
	if (at == most)
		return;
	memmove(&largest[at + 1], &largest[at], (size_t)(most - at - 1) * sizeof(*largest));
	largest[at] = *part;
}

static int by_value(const void *a, const void *b)
{
	const struct thread_row *x = a, *y = b;

	if (x->value != y->value)
		return x->value > y->value ? -1 : 1;
	return x->thread < y->thread ? -1 : x->thread > y->thread;
}

/* Returns 0 or -ENOMEM. */
static int collect(struct threads *t)
{
	const struct profile *p = t->table->profile;
	uint32_t all = profile_thread_count(p);
	size_t count;
	const struct profile_sample *samples = profile_samples(p, &count);
	int err = 0;

	t->rows = calloc(all + 1, sizeof(*t->rows));
	if (!t->rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < all; i++)
		t->rows[i].thread = i;
	for (size_t i = 0; i < count && !err; i++) {
		if (samples[i].thread != PROFILE_NONE && samples[i].stack != PROFILE_ROOT)
			err = add_sample(t, &samples[i]);
	}
	for (uint32_t i = 0; i < t->functions.count; i++) {
		const struct part *part = intern_item(&t->functions, i);

		keep_largest(&t->rows[part->key.thread].hottest, 1, part);
	}
	for (uint32_t i = 0; i < t->states.count; i++) {
		const struct part *part = intern_item(&t->states, i);

		keep_largest(t->rows[part->key.thread].states, STATES_SHOWN, part);
	}
	qsort(t->rows, all, sizeof(*t->rows), by_value);
	while (t->count < all && t->rows[t->count].value)
		t->count++;
	t->shown = t->count < t->table->options.rows ? t->count : t->table->options.rows;
	return err;
}

/* Returns "NAME (TID)", which the caller frees. NULL: no memory. */
static char *thread_label(const struct profile *p, uint32_t thread)
{
	const struct profile_thread *of = profile_thread_at(p, thread);
	char *label;

	return asprintf(&label, "%s (%d)", profile_string(p, of->name), of->tid) < 0 ? NULL : label;
}

/* Returns "STATE SHARE, STATE SHARE", which the caller frees. NULL: no memory. */
static char *states_label(const struct threads *t, const struct thread_row *row)
{
	const struct profile *p = t->table->profile;
	char *label = strdup("");

	for (int i = 0; i < t->states_shown && row->states[i].value && label; i++) {
		uint32_t state = row->states[i].key.of;
		char *longer;

		if (asprintf(&longer, "%s%s%s %.0f%%", label, i ? ", " : "",
			     state ? profile_string(p, state) : PROFILE_STATE_RUNNING,
			     output_text_percent(row->states[i].value, row->value)) < 0)
			longer = NULL;
		free(label);
		label = longer;
	}
	return label;
}

static char *make_label(const struct threads *t, const struct thread_row *row, int which)
{
	const struct profile *p = t->table->profile;

	switch (which) {
	case LABEL_THREAD:
		return thread_label(p, row->thread);
	case LABEL_PROCESS:
		return output_process_label(p, profile_thread_at(p, row->thread)->process);
	default:
		return states_label(t, row);
	}
}

/* Makes the labels of a column, and measures it. limit: columns of the terminal; 0: any. Returns 0 or -ENOMEM. */
static int make_labels(struct threads *t, int which, const char *title, size_t limit)
{
	t->widths[which] = strlen(title);
	for (uint32_t i = 0; i < t->shown; i++) {
		struct thread_row *row = &t->rows[i];
		char *label = make_label(t, row, which);

		row->labels[which] = label ? output_text_printed(label, limit) : NULL;
		free(label);
		if (!row->labels[which])
			return -ENOMEM;
		if (text_width(row->labels[which]) > t->widths[which])
			t->widths[which] = text_width(row->labels[which]);
	}
	return 0;
}

static const char *const titles[LABELS] = {
	[LABEL_THREAD] = "thread",
	[LABEL_PROCESS] = "process",
	[LABEL_STATES] = "states",
};

static void write_numbers(const struct threads *t, const struct thread_row *row, FILE *out)
{
	const struct profile_measure measure = profile_get_measure(t->table->profile);
	char amount[OUTPUT_AMOUNT_MAX];

	fprintf(out, "%*s %6.1f%%  ", t->table->width, output_amount(&measure, row->value, amount),
		output_text_percent(row->value, t->table->all));
}

/* Writes a line of the table: its head if row is NULL. */
static int write_line(const struct threads *t, const struct thread_row *row, FILE *out)
{
	const struct text_table *table = t->table;
	size_t used = (size_t)table->width + strlen("  100.0%  ");

	if (row) {
		write_numbers(t, row, out);
	} else {
		output_text_measure(table, out);
		fprintf(out, " %7s  ", "share");
	}
	for (int i = 0; i < LABELS; i++) {
		const char *text = row ? row->labels[i] : titles[i];

		if (!t->widths[i])
			continue;
		fprintf(out, "%s%*s", text, (int)(t->widths[i] - text_width(text) + BETWEEN), "");
		used += t->widths[i] + BETWEEN;
	}
	if (row)
		return output_group_truncated(table->profile, profile_group_at(&table->groups, row->hottest.key.of),
					      table->options.by_line, output_text_room(table, used), out);
	fprintf(out, "hottest %s\n", output_row_noun(&table->options));
	return 0;
}

static int write_rows(struct threads *t, FILE *out)
{
	const struct text_table *table = t->table;
	size_t room = output_text_room(table, (size_t)table->width + strlen("  100.0%  "));
	bool all = !room || room >= ROOM_FOR_ALL;
	int err = make_labels(t, LABEL_THREAD, titles[LABEL_THREAD], room / 3);

	if (!err && all && profile_process_count(table->profile) > 1)
		err = make_labels(t, LABEL_PROCESS, titles[LABEL_PROCESS], room / 4);
	t->states_shown = all ? STATES_SHOWN : 1;
	if (!err && (all || room >= ROOM_FOR_STATE) && profile_has_states(table->profile))
		err = make_labels(t, LABEL_STATES, titles[LABEL_STATES], 0);
	err = err ?: write_line(t, NULL, out);
	for (uint32_t i = 0; i < t->shown && !err; i++)
		err = write_line(t, &t->rows[i], out);
	if (t->count > t->shown)
		fprintf(out, "and %u thread%s more (--limit)\n", t->count - t->shown,
			t->count - t->shown == 1 ? "" : "s");
	fputc('\n', out);
	return err;
}

int output_text_threads(const struct text_table *table, FILE *out)
{
	struct threads t = {.table = table};
	int err;

	intern_init(&t.states, sizeof(struct part), sizeof(struct part_key));
	intern_init(&t.functions, sizeof(struct part), sizeof(struct part_key));
	err = collect(&t);
	if (!err && t.count)
		err = write_rows(&t, out);
	for (uint32_t i = 0; i < t.shown; i++) {
		for (int k = 0; k < LABELS; k++)
			free(t.rows[i].labels[k]);
	}
	free(t.rows);
	intern_free(&t.states);
	intern_free(&t.functions);
	return err;
}

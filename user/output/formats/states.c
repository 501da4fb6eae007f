// SPDX-License-Identifier: Apache-2.0
/* The time of threads by state: a table of functions with a column for each state. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "output/amount.h"
#include "output/formats/equal_texts.h"
#include "output/output.h"
#include "output/truncate.h"
#include "profile/groups.h"
#include "profile/idle.h"
#include "profile/application_frames.h"

/* The least width of a column: "100.0%". */
#define COLUMN_WIDTH 6
#define BETWEEN      2
/* The columns that a terminal keeps for functions, if they are not more than half of it. */
#define FUNCTION_ROOM 36
/*
 * Most columns; the states with the least time are added up in one. pybpf itself tells some ten states, but a saved
 * profile can have one for each function, and a table of all by all.
 */
#define COLUMNS_MAX 32

struct column {
	uint32_t state; /* string; 0: on a CPU */
	uint64_t total;
	uint32_t place; /* that of its values in cells: the first has the most time */
};

/* Where time is: groups of the nearest function of the program's own, and of the one that runs or waits. */
struct owner {
	uint32_t own, leaf;
};

struct table {
	const struct profile *profile;
	struct output_options options;
	struct profile_groups groups;
	struct intern owners;  /* struct owner */
	uint32_t *own;         /* by stack: of profile_nearest_own() */
	struct intern columns; /* struct column */
	struct column *sorted; /* by their time */
	uint32_t width;        /* cells of an owner: COLUMNS_MAX, and one for all states beyond */
	uint64_t *cells;       /* by owner and column */
	uint32_t *order;       /* owners, by their time */
	uint32_t rows;         /* of them */
	uint64_t *self;        /* time by owner */
	bool *idle;            /* by owner: waits for work, which are the last row */
	uint64_t all;
	uint32_t shown; /* columns; those behind them are added up in one */
	size_t used;    /* columns of the terminal before the function */
};

static const char *column_name(const struct table *t, const struct column *column)
{
	return column->state ? profile_string(t->profile, column->state) : PROFILE_STATE_RUNNING;
}

static uint32_t group_of(const struct table *t, uint32_t stack)
{
	return t->groups.of_frame[profile_stack_at(t->profile, stack)->frame];
}

/* Returns the functions in which the stack's time is. */
static struct owner owner_of(const struct table *t, uint32_t stack)
{
	uint32_t waiter = profile_waiter_of(t->profile, stack);

	if (waiter == PROFILE_ROOT)
		return (struct owner){group_of(t, stack), group_of(t, stack)};
	return (struct owner){group_of(t, t->own[stack]), group_of(t, waiter)};
}

/* Finds states and owners. Returns 0 or -ENOMEM. */
static int find_columns(struct table *t)
{
	size_t count;
	const struct profile_sample *samples = profile_samples(t->profile, &count);
	bool fresh;

	for (size_t i = 0; i < count; i++) {
		const struct column column = {.state = profile_state_of(t->profile, samples[i].stack),
					      .place = t->columns.count};
		struct owner owner;
		uint32_t at;

		if (samples[i].stack == PROFILE_ROOT || !samples[i].value)
			continue;
		owner = owner_of(t, samples[i].stack);
		at = intern_add(&t->columns, &column, &fresh);
		if (at == INTERN_NONE || intern_add(&t->owners, &owner, &fresh) == INTERN_NONE)
			return -ENOMEM;
		((struct column *)intern_item(&t->columns, at))->total += samples[i].value;
	}
	return 0;
}

/* On a CPU, and then the states that have the most time. */
static int by_total(const void *a, const void *b)
{
	const struct column *x = a, *y = b;

	if (!x->state != !y->state)
		return x->state ? 1 : -1;
	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return x->place < y->place ? -1 : x->place > y->place;
}

static int sort_columns(struct table *t)
{
	uint32_t count = t->columns.count;

	t->width = count > COLUMNS_MAX ? COLUMNS_MAX + 1 : count;
	t->sorted = calloc((size_t)count + 1, sizeof(*t->sorted));
	if (!t->sorted)
		return -ENOMEM;
	if (count)
		memcpy(t->sorted, t->columns.items, count * sizeof(*t->sorted));
	qsort(t->sorted, count, sizeof(*t->sorted), by_total);
	for (uint32_t i = 0; i < count; i++) {
		struct column *column = intern_item(&t->columns, t->sorted[i].place);

		column->place = i < COLUMNS_MAX ? i : COLUMNS_MAX;
	}
	return 0;
}

static int add_up(struct table *t)
{
	uint32_t owners = t->owners.count;
	size_t count;
	const struct profile_sample *samples = profile_samples(t->profile, &count);

	t->cells = calloc((size_t)owners * t->width + 1, sizeof(*t->cells));
	t->self = calloc((size_t)owners + 1, sizeof(*t->self));
	t->idle = calloc((size_t)owners + 1, sizeof(*t->idle));
	t->order = calloc((size_t)owners + 1, sizeof(*t->order));
	if (!t->cells || !t->self || !t->idle || !t->order)
		return -ENOMEM;
	for (uint32_t i = 0; i < owners; i++)
		t->order[i] = i;
	for (size_t i = 0; i < count; i++) {
		const struct column key = {.state = profile_state_of(t->profile, samples[i].stack)}, *column;
		struct owner of;
		uint32_t owner;

		if (samples[i].stack == PROFILE_ROOT || !samples[i].value)
			continue;
		of = owner_of(t, samples[i].stack);
		owner = intern_find(&t->owners, &of);
		column = intern_item(&t->columns, intern_find(&t->columns, &key));
		t->cells[(size_t)owner * t->width + column->place] += samples[i].value;
		t->self[owner] += samples[i].value;
		t->idle[owner] = profile_is_folded_idle(t->profile, samples[i].stack);
		t->all += samples[i].value;
	}
	return 0;
}

static int by_self(const void *a, const void *b, void *arg)
{
	const struct table *t = arg;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (t->idle[x] != t->idle[y])
		return t->idle[x] ? 1 : -1;
	if (t->self[x] != t->self[y])
		return t->self[x] > t->self[y] ? -1 : 1;
	return x < y ? -1 : x > y;
}

static size_t column_width(const char *name)
{
	size_t width = text_width(name);

	return width > COLUMN_WIDTH ? width : COLUMN_WIDTH;
}

/* Chooses the columns that leave room for functions. */
static void fit_columns(struct table *t)
{
	const size_t fixed = COLUMN_WIDTH + BETWEEN, rest = column_width("rest") + BETWEEN;
	size_t kept = t->options.width >= 2 * FUNCTION_ROOM ? FUNCTION_ROOM : OUTPUT_COLUMN_LEAST;
	size_t room = t->options.width > kept ? t->options.width - kept : 0;

	t->used = fixed;
	for (t->shown = 0; t->shown < t->columns.count && t->shown < COLUMNS_MAX; t->shown++) {
		size_t width = column_width(column_name(t, &t->sorted[t->shown])) + BETWEEN;
		size_t behind = t->shown + 1 < t->columns.count ? rest : 0;

		if (t->options.width && t->used + width + behind > room)
			break;
		t->used += width;
	}
	if (t->shown < t->columns.count)
		t->used += rest;
}

static void write_cell(const struct table *t, size_t width, uint64_t value, FILE *out)
{
	if (value)
		fprintf(out, "%*.1f%%  ", (int)width - 1, 100.0 * (double)value / (double)t->all);
	else
		fprintf(out, "%*s  ", (int)width, "-");
}

/* Returns the functions of a row, which the caller frees. NULL: no memory. */
static char *row_text(const struct table *t, uint32_t index)
{
	const struct owner *owner = intern_item(&t->owners, index);
	const struct output_pair pair = {.first = owner->own,
					 .second = owner->leaf == owner->own ? PROFILE_NONE : owner->leaf,
					 .between = OUTPUT_VIA};
	size_t room = 0;

	if (t->options.width)
		room = t->options.width > t->used + OUTPUT_COLUMN_LEAST ? t->options.width - t->used
									: OUTPUT_COLUMN_LEAST;
	return output_pair_text(t->profile, &t->groups, t->options.by_line, &pair, room);
}

/* Adds an owner's time to that of another one. */
static void add_owner(struct table *t, uint32_t to, uint32_t owner)
{
	for (uint32_t i = 0; i < t->width; i++)
		t->cells[(size_t)to * t->width + i] += t->cells[(size_t)owner * t->width + i];
	t->self[to] += t->self[owner];
}

/* Adds up the rows that look alike, where there is no room for what tells them apart. Returns 0 or -ENOMEM. */
static int add_up_alike(struct table *t)
{
	uint32_t count = t->rows, *first = calloc((size_t)count + 1, sizeof(*first));
	char **texts = calloc((size_t)count + 1, sizeof(*texts));
	int err = first && texts ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < count && !err; i++) {
		texts[i] = row_text(t, t->order[i]);
		if (!texts[i])
			err = -ENOMEM;
	}
	err = err ?: output_first_alike(texts, count, first);
	for (uint32_t i = 0; i < count && !err; i++) {
		if (first[i] != i)
			add_owner(t, t->order[first[i]], t->order[i]);
	}
	t->rows = 0;
	for (uint32_t i = 0; i < count && !err; i++) {
		if (first[i] == i)
			t->order[t->rows++] = t->order[i];
	}
	output_free_texts(texts, count);
	free(first);
	return err;
}

static int write_row(const struct table *t, uint32_t index, FILE *out)
{
	const uint64_t *cells = t->cells + (size_t)index * t->width;
	char *text = row_text(t, index);
	uint64_t rest = 0;

	if (!text)
		return -ENOMEM;
	write_cell(t, COLUMN_WIDTH, t->self[index], out);
	for (uint32_t i = 0; i < t->width; i++) {
		if (i < t->shown)
			write_cell(t, column_width(column_name(t, &t->sorted[i])), cells[i], out);
		else
			rest += cells[i];
	}
	if (t->shown < t->columns.count)
		write_cell(t, column_width("rest"), rest, out);
	fprintf(out, "%s\n", text);
	free(text);
	return 0;
}

static int write_table(struct table *t, FILE *out)
{
	uint32_t count, shown;
	int err;

	fit_columns(t);
	t->rows = t->owners.count;
	qsort_r(t->order, t->rows, sizeof(*t->order), by_self, t);
	err = add_up_alike(t);
	if (err)
		return err;
	qsort_r(t->order, t->rows, sizeof(*t->order), by_self, t);
	count = t->rows;
	shown = count < t->options.rows ? count : t->options.rows;
	fprintf(out, "%*s  ", COLUMN_WIDTH, "self");
	for (uint32_t i = 0; i < t->shown; i++) {
		const char *name = column_name(t, &t->sorted[i]);

		fprintf(out, "%*s", (int)(column_width(name) - text_width(name)), "");
		text_print(name, out);
		fprintf(out, "%*s", BETWEEN, "");
	}
	if (t->shown < t->columns.count)
		fprintf(out, "%*s  ", (int)column_width("rest"), "rest");
	fprintf(out, "%s\n", output_row_noun(&t->options));
	for (uint32_t i = 0; i < shown && !err; i++)
		err = write_row(t, t->order[i + 1 == shown && t->idle[t->order[count - 1]] ? count - 1 : i], out);
	if (count > shown)
		fprintf(out, "and %u more (--limit)\n", count - shown);
	return err;
}

int output_text_states(const struct profile *p, const struct output_options *options, FILE *out)
{
	struct table t = {.profile = p, .options = *options, .own = profile_nearest_own(p)};
	int err = profile_groups_make(&t.groups, p, options->by_line ? PROFILE_BY_LINE : PROFILE_BY_FUNCTION);

	intern_init(&t.columns, sizeof(struct column), sizeof(uint32_t));
	intern_init(&t.owners, sizeof(struct owner), sizeof(struct owner));
	if (!t.options.rows)
		t.options.rows = OUTPUT_ROWS_DEFAULT;
	if (!t.own)
		err = -ENOMEM;
	err = err ?: find_columns(&t) ?: sort_columns(&t) ?: add_up(&t);
	if (!err && !t.all)
		fprintf(out, "%s: there is no %s to show.\n", output_nothing(p), output_row_noun(options));
	else if (!err)
		err = write_table(&t, out);
	intern_free(&t.columns);
	intern_free(&t.owners);
	free(t.sorted);
	profile_groups_free(&t.groups);
	free(t.own);
	free(t.cells);
	free(t.order);
	free(t.idle);
	free(t.self);
	return err;
}

// SPDX-License-Identifier: Apache-2.0
/* Sorts and filters the rows of a table, and tells which of them have changed beyond chance. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "top/model_internal.h"

/* Two-sided: 0.001 of the normal distribution. */
#define CHANCE_Z 3.29
/* Fewer samples than this in two intervals tell nothing. */
#define CHANCE_LEAST 10

static uint64_t value_by(const struct top_row *row, enum top_order order)
{
	switch (order) {
	case TOP_BY_TOTAL:
		return row->total;
	case TOP_BY_ALL_SELF:
		return row->all_self;
	case TOP_BY_ALL_TOTAL:
		return row->all_total;
	default:
		return row->self;
	}
}

struct ranked {
	const struct top_row *row;
	uint64_t value;
	const char *title, *file;
};

static int compare_numbers(int64_t one, int64_t other)
{
	return (one > other) - (one < other);
}

/* By name, where numbers count as such; then by place, and PID. */
static int compare_names(const struct ranked *one, const struct ranked *other)
{
	const struct top_row_key *a = &one->row->key, *b = &other->row->key;

	return strverscmp(one->title, other->title)
		       ?: strverscmp(one->file, other->file)
		       ?: compare_numbers(a->place.first_line, b->place.first_line)
		       ?: compare_numbers(a->place.line, b->place.line)
		       ?: compare_numbers(a->place.column, b->place.column)
		       ?: compare_numbers(a->place.end_line, b->place.end_line)
		       ?: compare_numbers(a->place.end_column, b->place.end_column)
		       ?: compare_numbers(a->pid, b->pid)
		       ?: compare_numbers(a->tid, b->tid)
		       ?: compare_numbers(a->kind, b->kind);
}

/* Equal rows have an order of their own, so that they stay where they are from one interval to the next. */
static int compare_ranked(const void *a, const void *b)
{
	const struct ranked *one = a, *other = b;

	if (one->value != other->value)
		return one->value < other->value ? 1 : -1;
	/* Those that have none now are sorted by what they had: callers first. */
	if (!one->value && one->row->all_total != other->row->all_total)
		return one->row->all_total < other->row->all_total ? 1 : -1;
	return compare_names(one, other);
}

const char *top_model_process_of(const struct top_model *m, const struct top_row *row)
{
	const struct top_row process = {.key.pid = row->key.pid};
	uint32_t i = row->key.tid ? intern_find(&m->tables[TOP_PROCESSES], &process) : INTERN_NONE;

	return i == INTERN_NONE
		       ? ""
		       : top_model_string(m,
					  ((const struct top_row *)intern_item(&m->tables[TOP_PROCESSES], i))->title);
}

const struct top_caller *top_model_caller(const struct top_row *row)
{
	const struct top_caller *most = row->callers;

	for (int i = 1; i < TOP_CALLERS; i++)
		most = row->callers[i].all_self > most->all_self ? &row->callers[i] : most;
	return most->all_self ? most : NULL;
}

static bool passes(const struct top_model *m, const struct top_row *row, const char *filter)
{
	return !filter || !filter[0] || strcasestr(top_model_string(m, row->title), filter) ||
	       strcasestr(top_model_string(m, row->key.file), filter) ||
	       strcasestr(top_model_string(m, row->container), filter) ||
	       strcasestr(top_model_process_of(m, row), filter);
}

const struct top_row **top_model_rows(const struct top_model *m, enum top_table table, enum top_order order,
				      const char *filter, size_t *found)
{
	const struct intern *rows = &m->tables[table];
	struct ranked *ranked = calloc(rows->count + 1, sizeof(*ranked));
	const struct top_row **out = calloc(rows->count + 1, sizeof(const struct top_row *));

	*found = 0;
	for (uint32_t i = 0; ranked && out && i < rows->count; i++) {
		const struct top_row *row = intern_item(rows, i);
		bool shown = table == TOP_THREADS ? row->lives || row->total : row->all_total;

		if (shown && passes(m, row, filter))
			ranked[(*found)++] = (struct ranked){
				.row = row,
				.value = value_by(row, order),
				.title = top_model_string(m, row->title),
				.file = top_model_string(m, row->key.file),
			};
	}
	if (!ranked || !out) {
		free(ranked);
		free(out);
		return NULL;
	}
	qsort(ranked, *found, sizeof(*ranked), compare_ranked);
	for (size_t i = 0; i < *found; i++)
		out[i] = ranked[i].row;
	free(ranked);
	return out;
}

int top_model_change(const struct top_model *m, const struct top_row *row)
{
	double n = (double)(row->total + row->before_total), now = m->last.duration_s, before = m->before.duration_s;
	double share, expected;

	if (n < CHANCE_LEAST || now <= 0 || before <= 0)
		return 0;
	share = now / (now + before);
	expected = n * share;
	if (fabs((double)row->total - expected) <= CHANCE_Z * sqrt(n * share * (1 - share)))
		return 0;
	return (double)row->total > expected ? 1 : -1;
}

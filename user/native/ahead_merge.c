// SPDX-License-Identifier: Apache-2.0
#include "native/ahead_merge.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

static int compare_rows(const void *a, const void *b)
{
	const struct native_ahead_row *one = a, *other = b;

	if (one->start != other->start)
		return one->start < other->start ? -1 : 1;
	return (one->end > other->end) - (one->end < other->end);
}

struct merge {
	struct pybpf_native_row *rows;
	size_t count;
	const struct pybpf_native_row *old;
	size_t nr_old, at; /* old rows, and how many of them are in place */
};

static void push(struct merge *m, uint32_t pc, uint32_t rule)
{
	/* The later one of two that begin at the same place holds. */
	if (m->count && m->rows[m->count - 1].pc == pc)
		m->count--;
	m->rows[m->count++] = (struct pybpf_native_row){pc, rule};
}

static void push_old_up_to(struct merge *m, uint32_t pc)
{
	while (m->at < m->nr_old && m->old[m->at].pc <= pc) {
		push(m, m->old[m->at].pc, m->old[m->at].rule);
		m->at++;
	}
}

/* Returns where the next old row begins that has a rule, or goes on to behind the row. */
static uint32_t free_until(const struct merge *m, uint32_t end)
{
	for (size_t i = m->at; i < m->nr_old && m->old[i].pc < end; i++) {
		if (PYBPF_RULE_KIND(m->old[i].rule) != PYBPF_NATIVE_NONE)
			return m->old[i].pc;
	}
	return end;
}

/* Adds a row whose start has no rule yet. */
static void push_new(struct merge *m, uint32_t start, uint32_t end, uint32_t rule)
{
	end = free_until(m, end);
	while (m->at < m->nr_old && m->old[m->at].pc < end)
		m->at++;
	push(m, start, rule);
	push(m, end, PYBPF_NATIVE_NONE);
}

static bool has_rule(const struct merge *m)
{
	return m->count && PYBPF_RULE_KIND(m->rows[m->count - 1].rule) != PYBPF_NATIVE_NONE;
}

int native_merge_ahead(const struct pybpf_native_row *old, size_t nr_old, struct native_ahead_row *rows, size_t nr_rows,
		       struct pybpf_native_row **out, size_t *count)
{
	struct merge m = {.old = old, .nr_old = nr_old};
	uint32_t done = 0;

	m.rows = malloc((nr_old + 2 * nr_rows + 1) * sizeof(*m.rows));
	if (!m.rows)
		return -ENOMEM;
	if (nr_rows)
		qsort(rows, nr_rows, sizeof(*rows), compare_rows);
	for (size_t i = 0; i < nr_rows; i++) {
		uint32_t start = rows[i].start > done ? rows[i].start : done;

		push_old_up_to(&m, start);
		if (start >= rows[i].end || has_rule(&m))
			continue;
		push_new(&m, start, rows[i].end, rows[i].rule);
		done = m.rows[m.count - 1].pc;
	}
	push_old_up_to(&m, UINT32_MAX);
	*out = m.rows;
	*count = m.count;
	return 0;
}

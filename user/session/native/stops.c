// SPDX-License-Identifier: Apache-2.0
#include "session/native/stops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Seconds from one question about a file to the next: from this, twice as long each time. */
#define PAUSE_LEAST_S 0.02
/* Until then stacks come that were taken before the rows were there. */
#define STALE_S 1.0

struct known_stop {
	struct native_stop stop;
	double row_at; /* CLOCK_MONOTONIC seconds: when it had its row */
	bool has_row;
};

static struct known_stop *known_at(const struct native_stops *s, uint32_t i)
{
	return intern_item(&s->known, i);
}

struct native_stops *native_stops_new(void)
{
	struct native_stops *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	intern_init(&s->known, sizeof(struct known_stop), sizeof(uint32_t));
	s->pause_s = PAUSE_LEAST_S;
	return s;
}

void native_stops_free(struct native_stops *s)
{
	if (!s)
		return;
	intern_free(&s->known);
	free(s);
}

void native_stops_add(struct native_stops *s, const struct native_stop *stop, double now)
{
	const struct known_stop fresh = {.stop = *stop};
	uint32_t i;

	if (s->known.count < NATIVE_STOPS_OF_FILE_MAX)
		i = intern_add(&s->known, &fresh, &(bool){false});
	else
		i = intern_find(&s->known, &fresh);
	if (i != INTERN_NONE)
		s->is_stale |= known_at(s, i)->has_row && now - known_at(s, i)->row_at > STALE_S;
}

bool native_stops_are_due(const struct native_stops *s, double now)
{
	return s->nr_asked || (s->next_at <= now && (s->is_stale || s->nr_passed < s->known.count));
}

static void begin_question(struct native_stops *s, const struct native_source *source)
{
	uint32_t left;

	s->is_anew = s->is_stale;
	if (s->is_stale)
		s->nr_passed = 0;
	s->is_stale = false;
	left = s->known.count - s->nr_passed;
	s->nr_asked = left < NATIVE_STOPS_MAX ? left : NATIVE_STOPS_MAX;
	s->source = *source;
}

uint32_t native_stops_next(struct native_stops *s, const struct native_source *source, struct native_stop *out)
{
	if (!s->nr_asked)
		begin_question(s, source);
	for (uint32_t i = 0; i < s->nr_asked; i++)
		out[i] = known_at(s, s->nr_passed + i)->stop;
	return s->nr_asked;
}

static bool has_row(const struct native_ahead_rows *answer, uint32_t pc)
{
	for (uint32_t i = 0; i < answer->count; i++) {
		if (answer->rows[i].start <= pc && pc < answer->rows[i].end)
			return true;
	}
	return false;
}

void native_stops_pass(struct native_stops *s, const struct native_ahead_rows *answer, double now, double pause_most_s)
{
	for (uint32_t i = 0; i < s->nr_asked && answer; i++) {
		struct known_stop *known = known_at(s, s->nr_passed + i);

		known->has_row = has_row(answer, known->stop.pc);
		known->row_at = now;
	}
	s->nr_passed += s->nr_asked;
	s->nr_asked = 0;
	/* One question more is a part of the same work. */
	if (s->nr_passed < s->known.count)
		return;
	s->next_at = now + s->pause_s;
	s->pause_s = 2 * s->pause_s < pause_most_s ? 2 * s->pause_s : pause_most_s;
}

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

/* Adds a row whose begin has no rule yet. */
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

int native_stops_merge(const struct pybpf_native_row *old, size_t nr_old, struct native_ahead_row *rows, size_t nr_rows,
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

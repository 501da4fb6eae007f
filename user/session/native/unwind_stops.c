// SPDX-License-Identifier: Apache-2.0
#include "session/native/unwind_stops.h"

#include <stdlib.h>

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

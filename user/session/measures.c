// SPDX-License-Identifier: Apache-2.0
/* The table of all that runs measure, and what is done for each, whatever the options want. */
#include "session/measure.h"

#include "session/internal.h"
#include "session/native/native.h"
#include "session/samples/event_values.h"
#include "session/samples/resident.h"
#include "session/samples/samples.h"
#include "session/samples/times.h"
#include "session/tasks/loop_blocks.h"
#include "session/tasks/suspended.h"
#include "session/thread_names.h"
#include "session/waits/gil.h"
#include "session/waits/initial_stacks.h"
#include "session/waits/intervals.h"
#include "session/waits/left_out.h"
#include "session/waits/schedstat.h"
#include "session/waits/states.h"
#include "session/waits/waits.h"

/*
 * What the order says:
 * - the time of threads is kept before the timer samples them, and to the end of all else: schedstat, states and waits
 * stand before the samples;
 * - resident memory and waits take counts in place of samples;
 * - last snapshots of tasks are taken before the initial stacks are given up and the waits stop;
 * - waits and samples say which sample of the profile has the times and intervals, which are settled behind them;
 * - the account begins with what most time or memory is in, and goes on with what is missing of it.
 */
const struct session_measure *const session_measures[] = {
	&session_native_measure,         &session_schedstat_measure,
	&session_states_measure,         &session_event_values_measure,
	&session_resident_measure,       &session_waits_measure,
	&session_initial_stacks_measure, &session_thread_names_measure,
	&session_left_out_measure,       &session_gil_measure,
	&session_suspended_measure,      &session_loop_blocks_measure,
	&session_samples_measure,        &session_times_measure,
	&session_intervals_measure,
};

void session_measures_init(struct session *s)
{
	for (size_t i = 0; i < SESSION_MEASURES; i++) {
		const struct session_measure *m = session_measures[i];

		if (m->init)
			m->init(s);
		if (!m->is_wanted || m->is_wanted(&s->options))
			s->measures[s->nr_measures++] = m;
	}
}

void session_measures_free(struct session *s)
{
	for (size_t i = SESSION_MEASURES; i-- > 0;) {
		if (session_measures[i]->free)
			session_measures[i]->free(s);
	}
}

const struct session_measure *session_measures_find_taker(uint32_t type)
{
	for (size_t i = 0; i < SESSION_MEASURES; i++) {
		if (type < 32 && session_measures[i]->records & SESSION_RECORD(type))
			return session_measures[i];
	}
	return NULL;
}

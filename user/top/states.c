// SPDX-License-Identifier: Apache-2.0
/* Names and marks of what threads do. */
#include "top/states.h"

#include <stdbool.h>

#include "session/waits/wait_name.h"

uint64_t top_states_sum(const struct top_states *states)
{
	uint64_t sum = 0;

	for (int i = 0; i < TOP_NR_STATES; i++)
		sum += states->ns[i];
	return sum;
}

uint64_t top_states_asleep(const struct top_states *states)
{
	return top_states_sum(states) - states->ns[PYBPF_STATE_RUNNING] - states->ns[PYBPF_STATE_QUEUED] -
	       states->ns[PYBPF_STATE_THROTTLED];
}

const char *top_state_name(int state)
{
	return state == TOP_ASLEEP ? "asleep" : session_state_name((enum pybpf_state)state);
}

char top_mark_of(int state)
{
	static const char marks[TOP_NR_STATES] = {
		[PYBPF_STATE_RUNNING] = '#', [PYBPF_STATE_QUEUED] = '!', [PYBPF_STATE_THROTTLED] = 'Q',
		[PYBPF_STATE_GIL] = 'G',     [PYBPF_STATE_LOCK] = 'L',   [PYBPF_STATE_DISK] = 'D',
		[PYBPF_STATE_NETWORK] = 'N', [PYBPF_STATE_PIPE] = 'P',   [PYBPF_STATE_POLL] = 'E',
		[PYBPF_STATE_CHILD] = 'C',   [PYBPF_STATE_SLEEP] = 'z',  [PYBPF_STATE_STOPPED] = 'T',
		[PYBPF_STATE_OTHER] = 'o',   [TOP_ASLEEP] = '.',
	};

	return marks[state];
}

/* Threads in these states are held up by others, however much they run besides. */
static bool is_held_up(int state)
{
	return pybpf_state_is_ready((uint32_t)state) || state == PYBPF_STATE_GIL || state == PYBPF_STATE_LOCK ||
	       state == PYBPF_STATE_DISK;
}

char top_mark_most(const struct top_states *s)
{
	uint64_t awake = s->ns[PYBPF_STATE_RUNNING] + s->ns[PYBPF_STATE_QUEUED] + s->ns[PYBPF_STATE_THROTTLED];
	int most = TOP_ASLEEP;

	for (int i = 0; i < TOP_NR_STATES; i++) {
		if (s->ns[i] > s->ns[most])
			most = i;
	}
	if (most == PYBPF_STATE_RUNNING || is_held_up(most))
		return top_mark_of(most);
	return awake * 10 >= top_states_sum(s) && awake ? TOP_MARK_MIXED : top_mark_of(most);
}

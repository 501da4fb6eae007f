// SPDX-License-Identifier: Apache-2.0
/* The time of threads by what they did. */
#ifndef TOP_STATES_H
#define TOP_STATES_H

#include <stdint.h>

#include "pybpf_wait.h"

/* States are those of enum pybpf_state, and one for a sleep of which no more is known. */
enum {
	TOP_ASLEEP = PYBPF_NR_STATES,
	TOP_NR_STATES,
};

/* The time of a thread, or of several. */
struct top_states {
	uint64_t ns[TOP_NR_STATES];
};

uint64_t top_states_sum(const struct top_states *states);
/* Returns the time in which they were neither on a CPU nor waiting for one. */
uint64_t top_states_asleep(const struct top_states *states);
/* Returns the name of a state for people. */
const char *top_state_name(int state);

/*
 * What a thread did most of an interval, as characters of its strip: of a state, that of top_mark_of(); of a thread
 * that sleeps most of it for others, but ran for a tenth and more, TOP_MARK_MIXED.
 */
#define TOP_MARK_NONE  '\0' /* it was not there */
#define TOP_MARK_MIXED '+'

char top_mark_of(int state);
/* Returns the mark of what they did most. */
char top_mark_most(const struct top_states *states);

#endif

// SPDX-License-Identifier: Apache-2.0
/* When waits were: the kernel's records of intervals are kept here until their sample is in the profile. */
#ifndef SESSION_INTERVALS_H
#define SESSION_INTERVALS_H

#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"
#include "profile/profile.h"
#include "pybpf_wait.h"

struct session_measure;
struct session_interval {
	uint64_t time_ns, ns; /* begin, in CLOCK_MONOTONIC, and length */
	uint32_t key;         /* index in session_intervals.keys */
	uint32_t pad;
};

struct session_intervals {
	struct intern keys; /* by struct pybpf_wait_key */
	struct session_interval *waiting;
	size_t count, room;
	/* Number and time of the waits in the profile, of those that are events, and of those that found no room. */
	struct pybpf_wait_time all, drawn, refused;
};

void session_intervals_init(struct session_intervals *l);
void session_intervals_free(struct session_intervals *l);

/* Takes an interval; a shorter one than PYBPF_INTERVAL_NS is left out. Returns 0 or -ENOMEM. */
int session_intervals_add(struct session_intervals *l, const struct pybpf_wait_key *key, uint64_t time_ns, uint64_t ns);
/* Takes a record of size bytes; refuse: only counts it. Returns 0, -EBADMSG or -ENOMEM. */
int session_intervals_take(struct session_intervals *l, const struct pybpf_interval_event *event, size_t size,
			   bool refuse);

/* Records that time under key was added to that sample of the profile. Returns 0 or -ENOMEM. */
int session_intervals_know(struct session_intervals *l, const struct pybpf_wait_key *key, uint32_t sample,
			   struct pybpf_wait_time time);

/*
 * Turns the intervals whose sample is known into events of the profile: the value is the length in microseconds.
 * origin_ns: the CLOCK_MONOTONIC time of the profile's beginning. Returns 0 or -ENOMEM.
 */
int session_intervals_settle(struct session_intervals *l, struct profile *profile, uint64_t origin_ns);

extern const struct session_measure session_intervals_measure;

#endif

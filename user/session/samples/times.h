// SPDX-License-Identifier: Apache-2.0
/* Times of samples: the kernel's time records wait here until their sample is in the profile. */
#ifndef SESSION_TIMES_H
#define SESSION_TIMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"
#include "profile/profile.h"
#include "pybpf.h"

struct session_measure;
/* Memory for the time of a sample: its record, and the profile's event that is made of it. */
#define SESSION_TIME_BYTES (sizeof(struct pybpf_time_event) + sizeof(struct profile_event))

struct session_times {
	struct pybpf_time_event *waiting;
	size_t count, room;
	struct intern samples; /* of the profile, by struct pybpf_count_key */
};

void session_times_init(struct session_times *t);
void session_times_free(struct session_times *t);

/* Takes a record of size bytes. Returns 0, -EBADMSG or -ENOMEM. */
int session_times_add(struct session_times *t, const struct pybpf_time_event *event, size_t size);

/* Records that counts under key belong to that sample of the profile; value: of one of them. Returns 0 or -ENOMEM. */
int session_times_know(struct session_times *t, const struct pybpf_count_key *key, uint32_t sample, uint32_t value);

/*
 * Turns all records whose sample is known by now into events of the profile; origin_ns is the CLOCK_MONOTONIC time of
 * the profile's beginning. Returns 0 or -ENOMEM.
 */
int session_times_settle(struct session_times *t, struct profile *profile, uint64_t origin_ns);

extern const struct session_measure session_times_measure;

#endif

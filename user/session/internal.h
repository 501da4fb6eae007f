// SPDX-License-Identifier: Apache-2.0
/* What the files of the session room share. */
#ifndef SESSION_INTERNAL_H
#define SESSION_INTERNAL_H

#include "session/epochs.h"
#include "session/session.h"
#include "kernel/kernel.h"
#include "processes/processes.h"
#include "session/sources.h"
#include "symbols/stacks.h"
#include "session/times.h"

struct session {
	struct session_options options;
	struct kernel *kernel;
	struct pysym *pysym;
	struct profile *profile;
	struct stacks *stacks;
	struct session_times times;
	struct session_epochs epochs;
	struct session_sources *sources; /* NULL unless asked for */
	struct processes *processes;
	uint64_t attach_ns, detach_ns;         /* CLOCK_MONOTONIC */
	uint64_t start_ns;                     /* of sampling, since 1970 */
	uint64_t map_bytes;                    /* of all maps */
	bool memory_full;                      /* no new stacks are taken */
	uint32_t consumed;                     /* bytes of events in this session_consume */
	uint64_t consume_until_ns;             /* CLOCK_MONOTONIC: of that one */
	int error;                             /* first failure in a callback */
	double next_memory_look, next_collect; /* CLOCK_MONOTONIC seconds */
	/* What user space has counted: samples of undecided processes by what those turned out to be, and more. */
	uint64_t counters[PYBPF_NR_COUNTERS];
	uint64_t unsent;
};

/* Makes a profile and a table of its stacks, in place of those that there are. Returns 0 or -ENOMEM. */
int session_new_profile(struct session *s);

/* Takes a record that the kernel sent. Returns 0 or negative errno. */
int session_take_event(struct session *s, const struct pybpf_event *event);

/* Puts a count into the profile, or where it is lost. Returns 0 or -ENOMEM. */
int session_add_count(struct session *s, const struct pybpf_count_key *key, const struct pybpf_count *count);

/* Puts facts, measure and account of the run into the profile. Returns 0 or -ENOMEM. */
int session_describe(struct session *s, const struct session_account *account);

/*
 * Takes what processes that have ended left in the kernel's maps, and forgets them. now: CLOCK_MONOTONIC seconds; sets
 * next_collect. Returns 0 or negative errno.
 */
int session_collect_ended(struct session *s, double now);

#endif

// SPDX-License-Identifier: Apache-2.0
/* Declarations that only the files of the session room share. */
#ifndef SESSION_INTERNAL_H
#define SESSION_INTERNAL_H

#include "kernel/kernel.h"
#include "processes/processes.h"
#include "session/run/epoch_pending.h"
#include "session/account/machine.h"
#include "session/measure.h"
#include "session/native/native.h"
#include "session/samples/page_owners.h"
#include "session/samples/times.h"
#include "session/session.h"
#include "session/sources/sources.h"
#include "session/tasks/loop_blocks.h"
#include "session/tasks/suspended.h"
#include "session/thread_names.h"
#include "session/waits/schedstat.h"
#include "session/waits/states.h"
#include "session/waits/waits.h"
#include "symbols/stacks.h"

struct session {
	struct session_options options;
	const struct session_measure *measures[SESSION_MEASURES]; /* those that the options want */
	size_t nr_measures;
	struct kernel *kernel;
	struct pysym *pysym;
	struct kernel_names *kernel_names; /* NULL unless asked for */
	struct profile *profile;
	struct stacks *stacks;
	struct session_times times;
	struct session_waits waits;
	struct session_schedstat schedstat;
	struct session_states states;
	struct session_loop_blocks loop_blocks;
	struct session_suspended suspended;
	struct session_thread_names thread_names;
	struct session_epoch_pending pending;
	struct session_page_owners page_owners;
	unsigned weight;                     /* what a CPU sample counts for */
	uint64_t touched;                    /* bytes of all counts of a memory event */
	uint64_t held_at_most;               /* bytes in the profile of processes that have ended */
	struct session_sources *sources;     /* NULL unless asked for */
	struct session_native_state *native; /* likewise */
	struct processes *processes;
	uint64_t attach_ns, detach_ns; /* CLOCK_MONOTONIC */
	uint64_t start_ns;             /* start of sampling, ns since 1970 */
	uint64_t epoch_end_ns;         /* of the last epoch, CLOCK_MONOTONIC; 0: none has ended */
	struct session_machine machine_begin, machine_end;
	uint64_t map_bytes;        /* memory of all maps, some of which grow */
	struct session *beside;    /* the next of the sessions of this process, which are a ring */
	bool stacks_refused;       /* as session_takes_new_stacks() tells it */
	bool memory_near;          /* as session_nears_memory_limit() tells it */
	bool times_full;           /* no further times of samples are taken */
	uint32_t consumed;         /* bytes of events in this session_consume */
	uint64_t consume_until_ns; /* CLOCK_MONOTONIC: when this session_consume has to return */
	double ended_used_s;       /* session_used_s() when sampling ended */
	double end_at;             /* when the run ends, CLOCK_MONOTONIC seconds; a large number: open */
	int error;                 /* first failure to follow processes while records are taken, which ends the run */
	double next_memory_look, next_maps_look, next_collect; /* CLOCK_MONOTONIC seconds */
	/* Counted by user space: samples of undecided processes, by what the processes turned out to be, and more. */
	uint64_t counters[PYBPF_NR_COUNTERS];
	/* Samples that the kernel counted and whose stack or process is not known, by the kernel's counter. */
	uint64_t unsent[PYBPF_NR_COUNTERS];
	uint64_t unkept[PYBPF_NR_COUNTERS]; /* likewise, for which user space found no memory */
	uint64_t lost_counts;               /* of kernel's maps, likewise; their samples are in unkept */
	uint64_t lost_records; /* of the kernel, that were broken or found no memory, and stacks likewise */
};

/* Replaces the profile and the table of its stacks by new ones. Returns 0 or -ENOMEM. */
int session_new_profile(struct session *s);

/*
 * Handles a record that the kernel sent; one that cannot be kept is counted. Returns false if its process is not known
 * yet: nothing is done or counted then.
 */
bool session_take_event(struct session *s, const struct pybpf_event *event);
/* Likewise, in the ring buffer of a struct session. Returns -EAGAIN when other work is due first (kernel/events.h). */
int session_on_record(void *ctx, void *data, size_t size);

/* Large arrays need no second copy while they grow: a jump of several MiB would pass the memory limit unseen. */
void session_let_blocks_grow_in_place(void);

/* Returns whether there is memory for the time of one more sample; else the kernel sends no further ones. */
bool session_may_keep_time(struct session *s);

/*
 * Checks the memory limit. Near it, times of samples are lost; once it is reached, stacks not known yet are, and the
 * kernel counts both. now: CLOCK_MONOTONIC seconds.
 */
void session_keep_memory(struct session *s, double now);
/* Returns whether there is memory for stacks that are not known yet. */
bool session_takes_new_stacks(const struct session *s);
/* Gives back the memory of stacks that were forgotten, and takes new ones. */
void session_keep_new_stacks(struct session *s);
/* Undoes session_join_memory(). */
void session_leave_memory(struct session *s);

/* Returns a count of the kernel's map with its value: what its samples count for, of CPU samples. */
struct pybpf_count session_weigh_count(const struct session *s, const struct pybpf_count_key *key,
				       const struct pybpf_count *count);
/* Adds a weighed count to the profile, or to a counter of lost samples. */
void session_add_count(struct session *s, const struct pybpf_count_key *key, const struct pybpf_count *count);
/* Counts the samples of a count as lost, as there is no memory for them: err < 0, the reason. */
void session_lose_count(struct session *s, const struct pybpf_count_key *key, const struct pybpf_count *count, int err);

/* Puts the facts, the measure and the account of the run into a profile. Returns 0 or -ENOMEM. */
int session_describe(const struct session *s, const struct session_account *account, struct profile *profile);

/*
 * Takes the counts of ended processes out of the kernel's maps, and forgets the processes. now: CLOCK_MONOTONIC
 * seconds; sets next_collect. Returns 0 or negative errno.
 */
int session_collect_ended(struct session *s, double now);

#endif

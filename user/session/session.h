// SPDX-License-Identifier: Apache-2.0
/* The life of a run: load, add processes, attach, consume, detach, collect. */
#ifndef SESSION_H
#define SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "discovery/discovery.h"
#include "discovery/filter.h"
#include "profile/profile.h"
#include "pybpf.h"
#include "symbols/pysym.h"
#include "kernel/kernel.h"
#include "processes/processes.h"

/* Room for distinct stacks (of each thread, where threads are told apart), and what memory the kernel then takes. */
#define SESSION_MAX_STACKS_DEFAULT 32768
#define SESSION_MAX_STACKS_LIMIT   (1u << 20)

#define SESSION_FREQ_DEFAULT 99

/* Beside max_stacks: processes that live at the same time, Python or not. */
#define SESSION_MAX_PROCESSES_DEFAULT 16384
#define SESSION_MAX_PROCESSES_LIMIT   (1u << 22)

/* pybpf's own memory and its maps together, MiB. */
#define SESSION_MAX_MEMORY_DEFAULT 256
#define SESSION_MAX_MEMORY_LEAST   32
#define SESSION_MAX_MEMORY_MOST    (1u << 20)

struct session_options {
	bool all;    /* every process that the filters let pass; else those given to session_follow */
	bool follow; /* and their children */
	struct kernel_filter users, cgroups;
	int cgroup_subsystem; /* of the v1 hierarchy that the cgroups are in, as the kernel numbers it; -1: v2 */
	const struct discovery_filter *names; /* of which processes are wanted by their names; NULL: any */
	unsigned roots;                       /* of stacks: a set of enum profile_root */
	bool merge, cmdline;                  /* call a process by its program, by its command line */
	uint32_t max_processes;
	uint64_t max_memory; /* bytes */
	unsigned freq;       /* Hz */
	enum kernel_source source;
	const struct kernel_event *events; /* that are sampled in place of the timer */
	size_t nr_events;
	bool threads;        /* tell threads apart */
	bool times;          /* keep the time of each sample */
	bool rolling;        /* the profile is taken in parts, by session_end_epoch: for a run without end */
	bool containers;     /* find out which container each process is in */
	bool sources;        /* keep the source text of the files that samples are in most */
	bool measure_kernel; /* have the kernel measure its programs' time */
	bool full_filenames;
	enum pysym_line_mode lines;
	uint32_t max_stacks;
	const char *without; /* features that this kernel has and that are not to be used, or NULL */
	uint64_t start_ns;   /* CLOCK_MONOTONIC when pybpf was started */
};

#define SESSION_OPTIONS_DEFAULT                                                                                        \
	{                                                                                                              \
		.cgroup_subsystem = -1, .roots = PROFILE_ROOT_BY_COUNT,                                                \
		.max_processes = SESSION_MAX_PROCESSES_DEFAULT,                                                        \
		.max_memory = (uint64_t)SESSION_MAX_MEMORY_DEFAULT << 20, .freq = SESSION_FREQ_DEFAULT,                \
		.max_stacks = SESSION_MAX_STACKS_DEFAULT,                                                              \
	}

/* What became of the samples. taken + lost = asked. */
struct session_account {
	uint64_t counters[PYBPF_NR_COUNTERS];
	uint64_t unsent; /* with Python frames, but the stack never came through the ring buffer */
	uint64_t lost;   /* by any cause, unsent among them */
	uint64_t taken;
	uint64_t python;             /* in the profile, with Python frames */
	uint64_t stacks;             /* distinct ones in the profile */
	uint64_t timed, timed_bytes; /* samples whose time was kept, and the memory that took */
	struct processes_counts processes;
	struct pysym_counters names;
	double duration_s;
	bool measured;
	double kernel_ns_per_sample; /* where measured */
	double user_cpu_s;
	int64_t peak_rss_kib;
	double time_to_first_sample_ms; /* negative when there was none */
	enum kernel_source source;
	unsigned freq;
};

struct session;

/* Loads the programs. Returns NULL after reporting what failed. */
struct session *session_new(const struct session_options *options);
/* Accepts NULL. */
void session_free(struct session *s);

/*
 * Follows processes, and finds those that are wanted: count pids, or all that the options let pass. Returns 0, or
 * negative errno after reporting what failed.
 */
int session_follow(struct session *s, const uint32_t *pids, size_t count);

/* Starts sampling. Returns 0, or negative errno after reporting what failed. */
int session_attach(struct session *s);
/* Keeps the timer out of step with the program: see kernel_vary_rate. */
double session_jitter(struct session *s);
/* Stops it. May be called twice. */
void session_detach(struct session *s);

/*
 * Descriptors that poll readable when session_consume has much to do, or something happened to a process; it is to be
 * called ten times a second anyway.
 */
#define SESSION_FDS 3
void session_fds(const struct session *s, int fds[SESSION_FDS]);
/* Takes what the kernel sent. Returns 0, 1 when there is more, or negative errno. */
int session_consume(struct session *s);
/*
 * What is to be done now and then: looks at new processes, takes what ended ones left in the kernel, keeps to the
 * memory limit. Returns the CLOCK_MONOTONIC second at which to be called again, or negative errno.
 */
double session_tend(struct session *s);

/* All processes that were given to session_follow have ended, and their followed children. */
bool session_all_ended(const struct session *s);
/* Was there a Python at any time? */
bool session_python_found(const struct session *s);
/* Does the walk use bpf_loop? Else a chain of programs. */
bool session_uses_bpf_loop(const struct session *s);

/*
 * Of a rolling session: calls take with a profile of what was counted since the last call, while samples are taken.
 * What cannot be told yet (a stack that has not come, a process that is not decided) is in a later one; session_collect
 * has the last. forget: stacks, code objects and profile begin anew, so that what is gone takes no more memory. Returns
 * 0 or negative errno.
 */
int session_end_epoch(struct session *s, bool forget, int (*take)(const struct profile *profile, void *arg), void *arg);

/* Samples and distinct stacks so far, for a progress line. */
void session_progress(struct session *s, uint64_t *samples, uint64_t *stacks);

/*
 * After session_detach: takes the rest and adds everything up. Fills *account; *profile belongs to the session.
 * Returns 0 or negative errno.
 */
int session_collect(struct session *s, const struct profile **profile, struct session_account *account);

#endif

// SPDX-License-Identifier: Apache-2.0
/* The life of a run: load, add processes, attach, consume, detach, collect. */
#ifndef SESSION_H
#define SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "discovery.h"
#include "profile.h"
#include "pybpf.h"
#include "pysym.h"
#include "session_perf.h"

/* Room for distinct stacks (of each thread, where threads are told apart), and what memory the kernel then takes. */
#define SESSION_MAX_STACKS_DEFAULT 32768
#define SESSION_MAX_STACKS_LIMIT   (1u << 20)

struct session_options {
	unsigned freq; /* Hz */
	enum session_perf_source source;
	bool threads;        /* tell threads apart */
	bool measure_kernel; /* have the kernel measure its programs' time */
	bool full_filenames;
	enum pysym_line_mode lines;
	uint32_t max_stacks;
	const char *without; /* features that this kernel has and that are not to be used, or NULL */
	uint64_t start_ns;   /* CLOCK_MONOTONIC when pybpf was started */
};

/* What became of the samples. taken + lost = asked. */
struct session_account {
	uint64_t counters[PYBPF_NR_COUNTERS];
	uint64_t unsent; /* with Python frames, but the stack never came through the ring buffer */
	uint64_t lost;   /* by any cause, unsent among them */
	uint64_t taken;
	uint64_t python; /* in the profile, with Python frames */
	uint64_t stacks; /* distinct ones in the profile */
	struct pysym_counters names;
	double duration_s;
	bool measured;
	double kernel_ns_per_sample; /* where measured */
	double user_cpu_s;
	int64_t peak_rss_kib;
	double time_to_first_sample_ms; /* negative when there was none */
	enum session_perf_source source;
	unsigned freq;
};

struct session;

/* Loads the programs. Returns NULL after reporting what failed. */
struct session *session_new(const struct session_options *options);
/* Accepts NULL. */
void session_free(struct session *s);

/* There is no interpreter in the process, so far: samples are taken, without Python frames. */
int session_set_other(struct session *s, pid_t pid);

/*
 * Makes a process one that is sampled. python: what is known of it, or NULL while its interpreter has not been found
 * (samples are then counted as not ready). May be called again when more is known, or after an exec. Returns 0 or
 * negative errno.
 */
int session_set_process(struct session *s, pid_t pid, const struct discovery_python *python);

/* Starts sampling. Returns 0, or negative errno after reporting what failed. */
int session_attach(struct session *s);
/* Keeps the timer out of step with the program: see session_perf_jitter. */
double session_jitter(struct session *s);
/* Stops it. May be called twice. */
void session_detach(struct session *s);

/* A descriptor that polls readable when session_consume has much to do; it is to be called ten times a second anyway.
 */
int session_fd(const struct session *s);
/* Takes what the kernel sent. Returns 0, 1 when there is more, or negative errno. */
int session_consume(struct session *s);
/* True once after the process executed another program. */
bool session_took_exec(struct session *s, pid_t pid);

/* Samples and distinct stacks so far, for a progress line. */
void session_progress(struct session *s, uint64_t *samples, uint64_t *stacks);

/*
 * After session_detach: takes the rest and adds everything up. Fills *account; *profile belongs to the session.
 * Returns 0 or negative errno.
 */
int session_collect(struct session *s, const struct profile **profile, struct session_account *account);

#endif

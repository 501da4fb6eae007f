// SPDX-License-Identifier: Apache-2.0
/* A run without end: it hands on a profile of each epoch. */
#ifndef AGENT_H
#define AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "archive/epoch_keeper.h"
#include "base/error.h"
#include "push/profile.h"
#include "serve/serve.h"
#include "session/run/run.h"

#define AGENT_EPOCH_DEFAULT_S   60
#define AGENT_EPOCH_LEAST_S     1
#define AGENT_EPOCH_MOST_S      3600
#define AGENT_FREQ_DEFAULT      19
#define AGENT_MAX_CPU_DEFAULT   0.01
#define AGENT_DIR_DEFAULT       "/var/lib/pybpf"
#define AGENT_KEEP_DEFAULT_S    (7 * 86400.0)
#define AGENT_KEEP_SIZE_DEFAULT ((uint64_t)2 << 30)

/* What is measured at the same time, each by a session of its own: one of waits of all kinds, since it has the others.
 */
#define AGENT_MODES_MAX SESSION_RUN_MAX

/* Receivers are numbered by enum push_protocol. */
#define AGENT_RECEIVERS  3
#define AGENT_LABELS_MAX OUTPUT_LABELS_MAX

struct agent_push_options {
	const char *urls[AGENT_RECEIVERS]; /* NULL: nothing is sent to such a receiver */
	struct push_options common;        /* of each receiver; url is not read, spool has a folder for each */
	struct output_label labels[AGENT_LABELS_MAX]; /* of all profiles */
	size_t nr_labels;
	double hosts_share;  /* of the hosts of a fleet that send on a day; 0: all do */
	uint32_t top_stacks; /* of each service that are sent, the rest in one row; 0: all */
};

struct agent_options {
	double epoch_s;     /* lengths of epochs vary by a fifth, so that the agents of a fleet are not in step */
	bool fixed_epochs;  /* they do not */
	const char *dir;    /* of the epochs' files; NULL: none are kept */
	double keep_s;      /* how long they are kept */
	uint64_t keep_size; /* bytes of all of them */
	struct agent_push_options push;
	struct serve_options serve; /* listen: NULL: nobody is served */
	/* What the sessions measure. Several have a folder each below dir, and an equal share of keep_size. */
	enum session_mode modes[AGENT_MODES_MAX];
	size_t nr_modes;
	double max_cpu; /* share of a CPU that pybpf may take: beyond, the rate is lowered */
	unsigned freq;  /* of each session, Hz */
	/* Called at SIGHUP, to call agent_change(); NULL: it ends the run. */
	void (*on_hangup)(void *arg);
	void *on_hangup_arg;
};

/* What the agent has done so far, and what it costs. */
struct agent_metrics {
	uint64_t epochs, late_epochs;   /* late: more than 5 % longer than planned */
	uint64_t suspends, clock_jumps; /* times that the machine slept, and that its clock was set */
	uint64_t refused_changes;       /* times that the options were to change, and could not be read */
	double cpu_s;                   /* of pybpf, its helpers, and the processes of its sinks */
	unsigned divisor;               /* of the rate: more than 1 when it was lowered */
	double epoch_cpu_s, epoch_s;    /* of the last epoch: that CPU time, and its length */
	uint64_t rss_bytes;             /* memory of pybpf's main process */
	uint64_t unanswered;            /* questions about files or memory that had no answer in time */
	struct agent_mode_metrics {
		uint64_t asked, taken, lost; /* samples, as of struct session_account */
		uint64_t other_programs;     /* of those taken, which are not in the profiles */
		uint64_t lost_time_ns;       /* of waits, and threads: there was no room for them */
		uint64_t lost_threads;
		/* Time of waits whose stack was new at the memory limit, or found no room otherwise. */
		uint64_t refused_stacks_ns, unsent_stacks_ns;
		/*
		 * Threads that slept when the agent began, and woke before their stacks were read, and the time without
		 * these stacks; threads whose names there was no time for; processes that ended before it was known
		 * what they ran.
		 */
		uint64_t late_threads, unread_stacks_ns, unread_names, missed_processes;
		/* At the end of the last epoch: threads and processes as of session_count_...(). */
		size_t unread_threads, refused_processes;
		uint64_t map_bytes; /* memory of the session's maps in the kernel */
		uint64_t unwritten; /* epochs that are not in the folder: their samples are lost there */
		uint64_t unsent;    /* epochs that were not sent, as this host was not chosen on their day */
		struct archive_keeper_counts files;
	} modes[AGENT_MODES_MAX]; /* as of struct agent_options */
	struct agent_push_metrics {
		struct push_counts counts; /* of requests, dropped ones by cause */
		/* Values of samples for which no request could be made, by mode: of CPU samples, else microseconds. */
		uint64_t unmade[AGENT_MODES_MAX];
	} push[AGENT_RECEIVERS];
	bool sends; /* the host is chosen for the day of the last epoch */
	struct serve_counts serve;
};

struct agent;

/* Opens the sinks. Returns NULL with one sentence in *error. *options is copied. */
struct agent *agent_new(const struct agent_options *options, struct error *error);
/* Accepts NULL. Closes the sinks, which hand on what they have. */
void agent_free(struct agent *a);

/*
 * Hands on an epoch after the other of attached, rolling sessions, one for each mode of the options, until a signal
 * ends the run, or their processes have ended (goes_on: as of struct session_run). Their epochs begin and end together.
 * Detaches and collects the sessions; the last epoch is handed on, too. Returns 0, or negative errno after reporting
 * what failed.
 */
int agent_run(struct agent *a, struct session *const *sessions, bool (*goes_on)(void *arg), void *goes_on_arg);

/* Returns what a mode is called: in options, folders and metrics. */
const char *agent_mode_name(enum session_mode mode);

/*
 * Takes over the lengths of epochs, the limits of the files and max_cpu, and ends the epoch that goes on when it is
 * longer. Returns 0 or negative errno, after reporting what failed.
 */
int agent_change(struct agent *a, const struct agent_options *options);
/* Counts that the options were to change, and could not be read. */
void agent_count_refused_change(struct agent *a);

void agent_get_metrics(const struct agent *a, struct agent_metrics *metrics);

#endif

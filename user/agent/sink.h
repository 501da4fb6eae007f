// SPDX-License-Identifier: Apache-2.0
/*
 * Where the agent's profiles go. Each sink is a row of the table in sinks.c: a struct agent_sink, whose state is a
 * member of struct agent (internal.h). agent.c calls the rows that the options want, in the order of a run:
 *
 *	pybpf has all its rights         open
 *	while it samples                 do_periodic_work, ten times a second or less; take, at the end of each epoch
 *	the metrics are wanted           count
 *	the options were read again      reload
 *	the run has ended                close
 */
#ifndef AGENT_SINK_H
#define AGENT_SINK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct agent;
struct agent_metrics;
struct agent_options;
struct agent_part;
struct profile;

/* An epoch of a mode that has ended. */
struct agent_epoch {
	struct agent_part *part;
	const struct profile *profile; /* with its own account and facts; valid during the call */
	uint64_t begin_ns, length_ns;  /* begin: since 1970 */
};

/* Every function may be NULL, but is_wanted. Those that return int return 0 or negative errno. */
struct agent_sink {
	const char *name;
	bool (*is_wanted)(const struct agent_options *options);

	/* Opens files, starts processes: what needs rights. *error: one sentence on what failed. */
	int (*open)(struct agent *a, struct error *error);
	/*
	 * Takes an epoch; it must not wait for a disk, a network or another process longer than some milliseconds. What
	 * is lost is counted and logged here; an error ends the run.
	 */
	int (*take)(struct agent *a, const struct agent_epoch *epoch);
	/* Does what is due, without waiting. An error, which has been logged, ends the run. */
	int (*do_periodic_work)(struct agent *a);
	/* Adds its numbers. */
	void (*count)(const struct agent *a, struct agent_metrics *metrics);
	/* a->options has changed. */
	int (*reload)(struct agent *a);
	/* Hands on what it still has. Called for a sink that was not opened, too. */
	void (*close)(struct agent *a);
};

#define AGENT_SINKS 3
extern const struct agent_sink *const agent_sinks[AGENT_SINKS];

/* files.c: the folder of epochs. */
extern const struct agent_sink agent_files_sink;
/* push.c: receivers that are sent to by HTTP. */
extern const struct agent_sink agent_push_sink;
/* serve.c: requests by HTTP. */
extern const struct agent_sink agent_serve_sink;

#endif

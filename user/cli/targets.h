// SPDX-License-Identifier: Apache-2.0
/* What a session is to sample: for the commands that open one. */
#ifndef CLI_TARGETS_H
#define CLI_TARGETS_H

#include <stdbool.h>
#include <stdint.h>

#include "discovery/filter.h"
#include "session/session.h"

/* Cgroup IDs and UIDs that the session's options point to. */
struct cli_targets {
	uint64_t *groups, *users, *not_users;
};

/* Checks that this host lets pybpf sample. Returns 0, or CLI_FAILED after one sentence on stderr. */
int cli_targets_check_host(void);
/*
 * Translates the filters into the session's options: cgroup IDs, UIDs, roots; options->follow is set by the caller.
 * of_command: the processes are those of a command. *t outlives the session. Returns 0, or CLI_FAILED after one
 * sentence on stderr; cli_targets_free() frees what was filled in both cases.
 */
int cli_targets_choose(struct cli_targets *t, struct discovery_filter *filter, struct session_options *options,
		       bool of_command);
void cli_targets_free(struct cli_targets *t);
/*
 * Checks that each PID is a Python process that can be sampled as wanted, unless its children are wanted, and that the
 * mode has something to show of one of its Pythons, which it logs. Returns 0, or non-zero after one sentence on stderr.
 */
int cli_targets_check(const struct discovery_numbers *pids, const struct session_options *options, bool children);
/* In a container with its own PID namespace, pybpf cannot see the host's processes: warns, as this may be intended. */
void cli_targets_warn(const struct session_options *options);

/*
 * After a run: says that it is not known whether Python runs in some processes, if helpers gave no answer about them.
 * Returns whether it said so.
 */
bool cli_targets_tell_undecided(const struct session *session);

#endif

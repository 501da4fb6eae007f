// SPDX-License-Identifier: Apache-2.0
/* The options of record. */
#ifndef CLI_RECORD_OPTIONS_H
#define CLI_RECORD_OPTIONS_H

#include <stdbool.h>

#include "discovery/filter.h"
#include "cli/destination.h"
#include "cli/options.h"
#include "cli/record_event.h"
#include "profile/edit.h"
#include "session/session.h"

struct cli_record_options {
	struct session_options session;
	struct discovery_filter filter;
	struct cli_record_event event;
	bool freq_given;
	bool no_children;
	bool timestamps, no_timestamps, no_source;
	struct profile_edit edit; /* of what is written: anonymize, own_only, own_paths, fold_idle, focus, ignore */
	char **command;
	const char *as; /* the user that the command runs as; NULL: pybpf's own */
	double duration_s;
	struct cli_output output;
	const char *debuginfod; /* servers of --debuginfod, or no; NULL: not given */
	const char *json_path;
	bool importlib; /* in formats for people */
	bool quiet, stats, version;
	int verbose;
};

/* record_sampling.c: the options that say how to sample, for a struct cli_record_options. */
extern const struct cli_option cli_record_sampling_options[];

/* Takes the value of --native, which may be NULL. Returns 0, or the exit code after one sentence. */
int cli_take_native(const struct cli_option *option, const char *value, struct session_options *session);

/* Does what --native-lines says. */
void cli_take_native_lines(struct session_options *session);

/*
 * Parses the command line into r, which holds the defaults. Returns 0, or the exit code after one sentence on stderr.
 * Sets *done if --help or --version was given and has been printed.
 */
int cli_record_parse(struct cli_record_options *r, int argc, char **argv, bool *done);

#endif

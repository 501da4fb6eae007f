// SPDX-License-Identifier: Apache-2.0
/* Commands: one file each, with its options and help. */
#ifndef CLI_H
#define CLI_H

#include <stdbool.h>
#include <stdint.h>

#include "rights/rights.h"

/* Exit codes: 0 done, 1 it failed, 2 the command line was wrong; a started command's own otherwise. */
#define CLI_OK     0
#define CLI_FAILED 1
#define CLI_USAGE  2

struct cli_command {
	const char *name;
	const char *summary;
	/* argv[0] is the command's name. Returns the exit code. */
	int (*run)(int argc, char **argv);
};

/* CLOCK_MONOTONIC nanoseconds at the start of main. */
extern uint64_t cli_start_ns;

int cli_record(int argc, char **argv);
int cli_doctor(int argc, char **argv);
int cli_ps(int argc, char **argv);
int cli_report(int argc, char **argv);
int cli_diff(int argc, char **argv);

/* Prints what --version does, and the versions of the libraries, if wanted. */
void cli_version(bool libraries);

/* Says one sentence about the command line. Returns CLI_USAGE. */
int cli_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Reads a decimal number of the range; whole ones only where wanted. Returns 0 or -EINVAL. */
int cli_number(const char *text, double min, double max, double *out);

/* How much is logged, by the number of -v. */
void cli_set_verbosity(int verbose);

/* Gives up rights. Returns 0, or CLI_FAILED after one sentence on stderr. */
int cli_drop_rights(const struct rights_wanted *wanted);

/*
 * Writes what is left for stdout, and closes a copy of it: some file systems (NFS, FUSE) say only then what failed.
 * Returns 0, or negative errno the first time.
 */
int cli_finish_stdout(void);

/*
 * Starts what opens and parses other programs' files (foreign.h); before anything is opened that it need not have.
 * Returns CLI_OK, or CLI_FAILED after one sentence on stderr.
 */
int cli_start_helpers(void);

#endif

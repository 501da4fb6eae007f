// SPDX-License-Identifier: Apache-2.0
/* Commands: one file each, with its options and help. */
#ifndef CLI_H
#define CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rights/rights.h"

/* Exit codes: 0 done, 1 failed, 2 wrong command line; otherwise the exit code of the command that pybpf started. */
#define CLI_OK     0
#define CLI_FAILED 1
#define CLI_USAGE  2

struct cli_command {
	const char *name;
	const char *summary;
	/* argv[0] is the command's name. Returns the exit code. */
	int (*run)(int argc, char **argv);
};

/* Prints the first page of help, with the commands, which end with one without a name. Returns CLI_OK. */
int cli_print_front(const struct cli_command *commands);

/* CLOCK_MONOTONIC nanoseconds at the start of main. */
extern uint64_t cli_start_ns;

int cli_record(int argc, char **argv);
int cli_doctor(int argc, char **argv);
int cli_ps(int argc, char **argv);
int cli_dump(int argc, char **argv);
int cli_top(int argc, char **argv);
int cli_agent(int argc, char **argv);
int cli_report(int argc, char **argv);
int cli_diff(int argc, char **argv);
/* pybpf version: as pybpf --version. */
int cli_print_version(int argc, char **argv);

/* Prints the output of --version; with libraries, also the versions of the libraries. */
void cli_version(bool libraries);

/* Reports an error in the command line, in one sentence on stderr. Returns CLI_USAGE. */
int cli_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Bytes of a place, with its NUL. */
#define CLI_PLACE_MAX 512
/* Has the messages of cli_usage() begin with where they are about, such as "FILE, line 3: "; "": with nothing. */
void cli_set_place(const char *place);
/*
 * Has messages about options that are told by their names begin with where a file has them: set_place(of, names) calls
 * cli_set_place(). NULL: all options are those of a command line.
 */
void cli_set_places(void (*set_place)(const void *of, const char *names), const void *of);
/* As cli_usage(), of options with these names, such as "--all, -p". */
int cli_usage_of(const char *names, const char *sentence);
/* Likewise, of options that are right and cannot be followed. Returns CLI_FAILED. */
int cli_fail_of(const char *names, const char *sentence);

/* Parses text as a number from min to max, which may have a fraction, into *out. Returns 0 or -EINVAL. */
int cli_number(const char *text, double min, double max, double *out);

/*
 * Parses a duration into seconds: a number, of seconds or with a unit (us, ms, s, m, h, d), or several with units, as
 * 1m30s. Returns 0 or -EINVAL.
 */
int cli_duration(const char *text, double *seconds);

/* Sets the log level by the number of -v options: 0 warnings, 1 information, 2 or more debugging. */
void cli_set_verbosity(int verbose);

/* Returns the columns of the terminal that stdout is; 0: stdout is not a terminal, and lines are not shortened. */
size_t cli_terminal_width(void);

/* Drops all rights except the wanted ones. Returns 0, or CLI_FAILED after one sentence on stderr. */
int cli_drop_rights(const struct rights_wanted *wanted);

/*
 * Flushes stdout and closes a duplicate of its descriptor: some file systems (NFS, FUSE) report a failed write only at
 * close. Returns 0 or negative errno; after a failure was returned, further calls return 0.
 */
int cli_finish_stdout(void);

/*
 * Starts the helper process that opens and parses other programs' files (helper.h). To be called before pybpf opens
 * other files, so that the helper does not inherit their descriptors. Returns CLI_OK, or CLI_FAILED after one sentence
 * on stderr.
 */
int cli_start_helpers(void);

#endif

// SPDX-License-Identifier: Apache-2.0
/* The destination and the format of a profile: -o and -f. */
#ifndef CLI_DESTINATION_H
#define CLI_DESTINATION_H

#include "cli/options.h"
#include "cli/pager.h"
#include "cli/receiver.h"
#include "cli/spare.h"
#include "output/output.h"
#include "output/file/file.h"
#include "output/file/committer.h"

struct cli_output {
	const char *path;             /* NULL: stdout, also by -o -; a file, or a URL */
	struct cli_receiver receiver; /* if it is a URL */
	char kept_path[64];           /* of the file that a profile is written to that could not be sent */
	const struct output_format *format;
	struct output_options options;
	struct output_file file;
	struct cli_spare spare;
	struct output_committer committer;
	uint64_t size; /* bytes of the file that was written; 0: no regular file */
	bool precious; /* what is written cannot be made once more */
	bool chosen;   /* by -f or -o */
	bool bare;     /* -o -: stdout, whatever it is, without a pager */
	bool paged;    /* text for a terminal goes through a pager */
	struct cli_pager pager;
};

/* The options -o and -f; their target is a struct cli_output. The second one's -o also takes a URL. */
extern const struct cli_option cli_output_path_options[], cli_output_url_options[], cli_output_format_options[];

/* Prints one entry of the list of formats below -f in --help. */
void cli_print_format(const struct output_format *format, const char *help);

/* Returns the first suffix of each format, separated by commas, in a static buffer. */
const char *cli_format_suffixes(void);

/*
 * Chooses the format, after all options were parsed: the one of -f, else by the path's suffix, else the format named
 * `fallback` if there is no path. Rejects a binary format on a terminal. Returns 0, or CLI_USAGE after one sentence on
 * stderr.
 */
int cli_output_choose(struct cli_output *output, const char *fallback);

/*
 * If the output is a URL, starts the process that sends, before anything is opened. Returns an exit code, after one
 * sentence on stderr if it is not CLI_OK.
 */
int cli_output_connect(struct cli_output *output);

/*
 * Opens the output file, so that a path that cannot be written fails before a long run, or starts the pager's process.
 * Both need rights that pybpf drops before it writes anything. Returns an exit code, after one sentence on stderr if it
 * is not CLI_OK.
 */
int cli_output_open(struct cli_output *output);

/*
 * After cli_output_open, for what cannot be made once more, such as the profile of a run: opens another file, on
 * another file system, which is written if the first one's has no room; or if the profile is to be sent, one that is
 * written if that fails. Where there is none, and a terminal,
 * cli_output_write() waits until somebody has made room.
 */
void cli_output_guard(struct cli_output *output);

/*
 * Hands the open file, and another one (NULL or zeroed: none), to a process that keeps the right to move them to their
 * final paths. Returns an exit code, after one sentence on stderr if it is not CLI_OK.
 */
int cli_output_entrust(struct cli_output *output, struct output_file *other);
/* Moves the other file to its final path. Returns 0 or negative errno. */
int cli_output_commit_other(struct cli_output *output, struct output_file *other);

/*
 * Writes the profile, and moves the file to its final path, or sends it; after a failure no file is left but the one of
 * cli_output_guard(). Returns an exit code, after one sentence on stderr if it is not CLI_OK.
 */
int cli_output_write(struct cli_output *output, const struct profile *profile);

/* Says on stderr which file was written, if one was, and how large it is. */
void cli_output_tell_file(const struct cli_output *output);
/* If a format for other programs was printed on a terminal, says how to get one for people. */
void cli_output_tell_terminal(const struct cli_output *output);

/*
 * As cli_output_write, but calls write(what, stream) in place of a format. `write` returns 0 or negative errno
 * (-ECANCELED: it has said why on stderr), and is called a second time, for stdout, if the pager cannot be run.
 */
int cli_output_through(struct cli_output *output, int (*write)(const void *what, FILE *out), const void *what);

/* Discards a file or pager that was opened and not written to. May be called at any time. */
void cli_output_discard(struct cli_output *output);

#endif

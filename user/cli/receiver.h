// SPDX-License-Identifier: Apache-2.0
/* The receiver that a profile is sent to, with -o URL. */
#ifndef CLI_RECEIVER_H
#define CLI_RECEIVER_H

#include "cli/options.h"
#include "output/output.h"
#include "push/profile.h"

/* The options of what is sent; their target is a struct cli_receiver. */
extern const struct cli_option cli_receiver_options[];

/* Filled with zeros, it stands for no receiver. */
struct cli_receiver {
	struct push_options options; /* url: NULL: there is none */
	struct push_profile how;
	char url[2048];
	struct push *push;
	struct push_counts counts; /* after cli_receiver_send() */
};

/* Returns whether the path of -o is a URL. */
bool cli_receiver_is_url(const char *path);
/*
 * Chooses the protocol by the format; a URL without a path gets OpenTelemetry's. format: NULL: not chosen; *format is
 * then that protocol's. Returns 0, or CLI_USAGE after one sentence on stderr.
 */
int cli_receiver_choose(struct cli_receiver *receiver, const char *url, const struct output_format **format);
/* Rejects options of what is sent where nothing is. Returns 0, or CLI_USAGE after one sentence on stderr. */
int cli_receiver_check_unused(const struct cli_receiver *receiver);
/*
 * Starts the process that sends, before anything is opened. Returns an exit code, after one sentence on stderr if it is
 * not CLI_OK.
 */
int cli_receiver_start(struct cli_receiver *receiver);
/* Sends the profile, and waits until that was done or has failed. Returns whether all of it was sent. */
bool cli_receiver_send(struct cli_receiver *receiver, const struct profile *profile);
/* Says on stderr what was sent. */
void cli_receiver_tell(const struct cli_receiver *receiver);
/* Ends the process. May be called at any time. */
void cli_receiver_end(struct cli_receiver *receiver);

#endif

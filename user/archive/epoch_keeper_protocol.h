// SPDX-License-Identifier: Apache-2.0
/* What the keeper's process and the one that samples send to each other, a message of SOCK_SEQPACKET each. */
#ifndef ARCHIVE_EPOCH_KEEPER_PROTOCOL_H
#define ARCHIVE_EPOCH_KEEPER_PROTOCOL_H

#include "archive/epoch_keeper.h"

struct keeper_request {
	enum {
		KEEPER_WRITE, /* with the descriptor of a file in memory */
		KEEPER_LIMIT
	} kind;
	struct archive_span span;
	struct archive_limits limits;
};

struct keeper_answer {
	enum {
		KEEPER_DONE,   /* an epoch was written, or could not be */
		KEEPER_REPORT, /* counts, and what failed beside requests */
	} kind;
	struct archive_keeper_counts counts;
	struct error error;
};

/* What the process begins with. */
struct keeper_begin {
	struct archive_store *store;
	struct archive_limits limits;
};

/* epoch_keeper_process.c: serves until the other end is closed. A child_main of struct keeper_begin. */
void keeper_run(int fd, void *state);

#endif

// SPDX-License-Identifier: Apache-2.0
/* What the keeper's process and the one that samples send to each other, a message of SOCK_SEQPACKET each. */
#ifndef ARCHIVE_KEEPER_PROTOCOL_H
#define ARCHIVE_KEEPER_PROTOCOL_H

#include "archive/keeper.h"

struct keeper_request {
	enum {
		KEEPER_COMMIT,
		KEEPER_DISCARD,
		KEEPER_LIMIT
	} kind;
	struct archive_span span;
	struct archive_limits limits;
};

struct keeper_answer {
	enum {
		KEEPER_FILE, /* with a descriptor */
		KEEPER_DONE, /* a request to commit or discard, or failed to */
		KEEPER_TOLD, /* counts, and what failed beside requests */
	} kind;
	struct archive_keeper_counts counts;
	struct error error;
};

/* What the process begins with. */
struct keeper_begin {
	struct archive_store *store;
	struct archive_limits limits;
};

/* keeper_process.c: serves until the other end is closed. A child_main of struct keeper_begin. */
void keeper_run(int fd, void *begin);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Fetches files for debuggers from servers of debuginfod, in a process of its own that has the network and nothing
 * else: it is forked before anything is opened, belongs to a user without rights, and cannot open what is in /proc. It
 * writes what it gets into one file in memory, which is empty before and holds one file at a time. Whoever reads that
 * must not trust it.
 */
#ifndef FETCH_H
#define FETCH_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Most bytes of a file: what a helper, which reads it, could use of it. */
#define FETCH_FILE_MAX ((uint64_t)128 << 20)
/* Most servers; more are refused. */
#define FETCH_SERVERS_MAX 8
/* Bytes of a build-id. */
#define FETCH_ID_MAX 32
/* Seconds after which a server that sends nothing is given up. */
#define FETCH_SILENCE_S_DEFAULT 20.0

struct fetch;

struct fetch_options {
	const char *urls; /* of the servers, separated by blanks, in the order in which they are asked */
	double silence_s; /* 0: FETCH_SILENCE_S_DEFAULT */
};

/*
 * Starts the process, and sets *started. To be called early, by a process with one thread. Returns 0, or negative errno
 * with a sentence in *error: -EINVAL for the URLs, -ENOSYS if this pybpf or this machine has no libcurl.
 */
int fetch_start(const struct fetch_options *options, struct fetch **started, struct error *error);

/* Returns the descriptor of the file in memory. */
int fetch_file(const struct fetch *fetch);

struct fetch_answer {
	/*
	 * 0: the file is there; -ENOENT: no server has it; -EFBIG: it has more than FETCH_FILE_MAX bytes; -ETIMEDOUT:
	 * the time was over; -EIO: no server could say; -EPIPE: the process is gone.
	 */
	int error;
	uint32_t server; /* number of the one that sent it, from 0 on */
	uint64_t size;   /* bytes of the file */
};

/*
 * Has the file for debuggers of a build-id fetched, from the server with that number or one after it, until the time
 * deadline_s on CLOCK_MONOTONIC. The answer comes by fetch_wait(). Returns 0, or -EPIPE if the process is gone.
 */
int fetch_ask(struct fetch *fetch, const uint8_t *id, size_t id_size, uint32_t server, double deadline_s);
/* Waits for the answer for at most this many seconds. Returns 0 and *answer, or -EINPROGRESS. */
int fetch_wait(struct fetch *fetch, double seconds, struct fetch_answer *answer);

/* Ends the process, whatever it does. Frees *ended and sets it to NULL; may be called with NULL there. */
void fetch_end(struct fetch **ended);

#endif

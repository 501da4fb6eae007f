// SPDX-License-Identifier: Apache-2.0
/* What the .c files of fetch share. */
#ifndef FETCH_INTERNAL_H
#define FETCH_INTERNAL_H

#include <stdbool.h>

#include "fetch/fetch.h"
#include "network/network.h"

/* A message to the process. */
struct fetch_question {
	uint8_t id[FETCH_ID_MAX];
	uint32_t id_size;
	uint32_t server; /* the first one to ask */
	double deadline_s;
};

/* A server, as the process knows it. */
struct fetch_server {
	char *url;    /* without a slash at its end */
	bool is_dead; /* it did not answer, and is not asked any more */
};

struct fetch_process {
	int socket;
	int file; /* in memory */
	struct fetch_server servers[FETCH_SERVERS_MAX];
	uint32_t count;
	double silence_s;
	struct network_curl curl;
};

/* Answers questions until the other end is closed. A child_main; state: struct fetch_process. */
void fetch_work(int socket, void *state);

/* transfer.c: one attempt to get a file from one server. */
struct fetch_transfer {
	const struct fetch_process *process;
	CURLM *multi;
	CURL *easy;
	uint64_t size;   /* bytes that were written */
	int write_error; /* negative errno of writing the file; 0: none */
	size_t header_bytes;
	double heard_s; /* when the server sent something last, on CLOCK_MONOTONIC */
	char error[CURL_ERROR_SIZE];
};

/* Returns 0 or -ENOMEM. */
int fetch_transfer_init(struct fetch_transfer *transfer, const struct fetch_process *process);
/*
 * Gets the file of a URL into the process's file. Returns 0, or, with the cause in `text`, a part of a sentence,
 * -ENOENT if the server does not have it, -EFBIG, -ETIMEDOUT at deadline_s, or -EIO. Ends the process when the
 * one that asks has ended.
 */
int fetch_transfer_run(struct fetch_transfer *transfer, const char *url, double deadline_s, char *text, size_t size);

#endif

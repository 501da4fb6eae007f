// SPDX-License-Identifier: Apache-2.0
/*
 * Sends profiles by HTTP, from a process of its own that has the network and nothing else: it is forked before anything
 * is opened, belongs to a user without rights, and cannot open what is in /proc. What is sent is handed to it, and
 * never waited for: it keeps a bounded queue, in memory and then on the disk, tries again what a receiver could not
 * take, and counts what became of each body.
 */
#ifndef PUSH_H
#define PUSH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Most bytes of a body, and of what is appended to the URL. */
#define PUSH_BODY_MAX   ((size_t)64 << 20)
#define PUSH_SUFFIX_MAX 2048

struct push_options {
	const char *url; /* http:// or https://, without a user and a password */
	/* Paths of files; NULL: none. Those with secrets are refused if others than their owner may read them. */
	const char *headers;     /* lines "Name: value"; secret */
	const char *token;       /* sent as "Authorization: Bearer TOKEN"; secret */
	const char *ca;          /* certificates (PEM) to trust in place of the system's */
	const char *certificate; /* the client's certificate (PEM), and */
	const char *key;         /* its key; secret */
	/*
	 * A folder, of root or the caller and writable for nobody else, with the bodies for which memory had no room:
	 * those that it has from an earlier process are sent first. It is made if it does not exist. NULL: none.
	 */
	const char *spool;
	uint64_t spool_max; /* bytes; 0: PUSH_SPOOL_MAX_DEFAULT */
	uint64_t queue_max; /* bytes in memory; 0: PUSH_QUEUE_MAX_DEFAULT */
	double retry_s;     /* a body is given up after this many seconds of attempts; 0: PUSH_RETRY_S_DEFAULT */
	double timeout_s;   /* of an attempt; 0: PUSH_TIMEOUT_S_DEFAULT */
};

#define PUSH_SPOOL_MAX_DEFAULT ((uint64_t)256 << 20)
#define PUSH_QUEUE_MAX_DEFAULT ((uint64_t)16 << 20)
#define PUSH_RETRY_S_DEFAULT   300.0
#define PUSH_TIMEOUT_S_DEFAULT 30.0

/* Why a body was not sent, and is lost. */
enum push_cause {
	PUSH_QUEUE_FULL,  /* newer ones took its place in memory */
	PUSH_SPOOL_FULL,  /* newer ones took its place on the disk */
	PUSH_SPOOL_ERROR, /* the disk did not take it, or what it has is damaged */
	PUSH_GIVEN_UP,    /* attempts failed for retry_s seconds; with a spool: twice, while the receiver took others */
	PUSH_REFUSED,     /* the receiver called the body wrong, or does not take profiles */
	PUSH_NOT_TRUSTED, /* the receiver's certificate was not trusted, or the receiver did not trust the client's */
	PUSH_CRASHED,     /* the process ended by a signal while it had the body in memory */
	PUSH_ENDED,       /* push_end() had no time left for it, or the process was gone */
	PUSH_CAUSES,
};

/*
 * What became of bodies. Each that was submitted or found in the spool is sent, dropped, or still waits:
 * submitted + found == sent + the sum of dropped + waiting + spooled.
 */
struct push_counts {
	uint64_t submitted; /* by push_send() */
	uint64_t found;     /* in the spool, from an earlier process */
	uint64_t sent, sent_bytes;
	uint64_t retried;           /* attempts that failed and were repeated */
	uint64_t rejected_profiles; /* that receivers refused, of bodies that they took (partial success) */
	uint64_t dropped[PUSH_CAUSES];
	uint64_t waiting, waiting_bytes; /* in memory */
	uint64_t spooled, spooled_bytes;
	uint64_t restarts; /* of the process, after a crash */
	double cpu_s;      /* CPU time of the process */
	bool gone;         /* nothing will be sent any more: the process and its keeper have ended */
};

struct push;

/* Checks the URL, and the files, which it reads. Returns 0, or negative errno with a sentence in *error. */
int push_check(const struct push_options *options, struct error *error);

/*
 * Starts the process, and sets *started. To be called early, by a process with one thread, with the rights to read the
 * files. Returns 0, or negative errno with a sentence in *error: -ENOSYS if this pybpf or this machine has no libcurl.
 */
int push_start(const struct push_options *options, struct push **started, struct error *error);

/* A body and how it is sent. */
struct push_request {
	const char *suffix;       /* appended to the URL, such as "?name=..."; "": nothing */
	const char *content_type; /* less than PUSH_CONTENT_TYPE_MAX bytes */
	bool compress;            /* the body is sent compressed, with Content-Encoding: gzip */
	const void *body;
	size_t size;
};
#define PUSH_CONTENT_TYPE_MAX 64

/*
 * Hands a body to the process, and never waits. Returns 0, also if the body is dropped because there is no room for
 * it, which is counted; or negative errno: -EPIPE if the process is gone, -E2BIG, -ENOMEM; it is counted as dropped
 * then.
 */
int push_send(struct push *push, const struct push_request *request);

/* Reads the counts as they are now. Does not wait. */
void push_count(const struct push *push, struct push_counts *counts);
/* Returns the name of a cause for metrics, such as "queue_full". */
const char *push_cause_name(enum push_cause cause);
/* Returns the sum of what was dropped. */
uint64_t push_dropped(const struct push_counts *counts);

/*
 * Sends what waits for at most this many seconds; what is left then goes to the spool, or is dropped. Writes the last
 * counts, unless counts is NULL. Frees *ended and sets it to NULL; may be called with NULL there.
 */
void push_end(struct push **ended, double deadline_s, struct push_counts *counts);

#endif

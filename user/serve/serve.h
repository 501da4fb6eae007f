// SPDX-License-Identifier: Apache-2.0
/*
 * Serves profiles, metrics and health by HTTP, from a process of its own that has the socket that listens and nothing
 * else: it is forked before anything is opened, belongs to a user without rights, and cannot open a file or read a
 * process. It asks the process that samples for what its clients want, by small messages of one size.
 */
#ifndef SERVE_H
#define SERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Most bytes of an answer's body, and of all bodies that wait until their clients have received them. */
#define SERVE_BODY_MAX ((size_t)64 << 20)

#define SERVE_SECONDS_DEFAULT      30 /* as Go's net/http/pprof */
#define SERVE_SECONDS_MOST_DEFAULT 120
#define SERVE_SOCKET_MODE_DEFAULT  0600

struct serve_options {
	/*
	 * ADDRESS:PORT, [ADDRESS]:PORT, or :PORT on loopback; port 0: one that is free. With a slash in it: the path of
	 * a Unix socket.
	 */
	const char *listen;
	unsigned socket_mode;  /* of the Unix socket; 0: SERVE_SOCKET_MODE_DEFAULT */
	const char *token;     /* path of a file whose first line clients have to send; NULL: none is asked for */
	unsigned seconds_most; /* of a profile; 0: SERVE_SECONDS_MOST_DEFAULT */
};

/* What a client wants of the process that samples. */
enum serve_what {
	SERVE_PROFILE, /* /debug/pprof/profile */
	SERVE_WALL,    /* /debug/pprof/wall */
	SERVE_GIL,     /* /debug/pprof/gil */
	SERVE_METRICS, /* /metrics */
	SERVE_WHATS,
};

struct serve_request {
	uint64_t id;
	bool cancelled; /* the request of this id, which came before, needs no answer any more: its client has gone */
	enum serve_what what;
	unsigned seconds; /* of a profile; else 0 */
};

/* What became of requests and clients. */
struct serve_counts {
	uint64_t requests;    /* that were read whole, whatever the answer */
	uint64_t answered;    /* with 200 */
	uint64_t wrong;       /* answered with 400, 403, 404 or 405 */
	uint64_t denied;      /* with 401: without the token */
	uint64_t unavailable; /* with 500 or 503: no answer could be made, or came in time, or pybpf is not well */
	uint64_t left;        /* whose client went away before the answer */
	uint64_t cut;         /* clients that were too slow, or the oldest of too many */
	uint64_t restarts;    /* of the process, after a crash */
	double cpu_s;         /* CPU time of the process */
	bool gone;            /* no client is served any more: the process and its keeper have ended */
};

struct serve;

/*
 * Opens the socket and starts the process. To be called early, by a process with one thread, with the rights to read
 * the token's file and to make the socket. Returns 0, or negative errno with a sentence in *error: -ENOSYS if this
 * pybpf or this machine has no libmicrohttpd.
 */
int serve_start(const struct serve_options *options, struct serve **started, struct error *error);

/* Checks the address, and the file with the token, which it reads. Returns 0, or negative errno with a sentence. */
int serve_check(const struct serve_options *options, struct error *error);

/* Returns where it listens: "http://127.0.0.1:6060", with the real port, or "unix:PATH". */
const char *serve_address(const struct serve *serve);

/*
 * Takes the next request, and never waits. Returns 1 with *request, 0 if there is none, or -EPIPE once the process and
 * its keeper are gone. When the process has crashed, all requests that were not answered are cancelled, and it is
 * started again.
 */
int serve_next(struct serve *serve, struct serve_request *request);

/*
 * Says that the process that samples is well at this moment, and whether its profiles can be had. The other process
 * answers /healthz and /readyz by this, also while it takes no other requests: with 503 if it was not called for
 * SERVE_QUICK_S.
 */
void serve_tell_well(struct serve *serve, bool is_ready);

/* An answer to a request. */
struct serve_answer {
	unsigned status;          /* of HTTP */
	const char *content_type; /* less than SERVE_CONTENT_TYPE_MAX bytes */
	const void *body;
	size_t size;
};
#define SERVE_CONTENT_TYPE_MAX 96

/*
 * Answers a request, and never waits. A request without an answer ends with 503 after its time: a profile's seconds
 * and SERVE_SLACK_S, else SERVE_QUICK_S. Returns 0, -ENOENT if no such request waits, -E2BIG for a body above
 * SERVE_BODY_MAX, which is reported to its client, or another negative errno.
 */
int serve_answer(struct serve *serve, uint64_t id, const struct serve_answer *answer);
#define SERVE_SLACK_S 30
#define SERVE_QUICK_S 10

/* Reads the counts as they are now. Does not wait. */
void serve_count(const struct serve *serve, struct serve_counts *counts);

/*
 * Ends the process, after it has sent answers for a second at most. Frees *ended and sets it to NULL; may be called
 * with NULL there.
 */
void serve_end(struct serve **ended);

/* Returns the version of libmicrohttpd if it is linked in, else NULL. */
const char *serve_linked(void);

#endif

// SPDX-License-Identifier: Apache-2.0
/* Functions and types that the .c files of push share. */
#ifndef PUSH_INTERNAL_H
#define PUSH_INTERNAL_H

#include <stdatomic.h>
#include <sys/types.h>

#include "network/curl.h"
#include "push/push.h"

/* What the files of the options hold, read before rights are given up. */
struct push_secrets {
	char *headers, *ca, *certificate, *key; /* NULL: none; headers: lines, the token's among them */
};

/* Reads the files. Returns 0, or negative errno with a sentence in *error. To be freed in both cases. */
int push_secrets_read(struct push_secrets *secrets, const struct push_options *options, struct error *error);
void push_secrets_free(struct push_secrets *secrets);

/* A message to the process; a body's bytes are in the file whose descriptor comes along. Also the spool's head. */
enum push_kind {
	PUSH_BODY,
	PUSH_END,
};

struct push_message {
	uint32_t kind;
	uint32_t compress;
	uint64_t size;        /* bytes of the body */
	uint64_t deadline_ns; /* PUSH_END: on CLOCK_MONOTONIC */
	char content_type[PUSH_CONTENT_TYPE_MAX];
	char suffix[PUSH_SUFFIX_MAX];
};

/* Shared by the process, its keeper and the process that pushes. Only numbers, which are reported and not acted on. */
struct push_shared {
	_Atomic uint64_t taken_bytes; /* of bodies that were received, as they came */
	_Atomic uint64_t found, sent, sent_bytes, retried, rejected_profiles, dropped[PUSH_CAUSES];
	_Atomic uint64_t in_memory, in_memory_bytes, spooled, spooled_bytes, restarts;
	_Atomic uint64_t cpu_ns, ended_cpu_ns; /* of the process, and of those before it that crashed */
};

/* A body with what is needed to send it. */
struct push_body {
	struct push_body *next;
	struct push_message message; /* size: of bytes, as they are sent */
	char *bytes;
	double first_s;          /* first attempt, on CLOCK_MONOTONIC; 0: none yet */
	unsigned attempts;       /* that failed, since it was taken from the queue or read from the spool */
	uint64_t spool_sequence; /* its record in the spool; 0: it is in memory only */
};

void push_body_free(struct push_body *body);

/* queue.c: bodies in memory, the oldest first. */
struct push_queue {
	struct push_body *first, **last; /* last: where the next one is appended */
	uint64_t count, bytes;
};

void push_queue_init(struct push_queue *queue);
void push_queue_append(struct push_queue *queue, struct push_body *body);
/* Removes the oldest one and returns it, or NULL. */
struct push_body *push_queue_take(struct push_queue *queue);

/* spool.c: bodies on the disk, in files that are open. */
#define PUSH_SPOOL_SEGMENTS 8

struct push_spool_record {
	struct push_spool_record *next;
	uint32_t segment;
	bool is_suspect;       /* push_spool_judge_left() has found it at fault once */
	uint64_t offset, size; /* of the record, with its head */
	uint64_t sequence;
};

struct push_spool {
	int files[PUSH_SPOOL_SEGMENTS];                                   /* -1: there is no spool */
	uint64_t used[PUSH_SPOOL_SEGMENTS], waiting[PUSH_SPOOL_SEGMENTS]; /* bytes; bodies that wait */
	uint64_t segment_max;
	uint32_t active; /* to which is appended */
	uint64_t next_sequence;
	struct push_spool_record *first; /* the oldest */
	struct push_spool_record *added; /* the last one that was added; NULL: some went since */
	uint64_t count, bytes;           /* that wait */
	uint64_t lent;                   /* sequence of the body that was read and is being sent; 0: none */
	bool lent_gone;                  /* it has gone from the disk since, for want of place */
	uint64_t cursor;                 /* sequence of the body that was read and kept last; 0: none */
	uint64_t left;                   /* of the one that all attempts failed for before the next one; 0: none */
	uint64_t dropped_full, dropped_error;
	int last_error; /* negative errno of the last one that was dropped for an error */
};

/* Opens the files of the folder and locks them. Returns 0, or negative errno with a sentence in *error. */
int push_spool_open(struct push_spool *spool, const char *folder, uint64_t max, struct error *error);
void push_spool_close(struct push_spool *spool);
/*
 * Finds what an earlier process has left. What is damaged is left out and counted. Returns 0 or negative errno.
 */
int push_spool_scan(struct push_spool *spool);
/*
 * Writes a body; older ones go if there is no place. One that was tried is the one that was left. Returns 0 or negative
 * errno; lost ones are counted in both cases, this one included.
 */
int push_spool_put(struct push_spool *spool, const struct push_body *body);
/*
 * Reads a body, one at a time: the oldest one behind the body that was kept last, or the oldest of all if there is none
 * behind it. It stays in the spool until push_spool_done() or push_spool_keep(). Returns NULL if there is none, or no
 * memory.
 */
struct push_body *push_spool_get(struct push_spool *spool);
/* Removes the body that was read: it was sent, or dropped, which the caller counts. */
void push_spool_done(struct push_spool *spool);
/*
 * The body that was read is not sent now: it is the one that was left. If it has gone meanwhile for want of place it is
 * lost, and counted.
 */
void push_spool_keep(struct push_spool *spool);
/*
 * Is told whether the receiver took the next body at its first attempt: then it was not away before, and does not take
 * the body that was left. In an outage no body is found at fault. Returns whether the one that was left is removed, as
 * it was at fault twice.
 */
bool push_spool_judge_left(struct push_spool *spool, bool taken_at_once);

/* answer.c: what a receiver's answer means. */
enum push_verdict {
	PUSH_TAKEN,
	PUSH_AGAIN,     /* it may take the body later */
	PUSH_WRONG,     /* it will never take it */
	PUSH_DENIED,    /* likewise with this token: one that was read later may be another */
	PUSH_UNTRUSTED, /* likewise, for its certificate */
};

struct push_answer {
	long status;              /* of HTTP */
	const char *content_type; /* NULL: none */
	const char *bytes;        /* of the answer's body, at most PUSH_ANSWER_MAX */
	size_t size;
};
#define PUSH_ANSWER_MAX 65536

struct push_judgement {
	enum push_verdict verdict;
	uint64_t rejected; /* profiles, of a body that was taken */
	char text[512];    /* what the receiver says; "": nothing */
};

void push_judge(const struct push_answer *answer, struct push_judgement *judgement);
/*
 * Returns the seconds until the next attempt: retry_after_s if the receiver named them, else a random part of a limit
 * that doubles with each attempt. random: 0 to 1.
 */
double push_wait_s(unsigned attempts, double retry_after_s, double random);

/* worker_keeper.c: forks the process, and forks it again when it crashes. */
struct push_process {
	int socket;
	struct push_shared *shared;
	struct push_spool spool;
	struct push_secrets secrets;
	struct network_curl curl;
	const char *url;
	uint64_t queue_max;
	double retry_s, timeout_s;
};

/* A child_main of struct push_process. */
void push_keep(int socket, void *state);
/* worker.c: the process that has the network. */
void push_work(struct push_process *process) __attribute__((noreturn));

/* transfer.c: one attempt to send a body. */
struct push_transfer {
	const struct push_process *process;
	CURLM *multi;
	CURL *easy;
	struct curl_slist *headers;
	char *url;
	char error[CURL_ERROR_SIZE];
	char answer[PUSH_ANSWER_MAX];
	size_t answer_size, header_bytes;
	bool runs;
};

/* What became of an attempt. */
struct push_outcome {
	enum push_verdict verdict;
	uint64_t rejected;
	double retry_after_s; /* 0: the receiver named no time */
	char text[1024];      /* a part of a sentence, of what failed */
};

/* Returns 0, or -ENOMEM. */
int push_transfer_init(struct push_transfer *transfer, const struct push_process *process);
/*
 * Begins an attempt. The body stays the caller's, and must live until its end. Returns 0, or negative errno with the
 * cause in transfer->error.
 */
int push_transfer_begin(struct push_transfer *transfer, const struct push_body *body);
/* Goes on with what can be done without waiting. Returns whether the attempt has ended, with *outcome. */
bool push_transfer_step(struct push_transfer *transfer, struct push_outcome *outcome);
/* Waits for the network or for the descriptor. Returns whether the descriptor is readable. */
bool push_transfer_wait(struct push_transfer *transfer, int fd, double seconds);

#endif

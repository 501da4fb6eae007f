// SPDX-License-Identifier: Apache-2.0
/* The names that Python's module threading gives to threads, read while the threads live. */
#ifndef SESSION_THREAD_NAMES_H
#define SESSION_THREAD_NAMES_H

#include <stddef.h>

#include "base/intern.h"
#include "processes/processes.h"
#include "pybpf.h"

struct session;
struct session_measure;

struct session_thread_names {
	struct intern threads;      /* their names */
	struct intern interpreters; /* where they have their threads */
	struct intern users;        /* what reading has taken, where users share the time */
	double until_s;             /* no name is read when session_used_s() is beyond */
	double share_s;             /* of each user's threads, until then */
	uint64_t unread;            /* threads whose names were not read at all for that */
	double next_s;              /* when names are read again, CLOCK_MONOTONIC */
	uint32_t turn;              /* the next of the threads to be read again */
	uint32_t look;              /* the next of the threads of which is asked whether it has ended */
};

void session_thread_names_init(struct session_thread_names *names);
void session_thread_names_free(struct session_thread_names *names);

/*
 * From now on no name is read when session_used_s() is beyond that: each takes up to a millisecond, and there may be
 * thousands. What was read before stays.
 */
void session_thread_names_read_until(struct session_thread_names *names, double used_s);

/* Notes a thread that was there when the run began; its name is read when it is asked for. Without memory it is
 * counted. */
void session_thread_names_note(struct session *s, const struct pybpf_thread_key *thread, uint64_t thread_id);

/*
 * Returns the thread's name in Python, read once more if it lives, or `kernel`, its name in the kernel: where Python's
 * is not known, or is one that Python made up while the kernel's was given. One that has had other names meanwhile is
 * "NAME and other names". Valid until the next call.
 */
const char *session_find_thread_name(struct session *s, const struct processes_record *process,
				     const struct pybpf_thread_key *thread, const char *kernel);

extern const struct session_measure session_thread_names_measure;

#endif

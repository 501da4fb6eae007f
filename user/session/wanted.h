// SPDX-License-Identifier: Apache-2.0
/* Processes that the options choose, although the kernel has met none of their threads. */
#ifndef SESSION_WANTED_H
#define SESSION_WANTED_H

struct session;

/*
 * Marks as wanted the processes that the filters let pass although the kernel met none of their threads. Before the
 * counts of processes are taken.
 */
void session_note_wanted(struct session *s);

#endif

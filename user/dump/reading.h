// SPDX-License-Identifier: Apache-2.0
/* What the error of a read says of a thread. */
#ifndef DUMP_READING_H
#define DUMP_READING_H

enum dump_reading {
	DUMP_READ,
	DUMP_GONE,   /* the thread has ended, or no interpreter has it any more */
	DUMP_UNREAD, /* nothing is known of the thread, as where a helper crashed: it is shown with that */
	DUMP_FAILED, /* pybpf itself cannot go on: without memory, or a signal has ended the command */
};

/* Judges what dump_read_stack() or dump_read_state() has returned. */
enum dump_reading dump_judge_reading(int err);

#endif

// SPDX-License-Identifier: Apache-2.0
/* --event and --period of record: what takes a sample. */
#ifndef CLI_RECORD_EVENT_H
#define CLI_RECORD_EVENT_H

#include "kernel/event.h"
#include "session/session.h"

struct cli_option;

struct cli_record_event {
	const char *name; /* of a counted event; NULL: the timer */
	bool memory;      /* --mode=memory, in place of an event */
	uint64_t period;  /* 0: not given */
	struct kernel_event event;
	struct kernel_event_text text;
};

/* Takes --event: the unit of the timer into session, or a counted event into event. Returns 0, or the exit code. */
int cli_take_event(const struct cli_option *option, const char *value, struct session_options *session,
		   struct cli_record_event *event);

/*
 * After all options: has the session sample the event, which must stay where it is. freq: --freq was given. pid: the
 * only process, or 0. Returns 0, or the exit code after one sentence.
 */
int cli_choose_event(struct session_options *session, struct cli_record_event *event, bool freq, uint32_t pid);

#endif

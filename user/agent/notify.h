// SPDX-License-Identifier: Apache-2.0
/* Tells a service manager how the agent is: sd_notify(3), whose protocol is a text to the socket of NOTIFY_SOCKET. */
#ifndef AGENT_NOTIFY_H
#define AGENT_NOTIFY_H

#include "base/error.h"

/* Filled with zeros, it notifies nobody. */
struct agent_notify {
	int fd;            /* 0: no service manager asked for it */
	double watchdog_s; /* interval in which the manager wants to hear of the agent; 0: none */
	double next;       /* CLOCK_MONOTONIC seconds: when the manager is notified next that the agent works */
};

/*
 * Opens the socket, which needs rights, where the environment names one. Returns 0, or negative errno with one sentence
 * in *error.
 */
int agent_notify_open(struct agent_notify *notify, struct error *error);
/* Sends a state, such as "READY=1". What cannot be sent now is not sent: nothing waits for the manager. */
void agent_notify_tell(const struct agent_notify *notify, const char *state);
/* Tells that the agent works, if that is due. To be called often. */
void agent_notify_tell_alive(struct agent_notify *notify);
/* May be called twice, and on a zeroed struct. */
void agent_notify_close(struct agent_notify *notify);

#endif

// SPDX-License-Identifier: Apache-2.0
/* Names of threads in the kernel (comm) that no sample and no switch has brought. */
#ifndef SESSION_COMM_H
#define SESSION_COMM_H

struct pybpf_thread;
struct session;

/*
 * Gives the thread a name in the kernel's map, where the sampler and the scheduler have met it not yet, if the profile
 * needs its name.
 */
void session_note_comm(struct session *s, const struct pybpf_thread *thread);

#endif

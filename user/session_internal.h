// SPDX-License-Identifier: Apache-2.0
/* What the files of the session room share. */
#ifndef SESSION_INTERNAL_H
#define SESSION_INTERNAL_H

#include "session.h"
#include "session_kernel.h"

struct pybpf_bpf;
struct ring_buffer;
struct session_stacks;

struct session {
	struct session_options options;
	struct session_kernel kernel;
	struct pybpf_bpf *skel;
	struct session_perf perf;
	struct bpf_link *exec_link;
	struct ring_buffer *ring;
	struct pysym *pysym;
	struct profile *profile;
	struct session_stacks *stacks;
	uint32_t next_proc_id;
	uint32_t nr_layouts;
	int stats_fd;
	pid_t exec_pid; /* of the last exec that nobody has asked for, or 0 */
	uint64_t attach_ns, detach_ns;
	uint32_t consumed; /* bytes of events in this session_consume */
	int error;         /* first failure in a callback */
};

/* Stacks that came through the ring buffer: kernel's id -> stack in the profile. */
struct session_stacks *session_stacks_new(struct pysym *pysym, struct profile *profile);
void session_stacks_free(struct session_stacks *t);
/* Takes a stack record of size bytes. Returns 0, -EBADMSG or -ENOMEM. */
int session_stacks_add(struct session_stacks *t, const struct pybpf_stack_event *event, size_t size);
/* Names what could not be named when it came. Returns 0 or -ENOMEM. */
int session_stacks_finish(struct session_stacks *t);
/* The profile's stack, or PROFILE_NONE when it never came. */
uint32_t session_stacks_find(const struct session_stacks *t, uint64_t stack_id);
uint64_t session_stacks_count(const struct session_stacks *t);

#endif

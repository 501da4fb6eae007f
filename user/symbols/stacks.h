// SPDX-License-Identifier: Apache-2.0
/* Stacks that came through the ring buffer: kernel's id -> stack in the profile. */
#ifndef SYMBOLS_STACKS_H
#define SYMBOLS_STACKS_H

#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"
#include "pybpf.h"
#include "symbols/pysym.h"

struct session_stacks;

struct session_stacks *session_stacks_new(struct pysym *pysym, struct profile *profile);
void session_stacks_free(struct session_stacks *t);

/*
 * Is told of the file of each function that is new in the profile, and of the rights of the thread that ran it. Returns
 * 0 or -ENOMEM.
 */
typedef int session_stacks_met(void *arg, uint64_t proc_id, const struct pybpf_rights *rights, const char *file,
			       const char *path);
void session_stacks_tell_files(struct session_stacks *t, session_stacks_met *met, void *arg);

/*
 * Takes a stack record of size bytes. One with a code object that is not known yet is put off. Returns 0; -EBADMSG;
 * -ENOENT, keeping nothing, when pysym does not know the process; -ENOMEM.
 */
int session_stacks_add(struct session_stacks *t, const struct pybpf_stack_event *event, size_t size);

/* Names what was put off, with notes where there is no name; to be called before pysym forgets the process. Returns 0
 * or -ENOMEM. */
int session_stacks_finish_process(struct session_stacks *t, uint64_t proc_id);
/* The same for all processes. */
int session_stacks_finish(struct session_stacks *t);

/* The profile's stack, or PROFILE_NONE when it never came. */
uint32_t session_stacks_find(const struct session_stacks *t, uint64_t stack_id);
/* Forgets an id; the profile keeps its stack. One that is not known is none to forget. */
void session_stacks_remove(struct session_stacks *t, uint64_t stack_id);

/* Distinct stacks that came, those that were removed too. */
uint64_t session_stacks_count(const struct session_stacks *t);

#endif

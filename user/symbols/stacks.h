// SPDX-License-Identifier: Apache-2.0
/* Stacks that came through the ring buffer: kernel's id -> stack in the profile. */
#ifndef SYMBOLS_STACKS_H
#define SYMBOLS_STACKS_H

#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"
#include "pybpf.h"
#include "symbols/pysym.h"

struct stacks;

struct stacks *stacks_new(struct pysym *pysym, struct profile *profile);
void stacks_free(struct stacks *t);

/*
 * Is told of the file of each function that is new in the profile, and of the rights of the thread that ran it. Returns
 * 0 or -ENOMEM.
 */
typedef int stacks_met(void *arg, uint64_t proc_id, const struct pybpf_rights *rights, const char *file,
		       const char *path);
void stacks_tell_files(struct stacks *t, stacks_met *met, void *arg);

/*
 * Takes a stack record of size bytes. One with a code object that is not known yet is put off. Returns 0; -EBADMSG;
 * -ENOENT, keeping nothing, when pysym does not know the process; -ENOMEM.
 */
int stacks_add(struct stacks *t, const struct pybpf_stack_event *event, size_t size);

/* Names what was put off, with notes where there is no name; to be called before pysym forgets the process. Returns 0
 * or -ENOMEM. */
int stacks_finish_process(struct stacks *t, uint64_t proc_id);
/* The same for all processes. */
int stacks_finish(struct stacks *t);

/* The profile's stack, or PROFILE_NONE when it never came. */
uint32_t stacks_find(const struct stacks *t, uint64_t stack_id);
/* Forgets an id; the profile keeps its stack. One that is not known is none to forget. */
void stacks_remove(struct stacks *t, uint64_t stack_id);

/* Distinct stacks that came, those that were removed too. */
uint64_t stacks_count(const struct stacks *t);

#endif

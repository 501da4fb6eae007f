// SPDX-License-Identifier: Apache-2.0
/* Stacks from the ring buffer: maps the kernel's id of a stack to the stack in the profile. */
#ifndef SYMBOLS_STACKS_H
#define SYMBOLS_STACKS_H

#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"
#include "profile/edit.h"
#include "profile/profile.h"
#include "pybpf.h"
#include "symbols/kernel_names.h"
#include "symbols/native/native_frames.h"
#include "symbols/pysym.h"

struct stacks;

struct stacks *stacks_new(struct pysym *pysym, struct profile *profile);
void stacks_free(struct stacks *t);

/* A function that ran, and the thread that ran it. */
struct stacks_function {
	uint64_t proc_id;
	uint32_t runtime;
	const struct pybpf_frame *walked;
	const struct pysym_frame *named;
	const struct pybpf_rights *rights; /* the thread's */
};

/* Called for each function and line that is new in the profile. Returns 0 or -ENOMEM. */
typedef int stacks_on_first_use(void *arg, const struct stacks_function *function);
void stacks_set_on_first_use(struct stacks *t, stacks_on_first_use *on_first_use, void *arg);

/* Files in these paths are the program's own, too; they stay the caller's. */
void stacks_set_own(struct stacks *t, const struct profile_edit_texts *paths);

/* Names addresses in the kernel, which are left out otherwise; kernel stays the caller's, and may be NULL. */
void stacks_name_kernel(struct stacks *t, struct kernel_names *kernel);

/* Puts native frames between those of Python; native stays the caller's. Without it they are left out. */
void stacks_set_native(struct stacks *t, struct native_frames *native);

/*
 * Takes a stack record of size bytes. A stack with a code object or a native function that has no name yet is deferred.
 * Returns 0; -EBADMSG; -ENOENT, keeping nothing, when pysym does not know the process; -ENOMEM.
 */
int stacks_add(struct stacks *t, const struct pybpf_stack_event *event, size_t size);

/*
 * Puts the tasks of a record that was taken and the functions of a suspended task on top of a stack, the first of the
 * frames first. rights: with which stacks_set_on_first_use()'s function is called; NULL: it is not. Returns 0, -ENOENT
 * when pysym does not know the process, -ENOMEM.
 */
int stacks_push_suspended(struct stacks *t, const struct pybpf_stack_event *event, const struct pybpf_rights *rights,
			  const struct pybpf_frame *frames, uint32_t *stack);

/* Takes a record of tasks, to which records of stacks refer. Returns 0, -EBADMSG or -ENOMEM. */
int stacks_add_tasks(struct stacks *t, const struct pybpf_task_event *event, size_t size);

/*
 * Names the process's deferred stacks, with notes for frames without a name; to be called before pysym forgets the
 * process. Returns the number of those that found no memory, and are given up.
 */
size_t stacks_finish_process(struct stacks *t, uint64_t proc_id);
/*
 * Tries deferred stacks once more, for which names have come since. Those that find no memory now are tried again
 * later.
 */
void stacks_retry(struct stacks *t);
/* As stacks_finish_process(), for all processes. */
size_t stacks_finish(struct stacks *t);

/*
 * Adds the profile's stack that stands for samples without Python frames; PROFILE_NONE without memory. One whose comm
 * is not empty has the thread's name on top.
 */
uint32_t stacks_add_pseudo(struct stacks *t, const struct pybpf_pseudo_stack *pseudo);

/* Returns the profile's stack, or PROFILE_NONE when no record had the id. */
uint32_t stacks_find(const struct stacks *t, uint64_t stack_id);
/* Returns how the search for the stack's native frames ended, and sets how they were joined with those of Python. */
enum pybpf_native_end stacks_find_native(const struct stacks *t, uint64_t stack_id, enum native_join *join);
/* Forgets an id; the profile keeps its stack. Does nothing for an unknown id. */
void stacks_remove(struct stacks *t, uint64_t stack_id);

/*
 * Copies the stacks with these ids, a table of uint64_t, from another table into an empty one and its profile. Returns
 * 0 or -ENOMEM.
 */
int stacks_keep(struct stacks *t, const struct stacks *from, const struct intern *ids);

/* Returns the number of distinct stacks received, including removed ones and without those of stacks_keep(). */
uint64_t stacks_count(const struct stacks *t);

#endif

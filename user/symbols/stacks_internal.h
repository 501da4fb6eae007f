// SPDX-License-Identifier: Apache-2.0
/* What stacks.c and stacks_build.c share. */
#ifndef SYMBOLS_STACKS_INTERNAL_H
#define SYMBOLS_STACKS_INTERNAL_H

#include "symbols/stacks.h"
#include "symbols/tasks/tasks.h"

struct stacks_stack {
	uint64_t id;
	uint32_t index; /* in the profile */
	uint16_t join;  /* enum native_join */
	uint16_t end;   /* enum pybpf_native_end */
};

struct stacks {
	struct pysym *pysym;
	struct profile *profile;
	struct intern table;   /* struct stacks_stack */
	struct intern waiting; /* struct waiting, of stacks.c */
	struct tasks tasks;
	uint64_t count;
	struct kernel_names *kernel;
	struct native_frames *native;
	stacks_on_first_use *on_first_use;
	void *on_first_use_arg;
	const struct profile_edit_texts *own; /* NULL: none */
};

/*
 * Builds the profile's stack. last: nothing more will become known. Sets index, join and end of *made. Returns 0,
 * -ENOENT when a name is not known yet, or -ENOMEM.
 */
int stacks_build(struct stacks *t, const struct pybpf_stack_event *event, bool last, struct stacks_stack *made);

#endif

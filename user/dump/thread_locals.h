// SPDX-License-Identifier: Apache-2.0
/* The variables of a thread in a snapshot. */
#ifndef DUMP_THREAD_LOCALS_H
#define DUMP_THREAD_LOCALS_H

#include <stdint.h>

struct dump_process;
struct dump_stack;
struct dump_thread;
struct pysym;

/* Takes locals and frames away from the stack, which is of this runtime of the process. */
void dump_keep_locals(struct dump_thread *thread, uint32_t runtime, struct dump_stack *stack);
void dump_forget_locals(struct dump_thread *thread);
/*
 * Finds which of the frames that are shown is which of those that were walked: some of these are not shown, and between
 * them there may be notes. From a frame on that is neither, nothing is known. proc_id: the process in pysym. Returns 0
 * or -ENOMEM.
 */
int dump_number_frames(const struct dump_process *process, struct pysym *pysym, uint64_t proc_id,
		       struct dump_thread *thread);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Stops a process while it is looked at: --freeze. Each of its threads is traced (ptrace(2), PTRACE_SEIZE); whenever
 * the tracer ends, even by SIGKILL, the kernel lets its threads go on.
 */
#ifndef DUMP_FREEZE_H
#define DUMP_FREEZE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/intern.h"
#include "dump/state.h"
#include "symbols/walk/unwind.h"

struct dump_freeze {
	pid_t pid;
	struct intern threads; /* struct dump_frozen, by TID */
	uint64_t began_ns;
};

/*
 * Stops all threads of the process. One in an uninterruptible sleep is left as it is after a second: it stops when it
 * leaves that. Returns 0, or negative errno with a sentence in *error and nothing stopped.
 */
int dump_freeze(pid_t pid, struct dump_freeze *f, struct error *error);

/*
 * Stops one thread; its process goes on. Returns 0, or negative errno and stops nothing: -ESRCH if it has ended,
 * -EBUSY if it did not stop in that time.
 */
int dump_freeze_thread(pid_t pid, pid_t tid, uint64_t patience_ns, struct dump_freeze *f);

/* Returns what a thread did when it was stopped. */
struct dump_stop dump_stop_of(const struct dump_freeze *f, pid_t tid);

/* Fills in the registers of a thread that is stopped. Returns whether it is. */
bool dump_registers_of(const struct dump_freeze *f, pid_t tid, struct unwind_registers *out);

/* Lets the threads go on, with the signals that came meanwhile. Returns for how many nanoseconds they stood. */
uint64_t dump_thaw(struct dump_freeze *f);

#endif

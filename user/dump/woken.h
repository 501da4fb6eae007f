// SPDX-License-Identifier: Apache-2.0
/* Whether a thread that has stopped was woken from the sleep of a system call to stop, by its registers. */
#ifndef DUMP_WOKEN_H
#define DUMP_WOKEN_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/user.h>

/* pid: of its process, or its own TID. Some calls are never begun anew: epoll_wait(), receiving with a timeout. */
bool dump_was_woken(pid_t pid, const struct user_regs_struct *regs);

#endif

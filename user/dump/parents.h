// SPDX-License-Identifier: Apache-2.0
/* Who started the process, and who started that one. */
#ifndef DUMP_PARENTS_H
#define DUMP_PARENTS_H

#include <stddef.h>
#include <sys/types.h>

/* As many as a profile keeps (PROFILE_PARENTS_MAX). */
#define DUMP_PARENTS_MAX 32

struct dump_parent {
	pid_t pid, inside; /* inside: in its own PID namespace */
	char comm[16];
};

struct dump_parents {
	struct dump_parent items[DUMP_PARENTS_MAX]; /* the nearest first */
	size_t count;
};

/*
 * Reads who started a process, up to the first one below init or, in a container, its first process. inside: the
 * process's PID in its own namespace. One that has ended is not known, nor what is above it.
 */
void dump_parents_read(pid_t pid, pid_t inside, struct dump_parents *out);

#endif

// SPDX-License-Identifier: Apache-2.0
/* What the files that read a process share: collect.c, collect_threads.c, collect_gil.c and collector.c. */
#ifndef DUMP_COLLECT_H
#define DUMP_COLLECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "dump/dump.h"
#include "dump/freeze.h"
#include "dump/sources.h"
#include "dump/threads.h"
#include "pybpf.h"
#include "symbols/pysym.h"
#include "symbols/stacks.h"
#include "symbols/walk/walk_user.h"

/* The only process of these tables. */
#define DUMP_PROC_ID 1

struct dump_collector_runtime {
	struct pybpf_runtime place;
	const struct pybpf_layout *layout;
	const struct discovery_python *python;
};

struct dump_collector {
	struct dump_process *out;
	pid_t pid;
	bool inside_differs; /* the process is in another PID namespace */
	bool frozen;         /* by its control group */
	bool stopped;        /* by freeze */
	bool tasks;          /* asyncio's are wanted */
	bool native;         /* native frames are wanted */
	bool cannot_stop;    /* a thread, as it was said */
	bool brief;          /* as in struct dump_wanted */
	const struct dump_core *core;
	const struct dump_peers *peers;
	struct dump_locals_wanted locals;
	struct dump_freeze freeze; /* the threads that are stopped: all of them, or the one that is being read */
	uint64_t stop_timeout_ns;  /* time that was spent waiting for threads that did not stop */
	uint64_t native_moment;    /* as dump_read_native() takes it */
	struct discovery_python *pythons;
	struct dump_collector_runtime runtimes[PYBPF_MAX_RUNTIMES];
	size_t nr_runtimes;
	struct walk_memory memory;
	int silent; /* error with which a read of the memory had no answer; 0: each had one */
	struct pysym *pysym;
	struct stacks *stacks;
	struct dump_sources sources;
	uint64_t last_stack_id;
	struct dump_known_list known;
	/* threading._active of the interpreter that was met last. */
	uint64_t names_interp, names;
};

/* collector.c */

/* Notes that a part could not be read. The first reason is the one to tell: others follow from it. */
void dump_note_unread(struct dump_collector *c, int err);
/* Returns whether the process cannot change while it is read. */
bool dump_is_stopped(const struct dump_collector *c);
/* Returns what Python knows of the thread, or NULL. */
const struct dump_known *dump_find_known(const struct dump_collector *c, const struct dump_thread *thread);

/* collect_threads.c */

/* Reads all threads: states, stacks and what else is wanted. Returns 0 or negative errno. */
int dump_read_threads(struct dump_collector *c);
/* Reads a thread of Python once more; what the earlier read has told stays where this one has no answer. */
int dump_read_again(struct dump_collector *c, struct dump_thread *thread);

/* Tells which threads run a function of another interpreter than the main one. */
void dump_mark_subinterpreters(struct dump_collector *c);

/* collect_gil.c */

/* Marks the threads that have a GIL, each GIL once, when all threads have been read. Returns 0 or negative errno. */
int dump_mark_gil_holders(struct dump_collector *c);

#endif

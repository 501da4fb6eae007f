// SPDX-License-Identifier: Apache-2.0
/* A snapshot of what every thread of a Python process does now. */
#ifndef DUMP_H
#define DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/error.h"
#include "discovery/list.h"
#include "dump/core.h"
#include "dump/greenlets.h"
#include "dump/index.h"
#include "dump/locals.h"
#include "dump/locks.h"
#include "dump/native.h"
#include "dump/parents.h"
#include "dump/state.h"
#include "dump/tasks.h"
#include "dump/threads.h"
#include "profile/profile.h"
#include "session/waits/wait_name.h"

/* Where a thread is that runs. */
enum dump_cpu {
	DUMP_CPU_UNKNOWN,
	DUMP_ON_CPU,
	DUMP_WAITS_FOR_CPU,
};

/* A line of a source, without blanks around it. */
struct dump_line {
	char *text;   /* NULL: not known */
	size_t begin; /* bytes before it */
};

struct dump_thread {
	pid_t tid, inside; /* inside: in its own PID namespace */
	char *name;        /* Python's, else the kernel's; any bytes */
	struct dump_state state;
	enum dump_cpu cpu;
	uint64_t stack_id;
	uint32_t stack;      /* of dump_process.stacks; PROFILE_ROOT: without Python frames */
	bool is_python;      /* an interpreter knows the thread */
	uint64_t gil;        /* address of the GIL that it needs; 0: none, or not known */
	bool has_gil;        /* it held that GIL when all threads had been read */
	bool is_missing;     /* the core file does not have its C stack, so that nothing is known of its stack */
	int unread;          /* error with which reading it failed: it has no stack then; 0: it was read */
	bool state_unread;   /* what it does is not known, either */
	bool native_unread;  /* its native frames could not be read */
	bool native_due;     /* it is to be stopped for them */
	bool was_stopped;    /* it was, alone */
	uint64_t tstate;     /* its PyThreadState */
	uint64_t task;       /* address of the asyncio task that it runs; 0: none, or not asked for */
	uint64_t contexts;   /* as in struct task_read, when its stack was read */
	uint32_t task_stack; /* the functions of that task; PROFILE_ROOT: not known */
	uint64_t start_time; /* in clock ticks since the system started: tells it from another one with its TID */
	uint64_t ident;      /* its pthread_self(), as the interpreter has it; 0: not a thread of Python */
	struct dump_locks locks;
	struct dump_facts facts;
	bool in_subinterpreter;
	bool is_idle;    /* it is a pool's or server's, and waits for work */
	uint32_t circle; /* number of the deadlock that it is part of; 0: none */
	bool held_up;    /* it waits for what a known thread has, and is part of no deadlock */
	struct dump_locals locals;
	struct dump_native native;
	/* Frames as the walk has them, the leaf first, whose numbers the locals have; NULL without locals and native.
	 */
	struct pybpf_frame *walked;
	uint32_t nr_walked, runtime;
	/* For each frame of dump_frames() its number in walked, DUMP_NO_FRAME for a note; NULL as walked. */
	uint32_t *numbers;
	size_t nr_numbers;
};
#define DUMP_NO_FRAME UINT32_MAX

/* How often a thread was stopped for its native frames, and for how long at most. */
struct dump_stops {
	size_t count;
	double longest_s;
};

struct dump_process {
	const struct ps_row *row;
	const struct dump_core *core; /* that it was read from, or NULL: age, CPU time and memory are not known then */
	double age_s, cpu_s;          /* since its start */
	double stood_s;               /* for how long it was stopped; 0: it was not */
	struct dump_stops stops;      /* of single threads */
	double at_s;                  /* when it was read, on CLOCK_MONOTONIC */
	uint64_t rss_kib;
	unsigned nr_interps; /* of all its Pythons */
	struct profile *stacks;
	struct dump_line *lines; /* of each frame of stacks */
	struct dump_thread *threads;
	size_t count, room;
	struct dump_index index; /* of these threads */
	struct dump_tasks tasks;
	struct dump_greenlets greenlets;
	struct dump_parents parents;
	bool with_locals, with_native, with_parents; /* in the text */
	struct intern alike;                         /* of the values of its variables: see identity.h */
	int incomplete; /* error with which a part of it could not be read; 0: all that was asked for is there */
};

struct dump_wanted {
	bool named;   /* somebody asked for this very process: it is waited for where it starts a program */
	bool sources; /* also the texts of the lines */
	bool brief;   /* file names in short, and no places within lines: for DUMP_SHORT */
	bool tasks;   /* also asyncio's tasks */
	struct dump_locals_wanted locals;
	/* Read from a core file, which stands in for the process; or NULL. */
	const struct dump_core *core;
	const struct dump_peers *peers; /* for names of unix sockets; or NULL */
	bool parents;                   /* the text tells who started the process; the JSON always does */
	bool native;                    /* also the native frames: of threads that run, each is stopped for them */
	bool freeze; /* stop the process meanwhile; else its threads are read one after the other as they run */
};

/*
 * Reads what the threads of a process do, as the list of processes has it. Returns 0, also where parts of it could not
 * be read (dump_process.incomplete), or negative errno with one sentence in *error. dump_free() frees what it filled,
 * in any case.
 */
int dump_collect(const struct ps_row *row, const struct dump_wanted *wanted, struct dump_process *out,
		 struct error *error);
void dump_free(struct dump_process *process);

/* Returns a stack's frames, as indexes, from the root to the leaf; the caller frees them. NULL without memory. */
uint32_t *dump_frames(const struct dump_process *process, uint32_t stack, size_t *count);
/* Returns how many different stacks the threads have. */
size_t dump_count_stacks(const struct dump_process *process);
/* Returns the name of the thread's state, as docs/dump.md lists them. */
const char *dump_state_name(const struct dump_thread *thread);
/* Writes what the thread does, such as "[network: tcp 10.0.0.5:5432]", into DUMP_STATE_NAME bytes. */
#define DUMP_STATE_NAME SESSION_WAIT_NAME
void dump_name_state(const struct dump_thread *thread, char *out, size_t size);
/*
 * Returns the thread that has the GIL or the lock for which this one waits, which may be this one itself; NULL: it
 * waits for none, or who has it is not known.
 */
const struct dump_thread *dump_find_holder(const struct dump_process *process, const struct dump_thread *thread);
/*
 * Returns the thread without which this one cannot go on: it has the GIL, or the lock, or is joined; NULL:
 * none, or it waits for some time only. *joins: whether it joins that; may be NULL.
 */
const struct dump_thread *dump_find_awaited(const struct dump_process *process, const struct dump_thread *thread,
					    bool *joins);
/* Returns the thread that has taken that lock, and may have given it back, where the holder is not known; or NULL. */
const struct dump_thread *dump_find_unsure_holder(const struct dump_process *process, const struct dump_thread *thread);
/* Returns the thread for whose end this one waits, in threading.Thread.join(); NULL: for none, or it is not known. */
const struct dump_thread *dump_find_joined(const struct dump_process *process, const struct dump_thread *thread);

/* Returns whether the thread collects garbage; *known: whether that is known. */
bool dump_collects(const struct dump_process *process, const struct dump_thread *thread, bool *known);
/* Returns whether garbage is collected in an interpreter of the process; *known as above. */
bool dump_is_collecting(const struct dump_process *process, bool *known);

/*
 * Calls take for each variable of a frame, or the mark in place of them. position: of the frame in dump_frames().
 * Returns whether there was any.
 */
typedef void dump_take_local(void *arg, const struct dump_local *local);
bool dump_each_local(const struct dump_thread *thread, size_t position, dump_take_local *take, void *arg);

/* What became of a thread since an earlier snapshot. */
enum dump_change {
	DUMP_CHANGE_NONE,       /* it slept, and has not run since */
	DUMP_CHANGE_SAME_PLACE, /* the same functions at the same lines, for the same cause; but it may have run */
	DUMP_CHANGE_MOVED,
	DUMP_CHANGE_NEW,
	DUMP_CHANGE_UNKNOWN, /* one of the snapshots has not read it */
	DUMP_CHANGES,
};
enum dump_change dump_compare(const struct dump_process *before, const struct dump_process *now,
			      const struct dump_thread *thread);
/* Returns how many threads of the earlier snapshot are not there any more. */
size_t dump_count_ended(const struct dump_process *before, const struct dump_process *now);

enum dump_style {
	DUMP_TRACEBACKS, /* the most recent call comes last */
	DUMP_REVERSED,   /* it comes first */
	DUMP_SHORT,      /* it comes first; a line for each function, and threads that look the same only once */
};
/* Prints the process with the stacks of its threads. before: an earlier snapshot, for what changed since, or NULL. */
void dump_text(const struct dump_process *process, const struct dump_process *before, enum dump_style style, FILE *out);

struct json;
/* Writes the process as an object; docs/dump.md describes it. before: as above. */
void dump_json(const struct dump_process *process, const struct dump_process *before, struct json *json);

#endif

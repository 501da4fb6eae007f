// SPDX-License-Identifier: Apache-2.0
/* What the parts of the reader of asyncio's tasks (task_read.h) share. */
#ifndef SYMBOLS_TASK_READER_H
#define SYMBOLS_TASK_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"
#include "symbols/objects/py_names.h"
#include "symbols/tasks/task_read.h"

/* Readings of a task, or of a list, until it is given up as moving. */
#define TASK_ATTEMPTS 4
/* Bytes that are read of an object at once, as a read costs the same for 8 bytes: most have no more. */
#define TASK_AHEAD 320

enum task_kind {
	TASK_KIND_OTHER,
	TASK_KIND_TASK,
	TASK_KIND_FUTURE,
	TASK_KIND_GENERATOR,   /* also a coroutine, and an asynchronous generator */
	TASK_KIND_WRAPPER,     /* its first field is what is awaited */
	TASK_KIND_FUTURE_ITER, /* its first field is a future that is awaited */
};

struct task_type {
	uint64_t address;
	uint64_t flags;
	uint32_t kind; /* enum task_kind */
	char name[TASK_READ_TYPE];
	uint32_t pad;
};

/* What a thread's loop does at a moment. */
struct task_moment {
	uint64_t contexts; /* entered and left so far; PyThreadState.context_ver, see walk_find_task() */
	uint64_t running;  /* the task that it runs */
	uint32_t status;
	bool known;
};

struct task_listed {
	uint64_t task;
	uint64_t interp;
	uint64_t tstate;          /* the thread that runs its loop; 0: none does */
	struct task_moment since; /* of that thread, before any task was found */
};

/* Most threads whose loops are distinguished. */
#define TASK_LOOPS 256

/* Innermost functions of a task whose objects are looked at. */
#define TASK_INNER 3

/* A thread with a running loop. */
struct task_loop {
	uint64_t tstate, loop, interp;
	struct task_moment since; /* before the tasks were found */
};

struct task_reader {
	const struct walk_memory *memory;
	const struct task_read_place *place;
	struct walk_memory window_memory; /* memory by way of the window */
	struct walk_frames *frames;
	struct intern types; /* struct task_type */
	struct task_loop loops[TASK_LOOPS];
	size_t nr_loops;
	struct task_listed *listed;
	size_t nr_listed, listed_room, next;
	size_t nr_threads;                 /* visited so far */
	uint64_t window_addr, window_size; /* what of the memory the window has */
	uint8_t window[TASK_AHEAD];
	struct task_read read, again;
	struct py_values *values; /* reads objects of the snapshot's tasks; NULL without memory */
	struct py_names names;    /* of attributes that lead to sockets */
	uint64_t inner[TASK_INNER];
	size_t nr_inner; /* frames of the task so far, of which inner has the last ones, each at its number's place */
};

/* task_object.c: reads of memory, some of them ahead, and what objects are. */

/* The source is the reader: what was read ahead comes from there. */
int task_read_window(void *source, uint64_t addr, void *dst, size_t size);
/*
 * Reads the memory from addr on at once, so that what follows is of one moment; what does not fit is read on its own.
 */
void task_look_ahead(struct task_reader *r, uint64_t addr);
int task_read_at(struct task_reader *r, uint64_t addr, void *dst, size_t size);
/* Returns 0 also if the memory cannot be read. */
uint64_t task_pointer_at(struct task_reader *r, uint64_t addr);
/* Returns whether the process is of Python 3.7 to 3.13. */
bool task_is_old(const struct task_reader *r);
/* Returns the bytes of an object before its own fields. */
uint32_t task_head_size(const struct task_reader *r);
uint64_t task_mix(uint64_t hash, uint64_t value);
/* Returns the type of an object, valid until the next call, or NULL. */
const struct task_type *task_type_of(struct task_reader *r, uint64_t object);
/* Looks at an object, whose fields are then read ahead. */
enum task_kind task_look_at(struct task_reader *r, uint64_t object);
/* Reads the name of a task; what was read ahead of the task is gone then. */
void task_take_name(struct task_reader *r, uint64_t task, struct pybpf_task_name *out);

/*
 * Calls visit with the keys of a set until it returns non-zero, and of a larger one with those in the first `most`
 * places. Returns 0, what visit returned, -EAGAIN if it is no set or changed meanwhile, -E2BIG.
 */
int task_read_set(struct task_reader *r, uint64_t set, uint64_t most,
		  int (*visit)(struct task_reader *r, uint64_t key, void *arg), void *arg);

/* task_awaiters.c: reads what a tree has of a task, which was read ahead, beside its functions. Returns 0 or -EAGAIN.
 */
int task_read_node(struct task_reader *r, uint64_t task, struct task_read *out);
/* To 3.13: reads the names of the task and of those that await it. */
void task_read_old_chain(struct task_reader *r, uint64_t object, struct task_read *out);

/* What a generator is at. */
enum task_gen_state {
	TASK_GEN_CREATED,
	TASK_GEN_YIELDED,
	TASK_GEN_AWAITS,
	TASK_GEN_RUNS,
	TASK_GEN_ENDED,
};

struct task_gen {
	enum task_gen_state state;
	uint64_t frame;
	uint64_t awaited; /* valid if it awaits; 0: it could not be read */
};

/* task_gen.c: reads a generator, which was read ahead. Returns 0 or -EFAULT. */
int task_read_gen(struct task_reader *r, uint64_t generator, struct task_gen *out);

/*
 * task_coro.c: reads the functions from the task's coroutine on. Returns 0, -EAGAIN when that cannot be of a suspended
 * task, -EINPROGRESS when the task runs, -ENOENT when it has ended.
 */
int task_read_coroutines(struct task_reader *r, uint64_t object, struct task_read *out);

/* task_peer.c: begins with a snapshot, and ends with it. */
void task_peer_begin(struct task_reader *r);
void task_peer_end(struct task_reader *r);
/*
 * Returns the descriptor of the socket for which the task waits whose functions were read, or -1 if
 * nothing tells. awaited: the future that the last one awaits.
 */
int task_find_socket(struct task_reader *r, uint64_t awaited);

/* task_find.c */

struct task_moment task_look_at_thread(struct task_reader *r, uint64_t tstate);

/* task_list.c */

/* Adds a thread with a running loop, before any task is looked for. Returns false if there are too many. */
bool task_add_loop(struct task_reader *r, uint64_t interp, uint64_t tstate, uint64_t loop);
/*
 * Adds a task that was found. Whichever thread made it, its steps are taken by the one that runs its loop. Returns 0,
 * -ENOMEM, or -E2BIG if there are as many as are read.
 */
int task_add_listed(struct task_reader *r, uint64_t interp, uint64_t task);

/* task_old.c: the same for Python 3.7 to 3.13. */

struct task_moment task_look_at_old_thread(struct task_reader *r, uint64_t tstate);
/* Finds the tasks of the main interpreter. Returns 0 or -ENOMEM. */
int task_find_old(struct task_reader *r, uint64_t interp, struct task_read_counts *counts);

#endif

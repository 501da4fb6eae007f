// SPDX-License-Identifier: Apache-2.0
/*
 * asyncio's tasks as they are in a process's memory (3.14+): each with the functions of its coroutines, what the last
 * one awaits, and the tasks that await it. The process runs meanwhile, and everything that is read is hostile.
 */
#ifndef SYMBOLS_TASK_READ_H
#define SYMBOLS_TASK_READ_H

#include <stddef.h>
#include <stdint.h>

#include "pybpf.h"
#include "pybpf_wait.h"
#include "symbols/walk/walk_user.h"

/* Most functions of a task that are kept: the outermost ones. */
#define TASK_READ_FRAMES 128
/* Most tasks of a process that are found: two reads of memory each, some 50 ms in all. */
#define TASK_READ_TASKS 65536
/* Most tasks that await one task and are kept. */
#define TASK_READ_AWAITERS 64
/* Bytes of a type's name that are kept, with its NUL. */
#define TASK_READ_TYPE 48

/* What the last function of a suspended task awaits. */
enum task_read_awaits {
	TASK_AWAITS_OBJECT,     /* of type `type` */
	TASK_AWAITS_TASK,       /* `awaited` */
	TASK_AWAITS_FIRST_STEP, /* the task has not begun */
	TASK_AWAITS_YIELD,      /* a generator gave control back with a bare yield: asyncio.sleep(0) */
	TASK_AWAITS_INSIDE,     /* not known, as the innermost coroutine is not Python's own, but of type `type` */
	TASK_AWAITS_MORE,       /* there are more functions than are kept */
	TASK_AWAITS_RUNS,       /* nothing: the task runs, and its functions are on the stack of its thread */
	TASK_AWAITS_KINDS,
};

/* Bits of task_read.tree. */
enum task_read_tree {
	TASK_TREE_STEADY = 1u << 0, /* its thread began no step of a task since before its tasks were found */
	TASK_TREE_OTHERS = 1u << 1, /* something that is no task of _asyncio's awaits it, too */
	TASK_TREE_MORE = 1u << 2,   /* more tasks await it than are kept */
};

/* A task that awaits another one. */
struct task_read_awaiter {
	uint64_t address;
	uint64_t identity; /* as in struct task_read */
};

struct task_read {
	uint64_t address;
	uint64_t identity; /* a hash of its address, coroutine and name: another one for a later task at its place */
	uint64_t tstate;   /* the thread that runs its loop, by its PyThreadState; 0: none does */
	uint64_t contexts; /* that this thread had entered and left when a step would have shown; 0: it began one */
	uint64_t objects;  /* a hash of the addresses of all that was read: another one if it awaits another object */
	uint32_t awaits;   /* enum task_read_awaits */
	uint32_t flags;    /* enum pybpf_tasks_flags */
	uint32_t nr_tasks; /* the task itself, the one that awaits it, and so on */
	uint32_t nr_frames;
	uint32_t tree;          /* enum task_read_tree */
	uint32_t nr_awaiters;   /* 0 unless a whole tree is read */
	int32_t fd;             /* of the socket for which it waits; -1: nothing tells */
	struct pybpf_wait peer; /* of it, by whoever knows sockets; all zero: not known */
	char type[TASK_READ_TYPE];
	struct pybpf_task_name awaited;
	struct pybpf_task_name tasks[PYBPF_TASKS];
	struct task_read_awaiter awaiters[TASK_READ_AWAITERS];
	struct pybpf_frame frames[TASK_READ_FRAMES]; /* the task's own coroutine first */
};

/* Where tasks are. */
struct task_read_place {
	struct pybpf_layout layout;
	struct pybpf_runtime runtime; /* its asyncio.thread_tasks is not 0 */
	uint64_t proc_id;             /* as in struct pybpf_proc */
	/*
	 * Read the tree of all tasks: each with those that await it, in place of the chain of their names, and those
	 * that run, too, without functions.
	 */
	uint32_t whole_tree;
	uint32_t pad;
};

/* What became of the tasks that were found; each is in exactly one of the first four. */
struct task_read_counts {
	uint64_t suspended;
	uint64_t running; /* its thread's loop runs it */
	uint64_t ended;   /* since it was found */
	uint64_t moving;  /* it changed at each attempt to read it */
	uint64_t torn;    /* lists that changed at each attempt; the tasks up to there are found */
	uint64_t beyond;  /* lists with more tasks than are found, and tasks that there was no time for */
};

struct task_reader;

struct task_reader *task_reader_new(void);
/* Accepts NULL. */
void task_reader_free(struct task_reader *r);

/*
 * Finds the tasks of all threads of a runtime. The memory and the place outlive the reads of these tasks. Returns 0 or
 * -ENOMEM.
 */
int task_reader_find(struct task_reader *r, const struct walk_memory *memory, const struct task_read_place *place,
		     struct task_read_counts *counts);
/*
 * Reads the next one of the tasks that task_reader_find() has found; *out is valid until the next call. Returns 1 for a
 * suspended task, and for one that runs if the place wants the whole tree, 0 for one of which *counts says why it is
 * not shown, -ENOENT behind the last one.
 */
int task_reader_next(struct task_reader *r, const struct task_read **out, struct task_read_counts *counts);

/* Bytes of the task as task_read_pack() writes it: without names, awaiters and frames that it does not have. */
size_t task_read_packed_size(const struct task_read *task);
/* Writes task_read_packed_size() bytes. */
void task_read_pack(const struct task_read *task, void *out);
/* Reads a packed task out of size bytes that are not trusted. Returns its packed size, or 0 if it is not a task. */
size_t task_read_unpack(const void *bytes, size_t size, struct task_read *out);

#endif

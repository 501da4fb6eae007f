/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The asyncio tasks of a stack (--async). */
#ifndef PYBPF_TASK_H
#define PYBPF_TASK_H

#include "pybpf_stack.h"

/* Classes between that of an object and _asyncio's that are looked at. */
#define PYBPF_TASK_BASES 4

/* How the name of a task is written. */
enum pybpf_task_form {
	PYBPF_TASK_UNKNOWN, /* no task of _asyncio's, or not readable */
	PYBPF_TASK_NUMBER,  /* the name is Task-N, not written out yet: N, a 64-bit number */
	PYBPF_TASK_ASCII,   /* characters of a string object */
	PYBPF_TASK_LATIN1,
	PYBPF_TASK_UCS2,
	PYBPF_TASK_UCS4,
};

/* Bytes of a name that are kept. */
#define PYBPF_TASK_TEXT 64

struct pybpf_task_name {
	__u32 form; /* enum pybpf_task_form */
	__u32 size; /* bytes of the whole name */
	__u8 text[PYBPF_TASK_TEXT];
};

/* Most tasks of a chain. */
#define PYBPF_TASKS 8
/* Tasks and futures that are looked at: between a task and the one that awaits it, gather() has a future. */
#define PYBPF_TASK_STEPS (2 * PYBPF_TASKS)

enum pybpf_tasks_flags {
	PYBPF_TASKS_MORE = 1u << 0,    /* the chain is longer */
	PYBPF_TASKS_SEVERAL = 1u << 1, /* several tasks await the last one */
};

/* The running task, the task that awaits it, and so on; sent before each stack with such tasks. */
struct pybpf_task_event {
	struct pybpf_event event;
	__u64 task_id; /* a hash of all that follows */
	__u32 count;
	__u32 flags; /* enum pybpf_tasks_flags */
	struct pybpf_task_name tasks[PYBPF_TASKS];
};
_Static_assert(sizeof(struct pybpf_task_event) == 24 + PYBPF_TASKS * 72, "pybpf_task_event has no hidden padding");

#endif

// SPDX-License-Identifier: Apache-2.0
/* The asyncio tasks of a process. */
#ifndef DUMP_TASKS_H
#define DUMP_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbols/tasks/task_read.h"

struct discovery_python;
struct dump_process;
struct pybpf_layout;
struct pybpf_rights;
struct pybpf_runtime;
struct pybpf_stack_event;
struct stacks;
struct walk_memory;
struct walk_stack;

struct dump_task {
	uint64_t id;       /* address of the object, which id() returns in the program */
	uint64_t identity; /* as in struct task_read */
	uint64_t tstate;   /* its thread; 0: that has ended, or to 3.13, none runs its loop */
	char *name;        /* any bytes */
	char *awaits;      /* what its last function awaits; NULL: it runs */
	uint32_t stack;    /* of dump_process.stacks; PROFILE_ROOT: no functions are known */
	bool is_moving;  /* it changed while the tasks were read: it is true for itself, at another moment than the rest
			  */
	bool has_others; /* something awaits it that is not in the list */
	uint32_t *awaiters; /* indexes of the tasks that await it */
	size_t nr_awaiters;
};

struct dump_tasks {
	bool wanted;
	char *note; /* why no tasks could be read; NULL: they were */
	struct dump_task *items;
	size_t count, room;
	size_t running;
	struct task_read_counts counts; /* of those that are not in the list */
};

/* Where the tasks of a Python are, and what takes its functions. */
struct dump_tasks_of {
	pid_t pid;
	uint32_t runtime; /* index of the Python in its process */
	bool stopped;     /* the process is stopped */
	const struct discovery_python *python;
	struct task_read_place place;
	struct stacks *stacks;
	const struct pybpf_rights *rights; /* with which sources are read; NULL: they are not */
};

/*
 * Adds the tasks of a Python to the process, whose threads have been read, or a note why there are none; the process is
 * incomplete where they could not be read. Returns 0, -ENOMEM, or -EINTR when a signal that ends the command is
 * pending.
 */
int dump_read_tasks(const struct dump_tasks_of *of, struct dump_process *process);
/* To 3.13: finds where asyncio has its tasks, if it is imported. */
void dump_find_tasks(const struct walk_memory *memory, const struct pybpf_layout *layout,
		     struct pybpf_runtime *runtime);
/* Makes the functions of the task that a thread runs a stack of their own. Returns 0 or -ENOMEM. */
int dump_push_running(struct stacks *stacks, const struct pybpf_stack_event *thread, const struct walk_stack *walk,
		      uint32_t *out);
void dump_tasks_free(struct dump_tasks *tasks);

/* A step of a way through the tree of tasks. */
enum dump_step_kind {
	DUMP_STEP_TASK,  /* a task for the first time */
	DUMP_STEP_AGAIN, /* one that was visited before, with what it awaits */
	DUMP_STEP_CYCLE, /* one that is on the path: it awaits itself by way of the others */
};

struct dump_step {
	enum dump_step_kind kind;
	uint32_t task;        /* index */
	const uint32_t *path; /* the tasks that await it, the outermost first */
	size_t depth;         /* of the path */
	size_t begin;         /* of a cycle: where on the path the task is */
	/* Further tasks with the same awaiter, functions and state, that await no task, either. */
	const uint32_t *alike;
	size_t nr_alike;
};

/*
 * Visits all tasks: those that no task awaits, and below each those that it awaits. In a cycle that no task outside of
 * it awaits, one is visited first. Returns 0 or -ENOMEM.
 */
int dump_visit_tasks(const struct dump_tasks *tasks, void (*visit)(const struct dump_step *step, void *arg), void *arg);

#endif

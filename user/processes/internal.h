// SPDX-License-Identifier: Apache-2.0
/* Shared by session_processes.c, session_look.c, session_runtimes.c and session_claim.c alone. */
#ifndef PROCESSES_INTERNAL_H
#define PROCESSES_INTERNAL_H

#include "session/internal.h"
#include "kernel/procs.h"
#include "kernel/watch.h"

struct session_processes {
	struct session *session;
	struct kernel *kernel;
	struct session_process *records; /* by proc_id */
	struct session_process *by_pid;
	struct session_process *looking;
	struct session_process_counts counts;
	size_t living;
	uint64_t begin; /* of the run, as session_process.start counts */
	double next_label;
	bool starting;         /* the processes that are there are looked at, one after the other */
	double busy_until;     /* the helper is at something */
	double starting_until; /* some program may be in its first half second */
	uint64_t lost_seen;
	bool python_found;
	int error;
};

/* CLOCK_MONOTONIC seconds. */
double session_now(void);

/* session_look.c */

/* What the kernel knows of the record's process; -ESRCH when it runs another program by now, or has ended. */
int session_kernel_entry(const struct session_processes *p, const struct session_process *process,
			 struct pybpf_proc *entry);
/* Puts an entry that session_kernel_entry has given, and that was changed since, in its place. */
int session_put_entry(const struct session_processes *p, const struct session_process *process,
		      const struct pybpf_proc *entry);
/*
 * Tells the kernel what the process is, and, unless NULL, where its Python lies. Returns 0, -ESRCH when it is that no
 * more, or another negative errno.
 */
int session_answer(const struct session_processes *p, const struct session_process *process,
		   enum pybpf_proc_state state, const struct pybpf_runtime *place);
/*
 * An answer that was meant for the program before an exec can come right after it, and undo the kernel's new entry.
 * Then puts that back, undecided, and returns true.
 */
bool session_repair(const struct session_processes *p, const struct pybpf_process_event *event);
/* From now on its samples are a Python's. */
void session_become_python(struct session_processes *p, struct session_process *process, uint32_t layout);
/* Makes the process one that is sampled. */
void session_make_ready(struct session_processes *p, struct session_process *process,
			const struct pybpf_runtime *place);
/* Does its name keep the process out? Then the kernel is told. */
bool session_is_unwanted(struct session_processes *p, struct session_process *process);
/* started: a moment ago, so that what it will load may not be there yet. */
void session_begin_look(struct session_processes *p, struct session_process *process, bool started);
/* Is one of its Pythons sampled: has it one that is not in doubt? */
bool session_is_sampled(const struct session_process *process);
/* It has mapped a file that is mapped in another way by now. */
void session_look_soon(struct session_processes *p, struct session_process *process);
/* The process has ended, or the run: if it was refused by then, says why. */
void session_say_doubt(struct session_processes *p, struct session_process *process);
/* The process has mapped a Python; it may be one that has one already. */
void session_look_again(struct session_processes *p, struct session_process *process);
void session_stop_looking(struct session_processes *p, struct session_process *process);

/* session_runtimes.c */

/* Is the Python sampled already? So it is said of a process that runs another program by now, or has ended. */
bool session_has_runtime(const struct session_processes *p, const struct session_process *process,
			 const struct pybpf_runtime *place);
/*
 * One more Python of a process that has one is sampled from now on. Returns its index in pybpf_proc.runtimes; -EEXIST
 * when it is sampled already; -ENOSPC when there are too many, which has been said; -ESRCH when the process is gone.
 */
int session_add_runtime(struct session_processes *p, struct session_process *process,
			const struct pybpf_runtime *place);
/* Of several Pythons, only those that are not in doubt are sampled from now on. */
void session_drop_doubted(const struct session_processes *p, const struct session_process *process);
/* A copy by fork has its parent's Pythons. */
void session_copy_runtimes(struct session_processes *p, struct session_process *process,
			   const struct session_process *parent);
/* Sets which of its Pythons are running. */
void session_note_running(const struct session_processes *p, struct session_process *process);
/* The versions of those: "3.10 and 3.12". */
void session_versions(const struct session_processes *p, const struct session_process *process, char *out, size_t size);

#endif

// SPDX-License-Identifier: Apache-2.0
/* Shared by the files of this room alone. */
#ifndef PROCESSES_INTERNAL_H
#define PROCESSES_INTERNAL_H

#include "kernel/procs.h"
#include "kernel/watch.h"
#include "processes/files.h"
#include "processes/processes.h"
#include "symbols/pysym.h"

struct processes {
	struct processes_options options;
	struct kernel *kernel;
	struct pysym *pysym;
	struct processes_files *files;
	struct processes_record *records; /* by proc_id */
	struct processes_record *by_pid;
	struct processes_record *looking;
	struct processes_counts counts;
	size_t living;
	uint64_t begin; /* of the run, as processes_record.start counts */
	double next_label;
	bool starting;         /* the processes that are there are looked at, one after the other */
	double busy_until;     /* the helper is at something */
	double starting_until; /* some program may be in its first half second */
	uint64_t lost_seen;
	bool python_found;
	int error;
};

/* answer.c */

/* What the kernel knows of the record's process; -ESRCH when it runs another program by now, or has ended. */
int processes_get_entry(const struct processes *p, const struct processes_record *process, struct pybpf_proc *entry);
/* Puts an entry that processes_get_entry has given, and that was changed since, in its place. */
int processes_put_entry(const struct processes *p, const struct processes_record *process,
			const struct pybpf_proc *entry);
/*
 * Tells the kernel what the process is, and, unless NULL, where its Python lies. Returns 0, -ESRCH when it is that no
 * more, or another negative errno.
 */
int processes_answer_kernel(const struct processes *p, const struct processes_record *process,
			    enum pybpf_proc_state state, const struct pybpf_runtime *place);
/*
 * An answer that was meant for the program before an exec can come right after it, and undo the kernel's new entry.
 * Then puts that back, undecided, and returns true.
 */
bool processes_repair_entry(const struct processes *p, const struct pybpf_process_event *event);
/* From now on its samples are a Python's. */
void processes_become_python(struct processes *p, struct processes_record *process, uint32_t layout);
/* Makes the process one that is sampled. */
void processes_make_ready(struct processes *p, struct processes_record *process, const struct pybpf_runtime *place);
/* Does its name keep the process out? Then the kernel is told. */
bool processes_reject_unwanted(struct processes *p, struct processes_record *process);

/* look.c */

/* While a program may be about to map its Python, or to finish mapping it, it is looked at again after so long. */
#define LOOK_OFTEN_S 0.001

/* The record waits until the given time; when it waits already, until the sooner one. */
void processes_schedule_look(struct processes *p, struct processes_record *process, double when);
void processes_stop_looking(struct processes *p, struct processes_record *process);
/* started: a moment ago, so that what it will load may not be there yet. */
void processes_start_look(struct processes *p, struct processes_record *process, bool started);
/* It has mapped a file that is mapped in another way by now. */
void processes_look_soon(struct processes *p, struct processes_record *process);
/* The process has mapped a Python; it may be one that has one already. */
void processes_look_again(struct processes *p, struct processes_record *process);

/* doubt.c */

/* In processes_record.doubted: of what has no index. */
#define DOUBT_UNPLACED (1u << PYBPF_MAX_RUNTIMES)

/* Is one of its Pythons sampled: has it one that is not in doubt? */
bool processes_is_sampled(const struct processes_record *process);
/* What the process's memory says contradicts what its files say: it is looked at again. why: "" as said before. */
void processes_raise_doubt(struct processes *p, struct processes_record *process, double now, uint32_t doubted,
			   const char *why);
/* Those are in doubt, and no others; the kernel is told. */
void processes_set_doubted(struct processes *p, struct processes_record *process, uint32_t doubted);
/* Those are not in doubt any more; the kernel is not told. */
void processes_clear_doubt(struct processes_record *process, uint32_t which);
/* Those of its Pythons that are in doubt are not sampled; where there is no other, the process is not. */
void processes_tell_doubted(struct processes *p, struct processes_record *process);
/* The process has ended, or the run: if it was refused by then, says why. */
void processes_report_doubt(struct processes *p, struct processes_record *process);

/* runtimes.c */

/* Is the Python sampled already? So it is said of a process that runs another program by now, or has ended. */
bool processes_has_runtime(const struct processes *p, const struct processes_record *process,
			   const struct pybpf_runtime *place);
/*
 * One more Python of a process that has one is sampled from now on. Returns its index in pybpf_proc.runtimes; -EEXIST
 * when it is sampled already; -ENOSPC when there are too many, which has been said; -ESRCH when the process is gone.
 */
int processes_add_runtime(struct processes *p, struct processes_record *process, const struct pybpf_runtime *place);
/* Of several Pythons, only those that are not in doubt are sampled from now on. */
void processes_drop_doubted(const struct processes *p, const struct processes_record *process);
/* A copy by fork has its parent's Pythons. */
void processes_copy_runtimes(struct processes *p, struct processes_record *process,
			     const struct processes_record *parent);
/* Sets which of its Pythons are running. */
void processes_note_running(const struct processes *p, struct processes_record *process);
/* The versions of those: "3.10 and 3.12". */
void processes_list_versions(const struct processes *p, const struct processes_record *process, char *out, size_t size);

/* labels.c */

/*
 * Notes what the options want to know of a process while it can be asked. before: what the process was before an exec,
 * or NULL.
 */
void processes_label_record(const struct processes *p, struct processes_record *process,
			    const struct processes_record *before);
/* A runtime may write down its container's name only after its first exec: looks again where none was found. */
void processes_label_again(const struct processes *p, struct processes_record *process);
/* The same for a copy by fork. */
void processes_label_copy(struct processes_record *process, const struct processes_record *parent);
#endif

// SPDX-License-Identifier: Apache-2.0
/* Declarations that only the files of the processes room share. */
#ifndef PROCESSES_INTERNAL_H
#define PROCESSES_INTERNAL_H

#include "base/intern.h"
#include "container/label.h"
#include "kernel/procs.h"
#include "kernel/watch.h"
#include "processes/files.h"
#include "processes/processes.h"
#include "symbols/pysym.h"

/* An item of the table of records. */
struct processes_by_id {
	uint64_t proc_id;
	struct processes_record *record;
};

struct processes {
	struct processes_options options;
	struct kernel *kernel;
	struct pysym *pysym;
	struct processes_files *files;
	struct intern records;                           /* struct processes_by_id */
	struct intern by_pid;                            /* struct by_pid: the record that runs now, or ran last */
	struct processes_record *looking, *last_looking; /* the list of processes to look at */
	struct processes_counts counts;
	size_t living;
	uint64_t begin; /* start of the run, in the unit of processes_record.start */
	double next_label;
	bool starting;                 /* processes_follow is examining the processes that existed before the run */
	double busy_until;             /* no look before this: the helper is busy (CLOCK_MONOTONIC seconds) */
	double starting_until;         /* until then a program may be in its first half second */
	struct kernel_losses losses;   /* up to the last check */
	double next_check, next_looks; /* resync.c: CLOCK_MONOTONIC seconds */
	bool mappings_lost, every_unheard;
	struct container_labels *labels;
	struct processes_groups *groups;
	struct processes_parents *parents; /* NULL unless the options ask for them */
	struct processes_unheard *unheard;
	size_t nr_unheard, unheard_room;
	bool python_found, asyncio_found;
	int error;
};

/* records.c */

void processes_init_records(struct processes *p);
void processes_free_records(struct processes *p);
/* Returns the record of the program that the PID runs now, or ran last; NULL if there is none. */
struct processes_record *processes_find_pid(const struct processes *p, pid_t pid);
/* Adds the record to the tables, in place of an earlier one of its PID. Returns 0 or -ENOMEM. */
int processes_insert_record(struct processes *p, struct processes_record *process);
/* Removes and frees the record. */
void processes_remove_record(struct processes *p, struct processes_record *process);
/* Returns the record at an index of p->records. */
static inline struct processes_record *processes_record_at(const struct processes *p, uint32_t index)
{
	return ((const struct processes_by_id *)intern_item(&p->records, index))->record;
}

/* record_life.c */

/* Returns the record of the event's process, new if there is none yet; NULL with p->error set without memory. */
struct processes_record *processes_add_record(struct processes *p, const struct pybpf_process_event *event);
/* The process of the record `before` runs another program, which has the other record. */
void processes_hand_on(struct processes_record *before, struct processes_record *process);
/*
 * Returns the record of a PID, made from the kernel's entry if there is none yet; NULL if the kernel has none, or
 * without memory, which sets p->error.
 */
struct processes_record *processes_get_record(struct processes *p, pid_t pid);
/* Ends the record of a process that has ended, or that runs another program. */
void processes_end_record(struct processes *p, struct processes_record *process);

/* resync.c */

/* A process in the kernel's map that has no record. */
struct processes_unheard {
	pid_t pid;
	uint64_t proc_id;
	bool reported; /* an event told of it, which was lost or is still on its way */
};

/* Finds out by other means what events and mappings that were lost would have told. now: CLOCK_MONOTONIC seconds. */
void processes_resync(struct processes *p, double now);

/* publish.c */

/*
 * Reads the kernel's entry of the record's process. Returns 0, -ESRCH when the process runs another program by now or
 * has ended, or another negative errno.
 */
int processes_get_entry(const struct processes *p, const struct processes_record *process, struct pybpf_proc *entry);
/* Writes back an entry that processes_get_entry gave and the caller changed. Returns 0 or negative errno. */
int processes_put_entry(const struct processes *p, const struct processes_record *process,
			const struct pybpf_proc *entry);
/*
 * Tells the kernel the state of the process and, unless place is NULL, the addresses of its Python. Returns 0, -ESRCH
 * when the process runs another program by now or has ended, or another negative errno.
 */
int processes_publish_state(const struct processes *p, const struct processes_record *process,
			    enum pybpf_proc_state state, const struct pybpf_runtime *place);
/* Has the kernel sample only those of the process's Pythons that have no mismatch. */
void processes_drop_mismatched(const struct processes *p, const struct processes_record *process);
/*
 * An answer that was meant for the program before an exec can arrive right after the exec and overwrite the kernel's
 * new entry. If that happened, writes the new entry once more, as undecided, and returns true.
 */
bool processes_repair_entry(const struct processes *p, const struct pybpf_process_event *event);
/* Marks the process as Python, with the layout of that index, and registers it with pysym. */
void processes_become_python(struct processes *p, struct processes_record *process, uint32_t layout);
/* Marks the process as Python and has the kernel sample it; place: the addresses of its runtime. */
void processes_make_ready(struct processes *p, struct processes_record *process, const struct pybpf_runtime *place);
/* Returns whether the name filters, or the choice of services, exclude the process; if they do, tells the kernel. */
bool processes_reject_unwanted(struct processes *p, struct processes_record *process);

/* chosen.c */

/* Returns whether the process's service, which is asked for once, is one of those that are sampled. */
bool processes_is_chosen(const struct processes *p, struct processes_record *process);

/* choose_again.c */

/* Begins to sample a process that was left out, if its service, of which more may be known by now, is one of them. */
void processes_choose_again(struct processes *p, struct processes_record *process);

/* look_queue.c */

/* Interval between looks at a program that may be about to map its Python, or to finish mapping it. */
#define LOOK_OFTEN_S 0.001
/* With options.patient: where programs start all the time, looking more often costs more than all else. */
#define LOOK_PATIENT_S 0.01

/* Schedules a look at the process for the given time (CLOCK_MONOTONIC seconds), or keeps an earlier one. */
void processes_schedule_look(struct processes *p, struct processes_record *process, double when);
void processes_stop_looking(struct processes *p, struct processes_record *process);
/*
 * Returns the process to look at next: among those that are due, one of the user whose processes have taken least time
 * lately; NULL if none is due. The longer a process waits, the less the time of its user counts.
 */
struct processes_record *processes_choose_look(const struct processes *p, double now);

/* request.c */

/*
 * A program that has not mapped a Python this long after its start counts as not Python, until it maps one. Until then
 * records of mappings are read often (LOOK_OFTEN_S), as its first Python instruction may follow soon.
 */
#define STARTING_S 0.5

/* Begins the search for a Python. started: the program started a moment ago and may still load its libraries. */
void processes_start_look(struct processes *p, struct processes_record *process, bool started);
/* Schedules a look: the process has mapped a file that could not be opened, as its mapping changed since. */
void processes_look_soon(struct processes *p, struct processes_record *process);
/* Schedules a look: the process has mapped a Python, which may be its first one or a further one. */
void processes_look_again(struct processes *p, struct processes_record *process);

/* mismatch.c */

/* Bit in processes_record.mismatched for mapped Pythons that have no index yet. */
#define MISMATCH_UNPLACED (1u << PYBPF_MAX_RUNTIMES)

/* Returns whether the process has a Python without a mismatch, which is thus sampled. */
bool processes_is_sampled(const struct processes_record *process);
/*
 * The process's memory contradicts its files: notes it of the Pythons of these bits and schedules another look.
 * why: the sentence that reports it, or "" to keep the earlier one.
 */
void processes_note_mismatch(struct processes *p, struct processes_record *process, double now, uint32_t mismatched,
			     const char *why);
/* Sets which Pythons have a mismatch, and no others; tells the kernel. */
void processes_set_mismatched(struct processes *p, struct processes_record *process, uint32_t mismatched);
/* Ends the mismatch of the Pythons of these bits; does not tell the kernel. */
void processes_clear_mismatch(struct processes_record *process, uint32_t which);
/* Has the kernel stop sampling the Pythons with a mismatch; if all of them have one, the whole process. */
void processes_stop_mismatched(struct processes *p, struct processes_record *process);
/* Called when the process or the run has ended: if the mismatch lasted long enough for a refusal, reports why. */
void processes_report_mismatch(struct processes *p, struct processes_record *process);

/* tasks.c */

/*
 * With options.tasks: looks where the process's asyncio has its tasks, if that is not known yet, and schedules the next
 * look if it cannot be found. now: CLOCK_MONOTONIC seconds.
 */
void processes_find_tasks(struct processes *p, struct processes_record *process, double now);

/* runtimes.c */

/* Returns whether the Python is sampled already; also true if the process runs another program by now or has ended. */
bool processes_has_runtime(const struct processes *p, const struct processes_record *process,
			   const struct pybpf_runtime *place);
/*
 * Adds a further Python to a process that has one, and has the kernel sample it. Returns its index in
 * pybpf_proc.runtimes, -EEXIST when it is sampled already, -ENOSPC after reporting that there are too many, or -ESRCH
 * when the process is gone.
 */
int processes_add_runtime(struct processes *p, struct processes_record *process, const struct pybpf_runtime *place);
/* Tells the kernel where the fields of a Python's asyncio are, which has been loaded since. */
void processes_place_asyncio(const struct processes *p, struct processes_record *process,
			     const struct pybpf_runtime *place);
/* Gives a process made by fork the Pythons of its parent. */
void processes_copy_runtimes(struct processes *p, struct processes_record *process,
			     const struct processes_record *parent);
/* Records in process->running which of its Pythons have an interpreter. */
void processes_note_running(const struct processes *p, struct processes_record *process);
/* Writes the versions of the running Pythons into out: "3.10 and 3.12". */
void processes_list_versions(const struct processes *p, const struct processes_record *process, char *out, size_t size);

/* parents.c */

struct processes_parents *processes_parents_new(void);
/* Accepts NULL. */
void processes_parents_free(struct processes_parents *parents);
/* Notes the processes that were chosen by PID, above which parents are not reported. */
void processes_begin_parents(const struct processes *p, const uint32_t *pids, size_t count);
/* Notes who started a process. other: the record of who forked it, or of itself before an exec; NULL: not known. */
void processes_note_parents(const struct processes *p, struct processes_record *process,
			    const struct processes_record *other);
/* Notes the index of a process in the profile. Returns 0 or -ENOMEM. */
int processes_tell_place(const struct processes *p, const struct processes_record *process, uint32_t in_profile);

/* containers.c */

struct container;
struct processes_groups *processes_groups_new(void);
/* Accepts NULL. */
void processes_groups_free(struct processes_groups *groups);
/*
 * As discovery_ask_container_of(), but takes the answer about another process of the same control group for a while.
 * *is_final: the group is so old that its container's runtime has nothing more to say of it.
 */
int processes_find_container(struct processes_groups *groups, pid_t pid, struct container *out, bool *is_final);

/* labels.c */

/* Bytes of a command line that a root frame shows. */
#define PROCESSES_CMDLINE_MAX 512

/*
 * Records the names that the options ask for (command line, program, container) while the process can be read. before:
 * the record of the same process before an exec, or NULL.
 */
void processes_label_record(const struct processes *p, struct processes_record *process,
			    const struct processes_record *before);
/* Retries a container name that was not found: a container runtime may write it only after the first exec. */
void processes_label_again(const struct processes *p, struct processes_record *process);
/*
 * Asks what the process says of its service, and what it runs, once, if the options ask for services: it may have ended
 * before its service is needed. One that ends within moments is not asked, as that would cost as much as all else.
 */
void processes_ask_service(const struct processes *p, struct processes_record *process);
/* Sets the service, if the options ask for it and it is not known yet. */
void processes_label_service(const struct processes *p, struct processes_record *process);
/* Copies the parent's names to a process made by fork. */
void processes_label_copy(struct processes_record *process, const struct processes_record *parent);
#endif

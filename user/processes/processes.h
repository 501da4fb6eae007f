// SPDX-License-Identifier: Apache-2.0
/*
 * The processes of a run: takes the kernel's events of their starts and ends, finds out what they run, and tells the
 * kernel which to sample. A record stands for one program of one process: fork and exec begin a new record.
 */
#ifndef PROCESSES_H
#define PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "discovery/discovery.h"
#include "discovery/filter.h"
#include "discovery/service.h"
#include "kernel/watch.h"
#include "pybpf.h"
#include "symbols/tasks/current_tasks.h"

enum processes_state {
	PROCESSES_LOOKING, /* still being searched for an interpreter */
	PROCESSES_PYTHON,
	PROCESSES_OTHER,   /* no Python, so far */
	PROCESSES_REFUSED, /* a Python that is not supported, or not readable */
	PROCESSES_UNWANTED,
};

struct processes_record {
	uint64_t proc_id;
	pid_t pid, inner_pid; /* inner_pid: in the process's own PID namespace */
	uint64_t start;       /* clock ticks since boot */
	enum processes_state state;
	char comm[16];
	double named_at;                   /* CLOCK_MONOTONIC seconds: when comm was read for the profile; 0: not yet */
	char *cmdline, *container;         /* NULL unless the options ask for it */
	uint32_t label;                    /* number of its container's label; 0: not known */
	char *program;                     /* its name with --merge and for its service; NULL likewise */
	char *service;                     /* NULL: not needed yet */
	struct discovery_service_own *own; /* what it says of its service; NULL: not asked for yet */
	char *attributes, *version;        /* as in profile/attributes.h, but for the version; NULL: none */
	uint32_t above;                    /* 1 + the number in parents.c of who started it; 0: not known */
	bool nameless;                     /* pybpf had no memory for its names */
	bool is_placed;                    /* there is no more to know of its container */
	bool is_unnamed;                   /* the container's name could not be read (yet) */
	bool command_unread;               /* its arguments could not be read (yet) */
	bool service_unread;               /* likewise what its environment says of its service */
	bool unchosen;                     /* unwanted, as its service is not chosen, as far as it is known */
	bool unanswered;                   /* the last question what it runs has no answer: it may be a Python or not */
	double pending_since;       /* CLOCK_MONOTONIC seconds: when that answer was first waited for; 0: it is not */
	struct pybpf_file_key file; /* the program's file */
	uint32_t kind;              /* enum pybpf_program_kind: what the kernel knew of the file */
	uid_t user;                 /* valid if user_known */
	bool user_known;
	bool looked;            /* examined at least once */
	bool unknown_file;      /* it has mapped a file that could not be read */
	bool wanted;            /* the filters have let it pass at least once */
	bool started;           /* started during the run */
	bool copy;              /* made by fork of a Python process */
	bool look_further;      /* has a Python and may have mapped another one */
	bool counted_elsewhere; /* another record of the same process counts the process */
	bool known_before_run;  /* its Python was known before its interpreter could run */
	bool ended;             /* the process has ended, or an exec replaced its program */
	bool replaced;          /* ended by an exec: the process lives on in another record */
	bool sampled;           /* the process has a sample with Python frames */
	double ended_at;        /* CLOCK_MONOTONIC seconds */
	uint64_t cpu_ns;        /* CPU time of the process, set at its end or the run's; 0: unknown */
	uint64_t cpu_begin_ns;  /* the same when sampling began; 0 if it started later */
	bool cpu_begin_known;
	uint64_t undecided;                   /* samples taken before it was known what it runs */
	uint32_t layouts[PYBPF_MAX_RUNTIMES]; /* of its Pythons, as in pybpf_proc.runtimes */
	uint32_t nr_runtimes;
	uint32_t mapped;  /* number of executable mappings of files that it was heard to make */
	uint32_t running; /* bits by index: Pythons that had an interpreter when one was validated */
	struct discovery_python *unproved[PYBPF_MAX_RUNTIMES]; /* Pythons not yet validated */
	/*
	 * Bits by index: Pythons whose memory contradicts their files; bit PYBPF_MAX_RUNTIMES is for mapped Pythons
	 * that have no index. The field is not 0 since mismatch_since (CLOCK_MONOTONIC seconds).
	 */
	uint32_t mismatched;
	double mismatch_since;
	bool refusal_said;
	char *mismatch_text;                    /* the sentence that reports the mismatch; NULL once reported */
	struct pysym_modules modules;           /* when its asyncio was looked for (3.7 to 3.13) */
	double tasks_since;                     /* when it was looked for first, since it was mapped */
	double added_at, look_since, next_look; /* CLOCK_MONOTONIC seconds; next_look: 0 if no look is due */
	struct processes_record *next, *prev;   /* in the list of processes to look at */
};

/* Numbers of processes in a run, by what became of them. */
struct processes_counts {
	uint64_t seen;        /* processes that ran Python */
	uint64_t started;     /* of those, during the run */
	uint64_t several;     /* with more than one Python in them */
	char versions[64];    /* of those Pythons: "3.10 and 3.12", of one such process */
	uint64_t refused;     /* processes whose Python is not supported or not readable */
	uint64_t undecided;   /* processes_count_undecided() */
	uint64_t unanswered;  /* questions about files or memory that had no answer */
	uint64_t missed;      /* processes that ended before pybpf knew what they run */
	uint64_t missed_ns;   /* CPU time of those */
	uint64_t unsampled;   /* Python processes that ended without a sample with Python frames, and were forgotten */
	uint64_t lost;        /* events of wanted processes that were dropped because a buffer was full */
	uint64_t lost_others; /* events of processes that the filters keep out */
	uint64_t lost_mappings; /* --all: records of what any process of the machine maps; else 0 */
	uint64_t recovered;     /* processes that were found although their event was lost */
};

struct processes;
struct kernel;
struct profile;
struct pysym;

/* Which processes a run samples, and which names it records. */
struct processes_options {
	bool all;      /* every process that the kernel's filters let pass; else the processes given by PID */
	bool follow;   /* and their children */
	bool filtered; /* the kernel has filters by user or cgroup */
	bool tasks; /* asyncio's tasks are wanted: a Python that cannot tell them is refused, unless all are wanted */
	const struct discovery_filter *names; /* filters by name; NULL: any name passes */
	/* Names to record: merge: the program's name; cmdline: the command line; containers: the container's name. */
	bool merge, cmdline, containers;
	bool parents; /* who started each process */
	bool patient; /* a hundredth of a second of a program's start may be missed, as samples are rarer than that */
	/* The service of each process that has samples; NULL: not wanted. With containers. */
	const struct discovery_service_rules *services;
	const struct discovery_service_choice *chosen; /* with services: those that are sampled; NULL: all */
};

/*
 * Makes the table of processes. It reports each Python to kernel and pysym, which must outlive it. Returns NULL after
 * reporting what failed.
 */
struct processes *processes_new(const struct processes_options *options, struct kernel *kernel, struct pysym *pysym);
/* Accepts NULL. */
void processes_free(struct processes *p);

/*
 * Starts to follow forks, execs and exits, and finds the processes that exist already: those of pids or, with
 * options.all, every process. Looks at each once. Returns 0, or negative errno after reporting what failed.
 */
int processes_follow(struct processes *p, const uint32_t *pids, size_t count);

/* Descriptors that poll readable when events of processes are waiting. */
#define PROCESSES_FDS KERNEL_WATCH_FDS
void processes_get_fds(const struct processes *p, int fds[PROCESSES_FDS]);
/* Handles the waiting events of processes. Returns 0, or negative errno after reporting it. */
int processes_consume_events(struct processes *p);
/* Looks at the processes whose look is due, for some milliseconds at most. now: CLOCK_MONOTONIC seconds. */
void processes_look_at_due(struct processes *p, double now);
/* Returns when processes_look_at_due is to be called next (CLOCK_MONOTONIC seconds); a large number for never. */
double processes_get_next_look(const struct processes *p);

/* Retries container names that were not found, for young processes. now: CLOCK_MONOTONIC seconds. */
void processes_label_young(struct processes *p, double now);

/* Returns how many of the wanted processes are alive; meaningful only where they were given by PID. */
size_t processes_count_living(const struct processes *p);
/*
 * Returns the number of living processes that were given by PID, or are below one, and of which it is not known what
 * they run, as a helper gave no answer. One that was asked about a moment ago is not counted.
 */
size_t processes_count_undecided(const struct processes *p);
/* Returns whether a Python was found at any time of the run. */
bool processes_have_python(const struct processes *p);
/* Returns whether a Python that uses asyncio was, with processes_options.tasks. */
bool processes_have_asyncio(const struct processes *p);

/* Returns the record of a proc_id, or NULL. */
struct processes_record *processes_find_record(const struct processes *p, uint64_t proc_id);
/* Returns the user of the process, 0 if that cannot be read any more. */
uid_t processes_get_user(struct processes_record *process);

/* Returns whether a record ended before the given time (CLOCK_MONOTONIC seconds). */
bool processes_have_ended(const struct processes *p, double before);
/* Calls visit for each record that ended before the given time; visit may forget it. */
void processes_visit_ended(struct processes *p, double before,
			   void (*visit)(struct processes_record *process, void *arg), void *arg);
/* Calls visit for each record. */
void processes_visit_all(struct processes *p, void (*visit)(struct processes_record *process, void *arg), void *arg);

/* Read the CPU time of each process: to be called when sampling begins and ends. */
void processes_begin_cpu(struct processes *p);
void processes_end_cpu(struct processes *p);
/* Writes the CPU time that the process took while samples were taken. Returns false if it is not known. */
bool processes_get_cpu(const struct processes_record *process, uint64_t *ns);
/* Notes that the record's process has a sample with Python frames. */
void processes_mark_sampled(struct processes *p, struct processes_record *process);
/* Returns whether the record is of a wanted Python process without a sample with Python frames. */
bool processes_is_unsampled(const struct processes_record *process);

/* At the end of the run, reports the processes still alive whose Python is refused by now. */
void processes_report_mismatches(struct processes *p);
/* Marks ended processes with unknown programs as not Python where their program's file is known by now to have none. */
void processes_settle_ended(struct processes *p);
/* Removes and frees the record; its share of the counts is kept. */
void processes_forget_record(struct processes *p, struct processes_record *process);
/* Adds the process to the profile, under the name that the options ask for. Returns its index or PROFILE_NONE. */
uint32_t processes_add_to_profile(const struct processes *p, struct processes_record *process, struct profile *profile);
/* With options.parents, at the end of the run: tells the profile who started its processes. Returns 0 or -ENOMEM. */
int processes_tell_parents(const struct processes *p, struct profile *profile);
/* Fills *out with the counts up to now. */
void processes_get_counts(const struct processes *p, struct processes_counts *out);
/*
 * Sets missed and missed_ns alone, of processes whose records are forgotten: of the others it may become known what
 * they ran. The numbers never fall, and at the end of a run processes_get_counts() has them and the rest.
 */
void processes_get_final_counts(const struct processes *p, struct processes_counts *out);
/* Returns the number of living processes that are left out, as their Python is not supported or not readable. */
size_t processes_count_refused(const struct processes *p);

#endif

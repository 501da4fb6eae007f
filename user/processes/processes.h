// SPDX-License-Identifier: Apache-2.0
/*
 * The processes of a run: what the kernel tells of their lives, what they run, and what is answered. A record is one
 * program of one process: fork and exec begin a new one.
 */
#ifndef PROCESSES_H
#define PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uthash.h>

#include "discovery/discovery.h"
#include "discovery/filter.h"
#include "kernel/watch.h"
#include "pybpf.h"

enum processes_state {
	PROCESSES_LOOKING, /* for an interpreter */
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
	char *cmdline, *container;  /* NULL where not asked for */
	char *program;              /* what --merge calls it, likewise */
	bool nameless;              /* memory did not suffice for its names */
	struct pybpf_file_key file; /* of its program */
	uint32_t kind;              /* enum pybpf_file_kind: what the kernel knew of the file */
	uid_t user;                 /* once it was asked for, user_known */
	bool user_known;
	bool looked;                          /* at least once */
	bool unknown_file;                    /* it has mapped one that could not be looked at */
	bool wanted;                          /* the filters let it pass at some time */
	bool started;                         /* during the run */
	bool copy;                            /* by fork, of a Python */
	bool look_further;                    /* a Python, it may have mapped another one */
	bool again;                           /* the process is counted by another of its programs */
	bool in_time;                         /* what it is was known before its interpreter could run */
	bool ended;                           /* the process, or its program by an exec */
	double ended_at;                      /* CLOCK_MONOTONIC seconds */
	uint64_t cpu_ns;                      /* of the process, once it has ended */
	uint32_t layouts[PYBPF_MAX_RUNTIMES]; /* of its Pythons, as in pybpf_proc.runtimes */
	uint32_t nr_runtimes;
	uint32_t running; /* bits by index: those that had an interpreter when one was validated */
	struct discovery_python *unproved[PYBPF_MAX_RUNTIMES]; /* those that have not been validated */
	/*
	 * Bits by index: whose memory contradicts their files; PYBPF_MAX_RUNTIMES is for what is mapped and has no
	 * index. Not 0 since doubt_since (CLOCK_MONOTONIC seconds).
	 */
	uint32_t doubted;
	double doubt_since;
	bool refusal_said;
	char *doubt; /* the sentence that is to say so, until it is said */
	double begun, look_since, next_look;
	struct processes_record *next, *prev; /* in the list of those to look at */
	UT_hash_handle hh;                    /* by proc_id */
	UT_hash_handle hh_pid;                /* by PID: the one that runs now, or ran last */
};

/* What a run met. */
struct processes_counts {
	uint64_t seen;       /* processes that ran Python */
	uint64_t started;    /* of those, during the run */
	uint64_t several;    /* with more than one Python in them */
	char versions[64];   /* of those Pythons: "3.10 and 3.12", of one such process */
	uint64_t refused;    /* whose Python is not supported or not readable */
	uint64_t unanswered; /* questions about files or memory that had no answer */
	uint64_t missed;     /* that ended before it was known what they run */
	uint64_t missed_ns;  /* what those ran */
	uint64_t lost;       /* events of processes that found no room on their way */
};

struct processes;
struct kernel;
struct profile;
struct pysym;

/* What a run wants of processes. */
struct processes_options {
	bool all;    /* every process that the kernel's filters let pass; else those that are given by PID */
	bool follow; /* and their children */
	const struct discovery_filter *names; /* of which processes are wanted by their names; NULL: any */
	/* What they are called: by their program, by their command line; and which container they are in. */
	bool merge, cmdline, containers;
};

/* kernel and pysym are told of each Python; they must outlive the table. Returns NULL after reporting what failed. */
struct processes *processes_new(const struct processes_options *options, struct kernel *kernel, struct pysym *pysym);
/* Accepts NULL. */
void processes_free(struct processes *p);

/*
 * Follows the life of processes from now on, and finds those that there are: pids are the wanted ones, or, with
 * options.all, everybody is. Looks at each once. Returns 0, or negative errno after reporting what failed.
 */
int processes_follow(struct processes *p, const uint32_t *pids, size_t count);

/* Descriptors that poll readable when something happened to a process. */
#define PROCESSES_FDS KERNEL_WATCH_FDS
void processes_get_fds(const struct processes *p, int fds[PROCESSES_FDS]);
/* Takes what happened. Returns 0 or negative errno. */
int processes_consume_events(struct processes *p);
/* Looks at the processes that wait for it, for some milliseconds. now: CLOCK_MONOTONIC seconds. */
void processes_look_at_due(struct processes *p, double now);
/* When processes_look_at_due has something to do next; a large number for never. */
double processes_get_next_look(const struct processes *p);

/* Looks again for what labels young processes lack. now: CLOCK_MONOTONIC seconds. */
void processes_label_young(struct processes *p, double now);

/* How many of the wanted processes live; only known where they were given by PID. */
size_t processes_count_living(const struct processes *p);
/* Was there a Python at any time? */
bool processes_have_python(const struct processes *p);

/* The record of a proc_id, or NULL. */
struct processes_record *processes_find_record(const struct processes *p, uint64_t proc_id);
/* Is there a record that ended before the given time (CLOCK_MONOTONIC seconds)? */
bool processes_have_ended(const struct processes *p, double before);
/* Calls visit for each record that ended before the given time; visit may forget it. */
void processes_visit_ended(struct processes *p, double before,
			   void (*visit)(struct processes_record *process, void *arg), void *arg);
/* Of the processes that live at the end of the run: says which are refused by now. */
void processes_report_doubts(struct processes *p);
/* Of those that ended while they were being looked at: which were no Python, by what is known of their programs now? */
void processes_settle_ended(struct processes *p);
/* Takes the record out and frees it; what it adds to the counts stays. */
void processes_forget_record(struct processes *p, struct processes_record *process);
/* Puts the process into the profile, under the name that the options ask for. Returns its index or PROFILE_NONE. */
uint32_t processes_add_to_profile(const struct processes *p, struct processes_record *process, struct profile *profile);
/* What the run met up to now. */
void processes_get_counts(const struct processes *p, struct processes_counts *out);

#endif

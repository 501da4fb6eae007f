// SPDX-License-Identifier: Apache-2.0
/* A sampling run: load, follow processes, attach, consume, detach, collect. */
#ifndef SESSION_H
#define SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "discovery/discovery.h"
#include "discovery/filter.h"
#include "profile/edit.h"
#include "profile/profile.h"
#include "pybpf_wait.h"
#include "symbols/pysym.h"
#include "kernel/kernel.h"
#include "session/native/native_account.h"
#include "session/tasks/loop_blocks_account.h"
#include "session/waits/gil_account.h"
#include "session/tasks/suspended_account.h"
#include "processes/processes.h"

/* Number of distinct stacks (per thread, if threads are distinguished); it determines the memory of the kernel's maps.
 */
#define SESSION_MAX_STACKS_DEFAULT 32768
#define SESSION_MAX_STACKS_LIMIT   (1u << 20)

#define SESSION_FREQ_DEFAULT 99

/* Number of processes that live at the same time, Python or not. */
#define SESSION_MAX_PROCESSES_DEFAULT 16384
#define SESSION_MAX_PROCESSES_LIMIT   (1u << 22)

/* Limits of pybpf's own memory and its maps together, MiB. */
#define SESSION_MAX_MEMORY_DEFAULT 256
#define SESSION_MAX_MEMORY_LEAST   32
#define SESSION_MAX_MEMORY_MOST    (1u << 20)

/* What a run measures. */
enum session_mode {
	SESSION_CPU,    /* samples of threads that run */
	SESSION_WALL,   /* the time of threads, whatever they do */
	SESSION_OFFCPU, /* the same without the time on a CPU */
	SESSION_GIL,    /* the time that threads wait for the GIL, or sleep with it */
};

/* Functions of C and other compiled languages between those of Python. */
enum session_native {
	SESSION_NATIVE_NONE,
	SESSION_NATIVE,     /* without what the interpreter does to run Python's functions */
	SESSION_NATIVE_ALL, /* with that */
};

/* Memory of the tables by which they are found, MiB. */
#define SESSION_NATIVE_MEMORY_DEFAULT 64
#define SESSION_NATIVE_MEMORY_LEAST   1
#define SESSION_NATIVE_MEMORY_MOST    4096

struct session_options {
	enum session_mode mode;
	bool idle_threads;     /* of SESSION_WALL and _OFFCPU: with threads that were asleep throughout */
	bool no_wait_detail;   /* likewise: without what each wait is for */
	uint64_t min_block_ns; /* likewise: shorter waits are left out */
	bool wakers;           /* of SESSION_WALL, _OFFCPU and _GIL: who ended each wait */
	bool gil_pairs;        /* of SESSION_GIL: the stacks of those who held the GIL behind those who waited */
	bool gil_holders;      /* of SESSION_GIL: the stacks of those who held the GIL in place of those who waited */
	bool all;              /* every process that the filters let pass; else those given to session_follow */
	bool follow;           /* and their children */
	struct kernel_filter users, cgroups;
	int cgroup_subsystem;                  /* kernel's number of the v1 hierarchy that the cgroups are in; -1: v2 */
	const struct discovery_filter *names;  /* filters by name; NULL: any name passes */
	const struct discovery_filter *filter; /* all filters; NULL: a command's processes */
	unsigned roots;                        /* root frames of stacks: a set of enum profile_root */
	bool merge, cmdline;                   /* name a process by its program, by its command line */
	uint32_t max_processes;
	uint64_t max_memory; /* bytes */
	unsigned freq;       /* Hz */
	enum kernel_source source;
	const struct kernel_event *events; /* sampled in place of the timer */
	size_t nr_events;
	bool touched;       /* of a memory event: stacks keep what was given back */
	bool held;          /* of a memory event: they do not */
	bool threads;       /* tell threads apart */
	bool kernel_stacks; /* put the kernel's functions behind the leaf of samples */
	enum session_native native;
	bool native_lines;      /* with native: lines of its functions, and what is inlined into them */
	struct fetch *fetch;    /* with native: fetches files for debuggers after the run; NULL: none are fetched */
	bool fetch_progress;    /* says on stderr which, while it does */
	uint64_t native_memory; /* bytes that tables of native frames may take in the kernel */
	bool tasks;             /* put the asyncio tasks that run into the stacks */
	bool suspended;         /* with tasks, of SESSION_WALL and _OFFCPU: give suspended tasks their time */
	uint64_t loop_block_ns; /* with tasks: list callbacks that take this long; 0: none */
	bool times;             /* keep the time of each sample */
	bool gil;               /* of SESSION_CPU: only threads that hold the GIL, or are attached */
	bool exception;         /* likewise: only threads that raise or handle an exception */
	bool gc;                /* likewise: mark samples within a garbage collection */
	bool opcodes;           /* with SESSION_CPU: add the instruction that the last function executes */
	bool python_only;       /* leave samples without Python frames out of the profile */
	bool states; /* of SESSION_CPU: keep the time of threads by state (session/waits/states.h), if the kernel can */
	bool rolling;    /* session_end_epoch takes the profile in parts: for a run without end */
	bool containers; /* record the container of each process */
	bool parents;    /* record who started each process */
	const struct discovery_service_rules *services; /* with containers: record their services; NULL: none */
	const struct discovery_service_choice *chosen;  /* with services: those that are sampled; NULL: all */
	bool sources;                                   /* keep the source text of the files that samples are in most */
	bool measure_kernel;                            /* have the kernel measure its programs' time */
	bool full_filenames;
	const struct profile_edit_texts *own_paths; /* files in these are the program's own, too; NULL: none */
	enum pysym_line_mode lines;
	uint32_t max_stacks;
	const char *disabled_features; /* names of features not to be used although this kernel has them, or NULL */
	unsigned run;                  /* of the sessions beside each other in this process: from 0 on, each its own */
	uint64_t start_ns;             /* CLOCK_MONOTONIC when pybpf was started */
	const char *host;              /* what the host is called in profiles; NULL: as uname() says */
};

#define SESSION_OPTIONS_DEFAULT                                                                                        \
	{                                                                                                              \
		.cgroup_subsystem = -1, .roots = PROFILE_ROOT_BY_COUNT,                                                \
		.max_processes = SESSION_MAX_PROCESSES_DEFAULT,                                                        \
		.max_memory = (uint64_t)SESSION_MAX_MEMORY_DEFAULT << 20, .freq = SESSION_FREQ_DEFAULT,                \
		.max_stacks = SESSION_MAX_STACKS_DEFAULT,                                                              \
		.native_memory = (uint64_t)SESSION_NATIVE_MEMORY_DEFAULT << 20,                                        \
	}

/* The threads of SESSION_CPU whose time is in state_ns (running, queued) and asleep_ns, and those that are left out. */
struct session_account_schedstat {
	uint64_t processes, threads;
	uint64_t asleep_ns;
	uint64_t ended_processes;  /* during the run */
	uint64_t ended_threads;    /* of other processes, without those that began during the run */
	uint64_t ended_threads_ns; /* CPU time of all of those; 0: little */
	uint64_t unread_threads;   /* began before the run, and were found during it */
	uint64_t late_threads;     /* not read for lack of time */
};

/* What became of the samples. taken + lost = asked. */
struct session_account {
	uint64_t counters[PYBPF_NR_COUNTERS];
	uint64_t unsent; /* samples whose stack or process never came through a ring buffer */
	uint64_t unkept; /* samples that user space found no memory for */
	uint64_t lost;   /* by any cause, including these two */
	uint64_t taken;
	uint64_t python;             /* samples in the profile with Python frames */
	uint64_t stacks;             /* distinct stacks in the profile */
	uint64_t lost_records;       /* that the kernel sent, and that were broken or found no memory */
	uint64_t timed, timed_bytes; /* samples whose time was kept, and the memory that took */
	struct processes_counts processes;
	struct pysym_counters names;
	double duration_s;
	bool measured;
	double kernel_ns_per_sample; /* valid if measured */
	double user_cpu_s;
	int64_t peak_rss_kib;
	struct session_account_schedstat schedstat;   /* of SESSION_CPU */
	uint64_t state_ns[PYBPF_NR_STATES];           /* of SESSION_WALL and _OFFCPU: of the threads in the profile */
	bool has_states;                              /* those modes; the rest is what is not in their profile */
	uint64_t unnamed_waits;                       /* waits of which only the state is known */
	uint64_t min_block_ns, short_waits, short_ns; /* waits shorter than this are left out: their number and time */
	uint64_t undrawn_waits, undrawn_ns;           /* too short for an event of the profile, if times are kept */
	uint64_t refused_waits, refused_ns;           /* no events either, as there was no room */
	uint64_t idle_threads;                        /* asleep throughout, and left out */
	char idle_where[256];                         /* the functions in which most of them were */
	uint64_t unread_names;                        /* threads whose names in Python were not read for lack of time */
	/* Threads that slept when the run began and whose stacks were not read: those that slept on to the end of the
	   run, and the others; the time of both in the profile. */
	uint64_t unread_initial_stacks, late_initial_stacks, unread_initial_ns;
	uint64_t lost_time_ns, lost_threads; /* for which there was no room */
	/* Time in the profile without a stack, as that was new when the memory was used up, or never came. */
	uint64_t refused_stacks_ns, unsent_stacks_ns;
	bool has_gil;
	struct session_gil_account gil; /* of SESSION_GIL */
	struct session_loop_blocks_account loop_blocks;
	struct session_suspended_account suspended;
	struct session_native_account native;
	double time_to_first_sample_ms; /* negative if no sample was taken */
	const char *event; /* what is counted in place of time, or NULL: the timer counts source at freq Hz */
	uint64_t period;   /* events per sample; 0: values are of another unit */
	const char *unit;  /* of values, if they are not numbers of events; else NULL */
	/* With --mode=memory, bytes. */
	uint64_t touched, given_back;
	bool has_held;
	uint64_t held;                                /* by stacks at the end of the run, or of their process */
	uint64_t unknown_touched, unknown_given_back; /* of the above: not known where, or there before */
	uint64_t held_at_most;                        /* by those of processes that have ended, when each held most */
	uint64_t unsent_memory;                       /* number of changes of memory that are not known */
	uint64_t refused_memory;                      /* bytes for which there was no memory to keep whose they are */
	enum kernel_source source;
	unsigned freq; /* 0: there is no timer */
};

struct session;

/* Loads the programs. Returns NULL after reporting what failed. */
struct session *session_new(const struct session_options *options);
/* Accepts NULL. */
void session_free(struct session *s);

/*
 * Follows the starts and ends of processes, and finds the wanted ones: those of pids, or all that the options let pass.
 * Returns 0, or negative errno after reporting what failed.
 */
int session_follow(struct session *s, const uint32_t *pids, size_t count);

/* Starts sampling. Returns 0, or negative errno after reporting what failed. */
int session_attach(struct session *s);
/* Says when the run will end, CLOCK_MONOTONIC seconds: nothing is begun then that takes long. */
void session_end_at(struct session *s, double when);
/* Returns the seconds that session_detach() presumably takes, in which sampling goes on: some threads are read then. */
double session_estimate_end(const struct session *s);
/* Varies the rate, so that the timer does not stay in step with a program. Returns as kernel_vary_rate does. */
double session_jitter(struct session *s);
/*
 * For a rolling session of CPU samples: divides the rate by a number from 1 on, and has each sample from now on count
 * for so many, so that values are of the same unit as before. To be called right after session_end_epoch().
 */
void session_divide_rate(struct session *s, unsigned divisor);
/* Stops sampling. May be called twice. */
void session_detach(struct session *s);

/*
 * Descriptors that poll readable when many records or an event of a process are waiting for session_consume, which is
 * to be called ten times a second anyway.
 */
#define SESSION_FDS 3
void session_fds(const struct session *s, int fds[SESSION_FDS]);
/* Handles the records that the kernel sent. Returns 0, 1 when more are waiting, or negative errno. */
int session_consume(struct session *s);
/*
 * Periodic work: looks at new processes, takes the counts of ended ones from the kernel, keeps to the memory limit.
 * Returns the CLOCK_MONOTONIC second at which to call it next, or negative errno.
 */
double session_do_periodic_work(struct session *s);

/* Returns whether all processes that were given to session_follow, and their followed children, have ended. */
bool session_all_ended(const struct session *s);
/* Returns whether a Python was found at any time of the run. */
bool session_python_found(const struct session *s);
/* As processes_count_undecided(). */
size_t session_count_undecided(const struct session *s);
/* Returns whether the walk uses bpf_loop; else it is a chain of programs. */
bool session_uses_bpf_loop(const struct session *s);

/*
 * For a rolling session: calls take with a profile of the samples counted since the last call, while sampling goes on.
 * Counts that cannot be attributed yet (the stack has not come, the process is not decided) are in a later profile;
 * session_collect returns the last one. forget: stacks, code objects and profile begin anew, so that those of ended
 * programs take no more memory. The profile has all the time of threads up to session_get_epoch_end(): a wait that
 * goes on then is in it as far as it has come, and the rest of it in the next one. Returns 0 or negative errno.
 */
int session_end_epoch(struct session *s, bool forget, int (*take)(const struct profile *profile, void *arg), void *arg);

/* Returns when sampling has begun, and the time of threads: CLOCK_MONOTONIC seconds. After session_attach(). */
double session_get_begin(const struct session *s);
/* Returns when the last epoch has ended, or the run, CLOCK_MONOTONIC seconds; 0: neither. */
double session_get_epoch_end(const struct session *s);

/* Has the memory limits of two sessions of this process, and of those that either has joined, count the memory of both.
 */
void session_join_memory(struct session *s, struct session *other);
/*
 * Reads the memory of pybpf's own process, without what it maps of the kernel's, and that of all the session's maps in
 * the kernel; in bytes. Returns 0 or negative errno.
 */
int session_get_memory(struct session *s, uint64_t *own_bytes, uint64_t *map_bytes);
/* Returns whether pybpf is near the memory limit: session_end_epoch() is to forget, before new stacks are refused. */
bool session_nears_memory_limit(const struct session *s);

/* Returns the numbers of samples and of distinct stacks so far, for a progress line. */
void session_progress(struct session *s, uint64_t *samples, uint64_t *stacks);
/*
 * Returns whether the kernel's table of stacks is half full, beyond which some stacks find its places taken:
 * session_end_epoch() is to forget.
 */
bool session_is_half_full(const struct session *s);

/*
 * Counts the samples by what became of them so far, as it is known by now: fills counters, lost, taken, python, source
 * and freq of *account, missed and missed_ns of its processes, and what session_count_states() does, and zeroes the
 * rest. Returns 0 or negative errno.
 */
int session_count_samples(struct session *s, struct session_account *account);
/*
 * Fills in the time by state of all that session_end_epoch() has given, in a session that measures the time of threads,
 * and what has found no room: has_states, state_ns, lost_time_ns, lost_threads, refused_stacks_ns, unsent_stacks_ns.
 * And what there was no time for: late_initial_stacks, unread_initial_ns, unread_names.
 */
void session_count_states(const struct session *s, struct session_account *account);

/* Returns the number of processes that are left out now: their Python is not supported or not readable. */
size_t session_count_refused_processes(const struct session *s);
/* Returns the number of threads that have slept since sampling began and whose stacks are still to be read. */
size_t session_count_unread_threads(const struct session *s);

/*
 * Puts an account of those into a profile of epochs, and host, measure and, with options.sources, source texts.
 * account NULL: the last of the epochs was described by session_collect(). Returns 0 or -ENOMEM.
 */
int session_describe_epochs(struct session *s, const struct session_account *account, struct profile *profile);
/*
 * With options.sources: returns the text of a file of the profile, which the caller frees; NULL if it cannot be read,
 * or may not be the one that ran.
 */
char *session_read_source(struct session *s, const char *file);

/*
 * After session_detach: takes the remaining records and counts and adds everything up. Fills *account; *profile belongs
 * to the session. Returns 0 or negative errno.
 */
int session_collect(struct session *s, const struct profile **profile, struct session_account *account);

#endif

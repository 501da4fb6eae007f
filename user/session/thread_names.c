// SPDX-License-Identifier: Apache-2.0
/* Reads threads' names in Python, when they are first met and when they are needed. */
#include "session/thread_names.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/host_kernel.h"
#include "base/host.h"
#include "base/procfs.h"
#include "base/remote.h"
#include "kernel/procs.h"
#include "session/account/account_entry.h"
#include "session/account/account_text.h"
#include "session/cpu_time.h"
#include "session/internal.h"
#include "session/measure.h"
#include "session/user_shares.h"
#include "symbols/objects/thread_name.h"

/* Most threads whose names are kept; beyond it all are forgotten, and read anew where they live. */
#define MAX_NAMES 65536
/* Most interpreters of a process that are asked for a thread. */
#define MAX_INTERPRETERS 16
/* A name is not read again before this time has passed. */
#define FRESH_NS 100000000u
/*
 * While the run goes on, names are read again to see which threads change theirs: each no sooner than after this time,
 * and so many at most in a turn, of which there are some ten in a second.
 */
#define AGAIN_NS   500000000u
#define AGAIN_MOST 16
#define TURN_S     0.1
/* In a run without end that takes at most this share of the time of a CPU: a name of thousands takes a millisecond. */
#define AGAIN_SHARE 0.002
/*
 * Likewise, a module that was not imported is not looked for: it takes some reads for each imported module. A process
 * with many does not keep pybpf busy: that takes this many times as long as the look took.
 */
#define MISSING_NS    50000000u
#define MISSING_TIMES 50
/* CPU time for a look at which threads have ended, in a run without end; the next look goes on where this one stops. */
#define LOOK_S 0.02

struct named_thread {
	struct pybpf_thread_key thread;
	uint64_t thread_id; /* pthread_self() */
	uint64_t read_ns;   /* CLOCK_MONOTONIC; 0: it was not read */
	bool missed;        /* for lack of time */
	bool ended;         /* the last look at it found so */
	bool renamed;       /* it has had another name in Python that the program had given it */
	bool comm_renamed;  /* likewise in the kernel */
	char comm[16];      /* that was given to it in the kernel, when it was read last */
	char *name;         /* NULL: Python has none, or it could not be read */
	char *label;        /* what the profile says of a thread with several names */
};

struct interpreter {
	uint64_t proc_id, address;
	uint64_t threads; /* address of threading._active; 0: not imported when it was looked for */
	uint64_t next_ns; /* of the next look, CLOCK_MONOTONIC */
};

/* A user, and the time that reading the names of that user's threads has taken. */
struct reader {
	uid_t user;
	uint32_t pad;
	double used_s;
};

void session_thread_names_init(struct session_thread_names *names)
{
	*names = (struct session_thread_names){.until_s = HUGE_VAL, .share_s = HUGE_VAL};
	intern_init(&names->threads, sizeof(struct named_thread), sizeof(struct pybpf_thread_key));
	intern_init(&names->interpreters, sizeof(struct interpreter), 2 * sizeof(uint64_t));
	intern_init(&names->users, sizeof(struct reader), sizeof(uid_t));
}

static void forget(struct session_thread_names *names)
{
	for (uint32_t i = 0; i < names->threads.count; i++) {
		struct named_thread *named = intern_item(&names->threads, i);

		free(named->name);
		free(named->label);
	}
	intern_free(&names->threads);
	intern_free(&names->interpreters);
}

void session_thread_names_free(struct session_thread_names *names)
{
	forget(names);
	intern_free(&names->users);
	session_thread_names_init(names);
}

void session_thread_names_read_until(struct session_thread_names *names, double used_s)
{
	names->until_s = used_s;
}

/* Returns whether a name of the process's user may be read now. */
static bool may_read(const struct session_thread_names *names, const struct processes_record *process)
{
	const struct reader key = {.user = process->user};
	uint32_t i = intern_find(&names->users, &key);

	return session_used_s() <= names->until_s &&
	       (i == INTERN_NONE || ((const struct reader *)intern_item(&names->users, i))->used_s < names->share_s);
}

/* Charges the user with the time since then. Without memory it is free. */
static void charge(struct session_thread_names *names, const struct processes_record *process, double since_s)
{
	const struct reader fresh = {.user = process->user};
	bool is_fresh;
	uint32_t i = intern_add(&names->users, &fresh, &is_fresh);

	if (i != INTERN_NONE)
		((struct reader *)intern_item(&names->users, i))->used_s += session_used_s() - since_s;
}

/* Reads what the kernel says of the thread. Returns whether it is this one that has the TID now. */
static bool read_stat(const struct processes_record *process, const struct pybpf_thread_key *thread,
		      struct procfs_stat *stat)
{
	uint64_t tick_ms = 1000u / (uint64_t)sysconf(_SC_CLK_TCK), start_ms;
	struct host_clock_offsets offsets;

	if (host_read_clock_offsets(&offsets) || procfs_read_task_stat(process->pid, (pid_t)thread->tid, stat))
		return false;
	/* The key has the kernel's own clock. */
	start_ms = thread->tid_start_ms + (uint64_t)(offsets.boottime / 1000000);
	return (uint32_t)(start_ms - stat->start_time * tick_ms) < tick_ms;
}

/* Returns the address of threading._active of an interpreter, or 0. */
static uint64_t threads_of(struct session_thread_names *names, const struct walk_memory *memory,
			   const struct pybpf_layout *layout, uint64_t proc_id, uint64_t address)
{
	struct interpreter fresh = {.proc_id = proc_id, .address = address}, *known;
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	bool is_fresh;
	uint32_t i;

	if (names->interpreters.count >= MAX_NAMES)
		intern_free(&names->interpreters);
	i = intern_add(&names->interpreters, &fresh, &is_fresh);
	if (i == INTERN_NONE)
		return 0;
	known = intern_item(&names->interpreters, i);
	if (is_fresh || (!known->threads && now >= known->next_ns)) {
		known->threads = pysym_find_threads(memory, layout, address);
		known->next_ns = clock_ns(CLOCK_MONOTONIC);
		known->next_ns += MISSING_NS + MISSING_TIMES * (known->next_ns - now);
	}
	return known->threads;
}

/* Reads the name from the interpreters of one runtime; the main interpreter's, the last in the list, counts most. */
static char *read_of_runtime(struct session *s, const struct processes_record *process,
			     const struct pybpf_runtime *runtime, uint64_t thread_id)
{
	const struct pybpf_layout *layout = kernel_get_layout(s->kernel, runtime->layout);
	struct walk_memory memory;
	struct pysym_thread found;
	char *name = NULL;
	uint64_t interp = 0;

	walk_process_memory(&memory, &process->pid);
	if (remote_read(process->pid, runtime->interp_head, &interp, sizeof(interp)))
		return NULL;
	for (int i = 0; interp && i < MAX_INTERPRETERS; i++) {
		uint64_t threads = threads_of(&s->thread_names, &memory, layout, process->proc_id, interp);

		if (threads && pysym_read_thread(&memory, layout, threads, thread_id, &found) && found.name) {
			free(name);
			name = found.name;
		}
		if (remote_read(process->pid, interp + layout->interp_next, &interp, sizeof(interp)))
			break;
	}
	return name;
}

/*
 * Returns whether Python made up the name (threading.py: _newname, _MainThread, _DummyThread): it says less than a name
 * that the program gave the thread in the kernel.
 */
static bool is_made_up(const char *name)
{
	return !strcmp(name, "MainThread") || !strncmp(name, "Thread-", 7) || !strncmp(name, "Dummy-", 6);
}

/* Takes the thread's name in the kernel, unless it is the one of the thread that made it. */
static void take_comm(struct named_thread *named, const struct processes_record *process, const char *comm)
{
	if (!named->comm[0] && !strncmp(comm, process->comm, sizeof(named->comm) - 1))
		return;
	named->comm_renamed |= named->comm[0] && strncmp(comm, named->comm, sizeof(named->comm) - 1) != 0;
	memset(named->comm, 0, sizeof(named->comm));
	memcpy(named->comm, comm, strnlen(comm, sizeof(named->comm) - 1));
}

/* Takes the name in Python, which it frees later. */
static void take_name(struct named_thread *named, char *name)
{
	named->renamed |= named->name && !is_made_up(named->name) && strcmp(named->name, name) != 0;
	free(named->name);
	named->name = name;
}

/* Reads the thread's name in Python, or returns NULL. */
static char *read_name(struct session *s, const struct processes_record *process, const struct pybpf_thread_key *thread,
		       uint64_t thread_id)
{
	struct pybpf_proc entry;
	char *name = NULL;

	if (process->ended || process->state != PROCESSES_PYTHON ||
	    kernel_get_process(s->kernel, process->pid, &entry) || entry.proc_id != thread->proc_id)
		return NULL;
	for (uint32_t i = 0; i < entry.nr_runtimes && i < PYBPF_MAX_RUNTIMES && !name; i++) {
		if (!entry.runtimes[i].refused)
			name = read_of_runtime(s, process, &entry.runtimes[i], thread_id);
	}
	return name;
}

static void refresh(struct session *s, const struct processes_record *process, struct named_thread *named)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct procfs_stat stat;
	double since_s;
	char *name;

	/* Once after the run's end, so that all its samples have one name. */
	if (named->read_ns && (now - named->read_ns < FRESH_NS || (s->detach_ns && named->read_ns > s->detach_ns)))
		return;
	if (!may_read(&s->thread_names, process)) {
		s->thread_names.unread += !named->read_ns && !named->missed;
		named->missed = true;
		return;
	}
	named->read_ns = now;
	since_s = session_used_s();
	name = read_name(s, process, &named->thread, named->thread_id);
	if (s->thread_names.share_s < HUGE_VAL)
		charge(&s->thread_names, process, since_s);
	/* A later thread may have the same TID, or the same pthread_self(). */
	if (!read_stat(process, &named->thread, &stat)) {
		free(name);
		return;
	}
	take_comm(named, process, stat.comm);
	if (name)
		take_name(named, name);
}

static struct named_thread *add(struct session *s, const struct pybpf_thread_key *thread, uint64_t thread_id)
{
	const struct named_thread fresh = {.thread = *thread, .thread_id = thread_id};
	bool is_fresh;
	uint32_t i;

	if (s->thread_names.threads.count >= MAX_NAMES)
		forget(&s->thread_names);
	i = intern_add(&s->thread_names.threads, &fresh, &is_fresh);
	return i == INTERN_NONE ? NULL : intern_item(&s->thread_names.threads, i);
}

void session_thread_names_note(struct session *s, const struct pybpf_thread_key *thread, uint64_t thread_id)
{
	if (!add(s, thread, thread_id))
		s->thread_names.unread++;
}

/* Takes the record of a thread that is seen for the first time, and reads its name. Returns 0, -EBADMSG or -ENOMEM. */
static int take(struct session *s, const struct pybpf_event *record)
{
	const struct pybpf_thread_event *event = (const void *)record;
	const struct processes_record *process;
	struct named_thread *named;

	if (record->size < sizeof(*event))
		return -EBADMSG;
	named = add(s, &event->thread, event->thread_id);
	if (!named)
		return -ENOMEM;
	process = processes_find_record(s->processes, event->thread.proc_id);
	if (process)
		refresh(s, process, named);
	return 0;
}

/* Reads some names again, to see which threads change theirs. */
static double do_periodic_work(struct session *s, double now)
{
	struct session_thread_names *names = &s->thread_names;
	uint64_t now_ns = (uint64_t)(now * 1e9);
	double since_s = session_used_s();
	uint32_t read = 0;

	if (!s->options.threads || now < names->next_s)
		return SESSION_NEVER_S;
	for (uint32_t i = 0; i < names->threads.count && read < AGAIN_MOST; i++) {
		struct named_thread *named = intern_item(&names->threads, names->turn++ % names->threads.count);
		const struct processes_record *process = processes_find_record(s->processes, named->thread.proc_id);

		if (!process || process->ended || now_ns < named->read_ns + AGAIN_NS)
			continue;
		refresh(s, process, named);
		read++;
	}
	names->next_s = now + TURN_S;
	if (s->options.rolling)
		names->next_s = fmax(names->next_s, now + (session_used_s() - since_s) / AGAIN_SHARE);
	return SESSION_NEVER_S;
}

/* Returns the label of a thread that has had several names, of which this is one; the name without memory. */
static const char *label_several(struct named_thread *named, const char *name)
{
	free(named->label);
	return asprintf(&named->label, "%s and other names", name) < 0 ? (named->label = NULL, name) : named->label;
}

/* Returns whether the thread's name in Python says more than the one in the kernel. */
static bool is_better(const struct named_thread *named, const struct processes_record *process, const char *kernel)
{
	if (!named->name || !*named->name)
		return false;
	/* A thread that nobody named has the name of the one that made it; 3.14+ gives the kernel Python's, cut. */
	return !is_made_up(named->name) || !*kernel || !strncmp(named->name, kernel, strlen(kernel)) ||
	       (named->thread.tid != (uint32_t)process->pid && !strcmp(kernel, process->comm));
}

const char *session_find_thread_name(struct session *s, const struct processes_record *process,
				     const struct pybpf_thread_key *thread, const char *kernel)
{
	const struct named_thread key = {.thread = *thread};
	uint32_t i = intern_find(&s->thread_names.threads, &key);
	struct named_thread *named;

	if (i == INTERN_NONE)
		return kernel;
	named = intern_item(&s->thread_names.threads, i);
	refresh(s, process, named);
	if (is_better(named, process, kernel))
		return named->renamed ? label_several(named, named->name) : named->name;
	return named->comm_renamed ? label_several(named, kernel) : kernel;
}

static bool process_has_ended(const struct session *s, uint64_t proc_id)
{
	const struct processes_record *process = processes_find_record(s->processes, proc_id);

	return !process || process->ended;
}

static bool thread_has_ended(const struct session *s, const struct pybpf_thread_key *thread)
{
	struct procfs_stat stat;

	return process_has_ended(s, thread->proc_id) ||
	       !read_stat(processes_find_record(s->processes, thread->proc_id), thread, &stat);
}

/* Forgets the threads that the last look at them found ended: all that was counted of them is in profiles by now. */
static void forget_threads(struct session *s)
{
	struct session_thread_names *names = &s->thread_names;
	const double until_s = session_used_s() + LOOK_S;

	for (uint32_t left = names->threads.count; left && session_used_s() < until_s; left--) {
		uint32_t i = names->look % names->threads.count;
		struct named_thread *named = intern_item(&names->threads, i);
		bool known_ended = named->ended;

		named->ended = known_ended || thread_has_ended(s, &named->thread);
		names->look = i + !known_ended;
		if (!known_ended)
			continue;
		free(named->name);
		free(named->label);
		intern_remove(&names->threads, i);
	}
}

static void forget_interpreters(struct session *s)
{
	struct intern *interpreters = &s->thread_names.interpreters;

	for (uint32_t i = interpreters->count; i-- > 0;) {
		const struct interpreter *known = intern_item(interpreters, i);

		if (process_has_ended(s, known->proc_id))
			intern_remove(interpreters, i);
	}
}

static void forget_ended(struct session *s)
{
	forget_threads(s);
	forget_interpreters(s);
}

static void init(struct session *s)
{
	session_thread_names_init(&s->thread_names);
}

static void release(struct session *s)
{
	session_thread_names_free(&s->thread_names);
}

/* Gives each user an equal share of the time that is left, so that nobody's threads take all of it. */
static void limit_reading(struct session *s)
{
	struct session_thread_names *names = &s->thread_names;
	size_t users = session_count_users(s, session_runs_python, NULL);

	session_thread_names_read_until(names, s->ended_used_s + SESSION_END_NAMES_S);
	names->share_s = (names->until_s - session_used_s()) / (double)(users ?: 1);
}

static void tell(const struct session *s, struct session_account *account)
{
	account->unread_names = s->thread_names.unread;
}

static void print(const struct session_account *a, const struct profile *p, FILE *out)
{
	(void)p;
	if (!a->unread_names)
		return;
	fputs(a->unread_names == 1 ? "pybpf: the name of " : "pybpf: the names of ", out);
	session_print_grouped(a->unread_names, out);
	fprintf(out, " thread%s could not be read in time\n", a->unread_names == 1 ? "" : "s");
}

static const struct session_entry entries[] = {
	{"threads", "unnamed", SESSION_EPOCH_COUNT(unread_names)},
	{0},
};

const struct session_measure session_thread_names_measure = {
	.name = "names of threads in Python",
	.init = init,
	.free = release,
	.do_periodic_work = do_periodic_work,
	.records = SESSION_RECORD(PYBPF_EVENT_THREAD),
	.take = take,
	.forget_frames = forget_ended,
	.limit_reading = limit_reading,
	.tell = tell,
	.print = print,
	.entries = entries,
};

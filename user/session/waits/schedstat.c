// SPDX-License-Identifier: Apache-2.0
/* Reads what the scheduler has counted of each thread, at the two ends of the run, and adds up the differences. */
#include "session/waits/schedstat.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/beyond.h"
#include "base/clock.h"
#include "base/procfs.h"
#include "base/text.h"
#include "session/account/account_entry.h"
#include "session/cpu_time.h"
#include "session/internal.h"
#include "session/measure.h"
#include "session/user_shares.h"
#include "session/wanted.h"
#include "session/waits/wait_name.h"

#define NS_PER_S 1000000000u

/* A thread that was there when the run began. */
struct begun_thread {
	int32_t pid, tid;
	uint64_t proc_id;
	uint64_t read_ns; /* CLOCK_BOOTTIME */
	struct procfs_sched sched;
	bool alive; /* at the end, too */
};

/* The CPU time of a process when its threads were read for the first time. */
struct begun_cpu {
	uint64_t proc_id;
	uint64_t ns;
};

static void init(struct session *s)
{
	struct session_schedstat *sched = &s->schedstat;

	memset(sched, 0, sizeof(*sched));
	intern_init(&sched->cpu, sizeof(struct begun_cpu), offsetof(struct begun_cpu, ns));
	intern_init(&sched->begun, sizeof(struct begun_thread), offsetof(struct begun_thread, proc_id));
}

static void release(struct session *s)
{
	struct session_schedstat *sched = &s->schedstat;

	intern_free(&sched->begun);
	intern_free(&sched->cpu);
	free(sched->processes);
	init(s);
}

static uint64_t tick_ns(void)
{
	return NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
}

struct reading {
	struct session *session;
	const struct processes_record *process;
	struct session_schedstat_process sum;
	double until_s; /* session_used_s() */
	int err;
};

/* CPU time for all users' threads when the run begins: each takes some 10 microseconds. */
#define BEGIN_S 0.1

static bool is_late(const struct reading *r)
{
	return session_used_s() > r->until_s;
}

static int read_begin(pid_t tid, void *arg)
{
	struct reading *r = arg;
	struct begun_thread thread = {.proc_id = r->process->proc_id, .pid = r->process->pid, .tid = tid};
	bool fresh;

	if (is_late(r)) {
		r->session->schedstat.cut = true;
		return 1;
	}
	thread.read_ns = clock_ns(CLOCK_BOOTTIME);
	if (procfs_read_sched(thread.pid, tid, &thread.sched))
		return 0;
	return intern_add(&r->session->schedstat.begun, &thread, &fresh) == INTERN_NONE ? -ENOMEM : 0;
}

static bool is_to_begin(const struct processes_record *process, void *arg)
{
	const struct reading *r = arg;
	bool chosen = !r->session->options.all || process->state == PROCESSES_PYTHON;

	return !process->ended && (chosen || process->state == PROCESSES_LOOKING);
}

static void begin_process(struct processes_record *process, double until_s, void *arg)
{
	struct begun_cpu cpu = {.proc_id = process->proc_id};
	struct reading *r = arg;
	bool fresh;

	r->process = process;
	r->until_s = until_s;
	if (!r->err && !procfs_cpu_ns(process->pid, &cpu.ns) &&
	    intern_add(&r->session->schedstat.cpu, &cpu, &fresh) == INTERN_NONE)
		r->err = -ENOMEM;
	if (!r->err)
		r->err = procfs_each_task(process->pid, read_begin, r) < 0 ? -ENOMEM : 0;
}

/* Reads the threads of each process. Without memory for that, nothing is known. */
static int begin(struct session *s)
{
	const double begin_s = clock_s(CLOCK_MONOTONIC), begin_used_s = session_used_s();
	struct reading reading = {.session = s};
	struct procfs_sched own;

	/* Kernels without CONFIG_SCHED_INFO report 0 for every thread. */
	s->schedstat.known = !procfs_read_sched(getpid(), getpid(), &own) && own.running_ns;
	s->schedstat.begin_ticks = clock_ns(CLOCK_BOOTTIME) / tick_ns();
	if (s->schedstat.known &&
	    session_visit_by_user(s, session_used_s() + BEGIN_S, is_to_begin, begin_process, &reading))
		reading.err = -ENOMEM;
	s->schedstat.known &= !reading.err;
	s->schedstat.begin_s = clock_s(CLOCK_MONOTONIC) - begin_s;
	s->schedstat.begin_used_s = session_used_s() - begin_used_s;
	return 0;
}

/* Reading a thread at the end, with its state and start, takes this many times as long as at the start of the run. */
#define END_TIMES 2.5
/* By so much more than its CPU time it takes at most, as others have the CPU, too: what took longer was one pause. */
#define SLOWER_MOST 3.0

/* Returns the share of the threads that were read at the start whose process may be read at the end, too. */
static double find_share_at_end(const struct session *s)
{
	const struct intern *begun = &s->schedstat.begun;
	uint32_t count = 0;

	for (uint32_t i = 0; i < begun->count; i++) {
		const struct begun_thread *thread = intern_item(begun, i);
		const struct processes_record *process = processes_find_record(s->processes, thread->proc_id);

		count += process && !process->ended &&
			 (process->state == PROCESSES_PYTHON || process->state == PROCESSES_LOOKING);
	}
	return begun->count ? (double)count / begun->count : 0;
}

static double estimate_end(const struct session *s)
{
	const struct session_schedstat *sched = &s->schedstat;
	const double used_s = fmin(END_TIMES * sched->begin_used_s * find_share_at_end(s), SESSION_END_SCHED_S);
	const double slower = sched->begin_used_s > 0 ? sched->begin_s / sched->begin_used_s : 1;

	return used_s * fmin(fmax(slower, 1), SLOWER_MOST);
}

/*
 * Adds what a thread did in elapsed_ns. The kernel counts a wait for a CPU when it ends, also as much of it as was
 * before elapsed_ns.
 */
static void add_thread(struct session_schedstat_process *sum, uint64_t elapsed_ns, uint64_t running_ns,
		       uint64_t queued_ns)
{
	uint64_t idle_ns = beyond(elapsed_ns, running_ns);

	if (queued_ns > idle_ns)
		queued_ns = idle_ns;
	sum->threads++;
	sum->running_ns += running_ns;
	sum->queued_ns += queued_ns;
	sum->asleep_ns += idle_ns - queued_ns;
}

/* Returns the thread as it was when the run began; NULL: it is another one. */
static struct begun_thread *find_begun(const struct reading *r, pid_t tid, const struct procfs_stat *stat,
				       const struct procfs_sched *now)
{
	const struct begun_thread key = {.pid = r->process->pid, .tid = tid};
	uint32_t i = intern_find(&r->session->schedstat.begun, &key);
	struct begun_thread *thread;

	if (i == INTERN_NONE || stat->start_time > r->session->schedstat.begin_ticks)
		return NULL;
	thread = intern_item(&r->session->schedstat.begun, i);
	/* Thread IDs are reused. */
	if (now->running_ns < thread->sched.running_ns || now->queued_ns < thread->sched.queued_ns)
		return NULL;
	return thread;
}

static void note_alive(const struct reading *r, pid_t tid)
{
	const struct begun_thread key = {.pid = r->process->pid, .tid = tid};
	uint32_t i = intern_find(&r->session->schedstat.begun, &key);

	if (i != INTERN_NONE)
		((struct begun_thread *)intern_item(&r->session->schedstat.begun, i))->alive = true;
}

static int read_end(pid_t tid, void *arg)
{
	struct reading *r = arg;
	struct session_schedstat_process *sum = &r->sum;
	uint64_t now_ns = clock_ns(CLOCK_BOOTTIME), start_ns;
	struct procfs_sched now;
	struct procfs_stat stat;
	struct begun_thread *begun;

	if (is_late(r)) {
		note_alive(r, tid);
		sum->late++;
		return 0;
	}
	if (procfs_read_task_stat(r->process->pid, tid, &stat) || procfs_read_sched(r->process->pid, tid, &now))
		return 0;
	begun = find_begun(r, tid, &stat, &now);
	if (stat.state == 'Z' || stat.state == 'X') {
		/* A first thread that had ended before the run is no loss. */
		if (begun && now.running_ns == begun->sched.running_ns)
			begun->alive = true;
		return 0;
	}
	if (begun) {
		begun->alive = true;
		add_thread(sum, now_ns - begun->read_ns, now.running_ns - begun->sched.running_ns,
			   now.queued_ns - begun->sched.queued_ns);
		return 0;
	}
	if (stat.start_time < r->session->schedstat.begin_ticks) {
		*(r->session->schedstat.cut ? &sum->late : &sum->unread) += 1;
		return 0;
	}
	/* It began somewhere in its tick. */
	start_ns = stat.start_time * tick_ns() + tick_ns() / 2;
	add_thread(sum, beyond(now_ns, start_ns), now.running_ns, now.queued_ns);
	return 0;
}

/* Returns the CPU time of the process's threads that ended, of which the sum of the others is known; 0: not known. */
static int64_t ended_cpu_ns(const struct session_schedstat *sched, const struct processes_record *process,
			    uint64_t running_ns)
{
	uint32_t i = intern_find(&sched->cpu, &process->proc_id);
	uint64_t begin_ns = i == INTERN_NONE ? 0 : ((const struct begun_cpu *)intern_item(&sched->cpu, i))->ns, now_ns;

	/* An exec has begun the record, and what the process had taken before the run is not known. */
	if ((i == INTERN_NONE && process->start < sched->begin_ticks) || procfs_cpu_ns(process->pid, &now_ns))
		return 0;
	return (int64_t)(now_ns - begin_ns - running_ns);
}

static void end_process(struct processes_record *process, double until_s, void *arg)
{
	struct reading *r = arg;
	struct session_schedstat *sched = &r->session->schedstat;

	if (r->err)
		return;
	r->process = process;
	r->until_s = until_s;
	r->sum = (struct session_schedstat_process){.proc_id = process->proc_id};
	r->err = procfs_each_task(process->pid, read_end, r);
	if (!r->sum.unread && !r->sum.late)
		r->sum.ended_ns = ended_cpu_ns(sched, process, r->sum.running_ns);
	if (!r->err && (r->sum.threads || r->sum.unread || r->sum.late))
		r->err = array_reserve(&sched->processes, &sched->room, sched->nr_processes + 1,
				       sizeof(*sched->processes));
	if (!r->err && (r->sum.threads || r->sum.unread || r->sum.late))
		sched->processes[sched->nr_processes++] = r->sum;
}

static void end(struct session *s)
{
	struct reading reading = {.session = s};

	if (s->schedstat.known &&
	    session_visit_by_user(s, s->ended_used_s + SESSION_END_SCHED_S, session_runs_python, end_process, &reading))
		reading.err = -ENOMEM;
	s->schedstat.known &= !reading.err;
}

struct visiting {
	int (*visit)(const struct session_schedstat_thread *thread, void *arg);
	void *arg;
	pid_t pid;
	int err;
};

static int visit_thread(pid_t tid, void *arg)
{
	struct visiting *v = arg;
	struct session_schedstat_thread thread = {.pid = v->pid, .tid = tid, .at_ns = clock_ns(CLOCK_BOOTTIME)};
	struct procfs_stat stat;

	if (procfs_read_task_stat(v->pid, tid, &stat) || stat.state == 'Z' || stat.state == 'X' ||
	    procfs_read_sched(v->pid, tid, &thread.sched))
		return 0;
	thread.start_ticks = stat.start_time;
	thread.comm = stat.comm;
	return v->visit(&thread, v->arg);
}

static void visit_process(struct processes_record *process, void *arg)
{
	struct visiting *v = arg;

	if (v->err || process->ended || process->state != PROCESSES_PYTHON || !process->wanted)
		return;
	v->pid = process->pid;
	v->err = procfs_each_task(process->pid, visit_thread, v);
}

int session_schedstat_visit(struct session *s, int (*visit)(const struct session_schedstat_thread *thread, void *arg),
			    void *arg)
{
	struct visiting v = {.visit = visit, .arg = arg};

	session_note_wanted(s);
	processes_visit_all(s->processes, visit_process, &v);
	return v.err;
}

/* The record of a process that is in the profile, or could be; NULL: it is not, or is forgotten. */
static struct processes_record *find_wanted(const struct session *s, uint64_t proc_id)
{
	struct processes_record *process = processes_find_record(s->processes, proc_id);

	return process && process->wanted && process->state == PROCESSES_PYTHON ? process : NULL;
}

/*
 * What a running thread did since the last tick is in the process's CPU time, and not in schedstat: 10 ms where
 * CONFIG_HZ is 100.
 */
#define TICK_NS 10000000

/*
 * Puts the sums over wanted processes into the account. A thread that ended during the run is in none of them.
 */
static void tell(const struct session *s, struct session_account *account)
{
	struct session_account_schedstat *out = &account->schedstat;
	int64_t ended_ns = 0;

	if (!s->schedstat.known)
		return;
	for (size_t i = 0; i < s->schedstat.nr_processes; i++) {
		const struct session_schedstat_process *sum = &s->schedstat.processes[i];
		const struct processes_record *process = find_wanted(s, sum->proc_id);

		if (!process)
			continue;
		out->processes++;
		out->threads += sum->threads;
		out->unread_threads += sum->unread;
		out->late_threads += sum->late;
		out->asleep_ns += sum->asleep_ns;
		account->state_ns[PYBPF_STATE_RUNNING] += sum->running_ns;
		account->state_ns[PYBPF_STATE_QUEUED] += sum->queued_ns;
		ended_ns += sum->ended_ns;
	}
	for (uint32_t i = 0; i < s->schedstat.begun.count; i++) {
		const struct begun_thread *thread = intern_item(&s->schedstat.begun, i);
		const struct processes_record *process = find_wanted(s, thread->proc_id);

		out->ended_threads += !thread->alive && process && !process->ended;
	}
	out->ended_processes = beyond(account->processes.seen, out->processes);
	if (ended_ns > (int64_t)sysconf(_SC_NPROCESSORS_ONLN) * TICK_NS)
		out->ended_threads_ns = (uint64_t)ended_ns;
}

/* Prints the threads and processes whose time is not in the line above. */
static void print_left_out(const struct session_account_schedstat *sched, FILE *out)
{
	const char *separator = "pybpf: that is without ", *and = ", and without ";

	if (sched->ended_processes) {
		fprintf(out, "%s%" PRIu64 " process%s that ended", separator, sched->ended_processes,
			text_es(sched->ended_processes));
		separator = and;
	}
	if (sched->ended_threads_ns) {
		fprintf(out, "%sthreads that ended, which took %.2f s of CPU time", separator,
			(double)sched->ended_threads_ns / 1e9);
		separator = and;
	} else if (sched->ended_threads) {
		fprintf(out, "%s%" PRIu64 " thread%s that ended", separator, sched->ended_threads,
			sched->ended_threads == 1 ? "" : "s");
		separator = and;
	}
	if (sched->unread_threads) {
		fprintf(out, "%s%" PRIu64 " thread%s that %s found during the run", separator, sched->unread_threads,
			sched->unread_threads == 1 ? "" : "s", sched->unread_threads == 1 ? "was" : "were");
		separator = and;
	}
	if (sched->late_threads) {
		fprintf(out, "%s%" PRIu64 " thread%s that could not be read in time", separator, sched->late_threads,
			sched->late_threads == 1 ? "" : "s");
		separator = and;
	}
	if (separator == and)
		fputs(" (--mode=wall has all)\n", out);
}

static void print(const struct session_account *a, const struct profile *p, FILE *out)
{
	uint64_t running = a->state_ns[PYBPF_STATE_RUNNING], queued = a->state_ns[PYBPF_STATE_QUEUED];
	double total = (double)(running + queued + a->schedstat.asleep_ns);

	(void)p;
	if (!a->has_states && a->schedstat.threads && total > 0) {
		fprintf(out,
			"pybpf: %.2f thread-seconds: %.1f %% %s, %.1f %% %s, %.1f %% asleep (--mode=wall says for "
			"what)\n",
			total / 1e9, 100 * (double)running / total, session_state_name(PYBPF_STATE_RUNNING),
			100 * (double)queued / total, session_state_name(PYBPF_STATE_QUEUED),
			100 * (double)a->schedstat.asleep_ns / total);
		print_left_out(&a->schedstat, out);
	}
}

static const struct session_entry entries[] = {
	{"state_s", "asleep", SESSION_SECONDS(schedstat.asleep_ns)},
	{"threads", "counted", SESSION_COUNT(schedstat.threads)},
	{"threads", "ended", SESSION_COUNT(schedstat.ended_threads)},
	{"threads", "ended_cpu_s", SESSION_SECONDS(schedstat.ended_threads_ns)},
	{"threads", "found_late", SESSION_COUNT(schedstat.unread_threads)},
	{"threads", "not_in_time", SESSION_COUNT(schedstat.late_threads)},
	{0},
};

static bool is_wanted(const struct session_options *options)
{
	return options->mode == SESSION_CPU;
}

/* Read when no sample waits for what takes some microseconds for each thread. */
const struct session_measure session_schedstat_measure = {
	.name = "time of threads, by the scheduler",
	.is_wanted = is_wanted,
	.init = init,
	.free = release,
	.begin = begin,
	.end = end,
	.estimate_end = estimate_end,
	.tell = tell,
	.print = print,
	.entries = entries,
};

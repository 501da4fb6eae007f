// SPDX-License-Identifier: Apache-2.0
/*
 * Gives suspended tasks their time. Snapshots are taken at random times; each interval between two of a process belongs
 * half to the stacks of the first and half to those of the second one.
 */
#include "session/tasks/suspended.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "cpython/facts.h"
#include "discovery/ask_tasks.h"
#include "helper/helper.h"
#include "kernel/procs.h"
#include "session/run/due.h"
#include "session/account/account_entry.h"
#include "session/cpu_time.h"
#include "session/internal.h"
#include "session/measure.h"
#include "session/sample_owner.h"
#include "session/waits/wait_frames.h"
#include "session/user_shares.h"
#include "session/waits/wait_name.h"
#include "session/waits/wait_profile.h"

/* Mean time between two snapshots, and the share of one CPU's time that they take at most. */
#define INTERVAL_S 0.05
#define COST_SHARE 0.02
/* Seconds that an answer may take: the main loop waits. */
#define PATIENCE_S 0.5
/* Seconds after which no further snapshot is begun in one turn of the main loop. */
#define TURN_S    0.05
#define NS        1e9
#define NS_PER_US 1000

/* The last snapshot of a process. */
struct snapshot {
	uint64_t proc_id;
	uint64_t time_ns;
	double next;      /* CLOCK_MONOTONIC seconds of the next one */
	uint32_t *stacks; /* index in session_suspended.stacks of each suspended task */
	size_t count, room;
};

struct suspended_stack {
	uint64_t proc_id, id; /* id: a hash of all that the stack says */
	uint64_t ns;
	uint32_t stack; /* of the profile */
	uint32_t pad;
};

static void init(struct session *s)
{
	struct session_suspended *u = &s->suspended;

	memset(u, 0, sizeof(*u));
	intern_init(&u->processes, sizeof(struct snapshot), sizeof(uint64_t));
	intern_init(&u->stacks, sizeof(struct suspended_stack), offsetof(struct suspended_stack, ns));
	u->seed = clock_ns(CLOCK_MONOTONIC) | 1;
}

static void release(struct session *s)
{
	struct session_suspended *u = &s->suspended;

	for (uint32_t i = 0; i < u->processes.count; i++)
		free(((struct snapshot *)intern_item(&u->processes, i))->stacks);
	intern_free(&u->processes);
	intern_free(&u->stacks);
	init(s);
}

static uint64_t mix(uint64_t hash, const void *bytes, size_t size)
{
	/* FNV-1a (Fowler, Noll, Vo), by words where there are some. */
	const uint8_t *at = bytes;
	uint64_t word;

	for (; size >= sizeof(word); size -= sizeof(word), at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
		hash ^= hash >> 32;
	}
	for (; size; size--)
		hash = (hash ^ *at++) * 0x100000001b3u;
	return hash;
}

static uint64_t chain_id(const struct task_read *task)
{
	uint64_t id = mix(task->flags + 1, task->tasks, task->nr_tasks * sizeof(*task->tasks));

	return id | 1;
}

static uint64_t stack_id(const struct task_read *task)
{
	uint64_t id = mix(chain_id(task), task->frames, task->nr_frames * sizeof(*task->frames));

	id = mix(id, task->type, sizeof(task->type));
	id = mix(id, &task->peer, sizeof(task->peer));
	id = mix(id, &task->awaited, sizeof(task->awaited));
	return mix(id, &task->awaits, sizeof(task->awaits));
}

/* Writes the leaf of a suspended task. Returns 0 or -ENOMEM. */
static int name_awaited(const struct task_read *task, char **out)
{
	char *name = session_name_awaited(task);
	int n = name ? asprintf(out, "[awaits: %s]", name) : -1;

	free(name);
	return n < 0 ? -ENOMEM : 0;
}

/* Makes the stack of a task that is met for the first time. Returns 0, -ENOENT for an unknown process, -ENOMEM. */
static int make_stack(struct session *s, uint64_t proc_id, const struct task_read *task, uint32_t runtime,
		      uint32_t *stack)
{
	struct pybpf_task_event chain = {.task_id = chain_id(task), .count = task->nr_tasks, .flags = task->flags};
	const struct pybpf_stack_event event = {.event.runtime = (uint8_t)runtime,
						.proc_id = proc_id,
						.depth = task->nr_frames,
						.task_id = chain.task_id};
	char *awaited = NULL;
	int err;

	*stack = session_push_note(s->profile, PROFILE_ROOT, "[suspended tasks]");
	if (*stack == PROFILE_NONE)
		return -ENOMEM;
	memcpy(chain.tasks, task->tasks, task->nr_tasks * sizeof(*task->tasks));
	err = stacks_add_tasks(s->stacks, &chain, sizeof(chain));
	err = err ?: stacks_push_suspended(s->stacks, &event, NULL, task->frames, stack);
	err = err ?: name_awaited(task, &awaited);
	if (!err) {
		*stack = session_add_wait_frame(s->profile, *stack, PROFILE_STATE_SUSPENDED, awaited);
		err = *stack == PROFILE_NONE ? -ENOMEM : 0;
	}
	free(awaited);
	return err;
}

/* Makes the stack for the time of all tasks of which there is no room for the stacks. Returns 0 or -ENOMEM. */
static int make_unkept(struct session *s, uint32_t *stack)
{
	*stack = session_push_note(s->profile, PROFILE_ROOT, "[suspended tasks]");
	*stack = session_add_wait_frame(s->profile, *stack, PROFILE_STATE_SUSPENDED, "[awaits: not kept]");
	return *stack == PROFILE_NONE ? -ENOMEM : 0;
}

/* The number of the stack for which there was no room. */
#define UNKEPT_ID 0

struct looking {
	struct session *session;
	struct snapshot *snapshot;
	uint32_t runtime;
	double cpu_s; /* that it may take */
};

static int take_task(const struct task_read *task, void *arg)
{
	struct looking *looking = arg;
	struct session *s = looking->session;
	struct session_suspended *u = &s->suspended;
	struct snapshot *snapshot = looking->snapshot;
	struct suspended_stack key = {.proc_id = snapshot->proc_id, .id = stack_id(task)};
	uint32_t i = intern_find(&u->stacks, &key);
	bool fresh = false;
	int err = 0;

	if (i == INTERN_NONE && (!session_takes_new_stacks(s) || u->stacks.count >= s->options.max_stacks)) {
		key.id = UNKEPT_ID;
		i = intern_find(&u->stacks, &key);
	}
	if (i == INTERN_NONE) {
		err = key.id == UNKEPT_ID ? make_unkept(s, &key.stack)
					  : make_stack(s, key.proc_id, task, looking->runtime, &key.stack);
		if (err)
			return err == -ENOENT ? 0 : err;
		i = intern_add(&u->stacks, &key, &fresh);
	}
	if (i == INTERN_NONE ||
	    array_reserve(&snapshot->stacks, &snapshot->room, snapshot->count + 1, sizeof(*snapshot->stacks)))
		return -ENOMEM;
	snapshot->stacks[snapshot->count++] = i;
	return 0;
}

static void give_time(struct session_suspended *u, const struct snapshot *snapshot, uint64_t ns)
{
	for (size_t i = 0; i < snapshot->count; i++)
		((struct suspended_stack *)intern_item(&u->stacks, snapshot->stacks[i]))->ns += ns;
}

/*
 * Returns the CPU time that a snapshot may take: so that it does not keep the run from ending. It is no time of a
 * clock, as a busy machine would leave no snapshot at all.
 */
static double allowed_s(const struct session *s)
{
	const struct session_suspended *u = &s->suspended;
	double left = s->end_at - clock_s(CLOCK_MONOTONIC);

	if (u->end_ns)
		return u->last_until_s - session_used_s();
	return (left > 0 ? left : 0) + SESSION_END_SNAPSHOTS_S;
}

/* Returns whether it is known where the tasks of a Python are. */
static bool has_tasks(const struct pybpf_runtime *runtime, const struct pybpf_layout *layout)
{
	bool in_lists = cpython_facts(layout)->tasks->kind == CPYTHON_TASKS_IN_LISTS;

	return !runtime->refused &&
	       (in_lists ? runtime->asyncio.thread_tasks && layout->gen_frame : runtime->asyncio.current_tasks != 0);
}

/* Reads the tasks of all runtimes of the process. Returns 0 or negative errno. */
static int read_tasks(struct session *s, const struct processes_record *process, struct snapshot *snapshot,
		      struct task_read_counts *counts)
{
	struct looking looking = {.session = s, .snapshot = snapshot, .cpu_s = allowed_s(s)};
	struct task_read_place *place;
	struct pybpf_proc entry;
	bool found = false;
	int err = 0;

	if (kernel_get_process(s->kernel, process->pid, &entry) || entry.proc_id != process->proc_id)
		return -ESRCH;
	place = calloc(1, sizeof(*place));
	if (!place)
		return -ENOMEM;
	for (uint32_t i = 0; i < entry.nr_runtimes && i < PYBPF_MAX_RUNTIMES && !err; i++) {
		const struct pybpf_layout *layout = kernel_get_layout(s->kernel, entry.runtimes[i].layout);

		if (!has_tasks(&entry.runtimes[i], layout))
			continue;
		found = true;
		looking.runtime = i;
		*place = (struct task_read_place){
			.layout = *layout, .runtime = entry.runtimes[i], .proc_id = process->proc_id};
		err = discovery_ask_tasks(process->pid, place, PATIENCE_S, looking.cpu_s, take_task, &looking, counts);
	}
	free(place);
	return err || found ? err : -ENOENT;
}

static void count_tasks(struct session_suspended_account *account, const struct task_read_counts *counts)
{
	account->suspended += counts->suspended;
	account->running += counts->running;
	account->ended += counts->ended;
	account->moving += counts->moving;
	account->torn += counts->torn;
	account->beyond += counts->beyond != 0;
	if (counts->suspended > account->most)
		account->most = counts->suspended;
}

static void count_interval(struct session_suspended *u, uint64_t ns)
{
	u->intervals++;
	u->intervals_ns += ns;
	if (ns > u->account.longest_ns)
		u->account.longest_ns = ns;
}

/* Returns a random number from 0.5 to 1.5 (xorshift, Marsaglia 2003): snapshots keep no step with a program. */
static double vary(struct session_suspended *u)
{
	u->seed ^= u->seed << 13;
	u->seed ^= u->seed >> 7;
	u->seed ^= u->seed << 17;
	return 0.5 + (double)(u->seed >> 11) / 9007199254740992.0; /* 2^53 */
}

/* Returns when the next snapshot of a process is due of which one costs that many seconds of CPU time. */
static double next_after(struct session_suspended *u, double cost)
{
	double pause = cost * (u->processes.count ?: 1) / COST_SHARE;

	u->account.cost_ns += (uint64_t)(cost * NS);
	return clock_s(CLOCK_MONOTONIC) + (pause > INTERVAL_S ? pause : INTERVAL_S) * vary(u);
}

/* Puts a snapshot in place of the last one of its process, and gives the time between them to both. */
static int keep_snapshot(struct session_suspended *u, const struct snapshot *fresh)
{
	uint32_t i = intern_find(&u->processes, fresh);
	struct snapshot *last;
	uint64_t between;
	bool added;

	if (i == INTERN_NONE)
		return intern_add(&u->processes, fresh, &added) == INTERN_NONE ? -ENOMEM : 0;
	last = intern_item(&u->processes, i);
	between = fresh->time_ns - last->time_ns;
	count_interval(u, between);
	give_time(u, last, between / 2);
	give_time(u, fresh, between / 2);
	free(last->stacks);
	*last = *fresh;
	return 0;
}

/* Takes a snapshot of a process. One that fails leaves the last one as it is: the next one then stands for more time.
 */
static void look_at_process(struct session *s, const struct processes_record *process)
{
	struct session_suspended *u = &s->suspended;
	struct snapshot fresh = {.proc_id = process->proc_id, .time_ns = clock_ns(CLOCK_MONOTONIC)};
	struct task_read_counts counts = {0};
	double before = session_used_s();
	int err = read_tasks(s, process, &fresh, &counts);
	uint32_t last = intern_find(&u->processes, &fresh);

	fresh.time_ns += (clock_ns(CLOCK_MONOTONIC) - fresh.time_ns) / 2;
	fresh.next = next_after(u, session_used_s() - before);
	err = err ?: keep_snapshot(u, &fresh);
	if (!err) {
		count_tasks(&u->account, &counts);
		u->account.snapshots++;
		return;
	}
	u->account.failed += err != -ENOENT && err != -ESRCH;
	if (last != INTERN_NONE)
		((struct snapshot *)intern_item(&u->processes, last))->next = fresh.next;
	free(fresh.stacks);
}

static void look_at_record(struct processes_record *process, void *arg)
{
	struct session *s = arg;
	struct session_suspended *u = &s->suspended;
	const struct snapshot *last = NULL;
	double now = clock_s(CLOCK_MONOTONIC);
	uint32_t i;

	if (process->state != PROCESSES_PYTHON || process->ended)
		return;
	i = intern_find(&u->processes, &process->proc_id);
	if (i != INTERN_NONE)
		last = intern_item(&u->processes, i);
	if ((!last || now >= last->next) && now < u->until) {
		look_at_process(s, process);
		i = intern_find(&u->processes, &process->proc_id);
		last = i == INTERN_NONE ? NULL : intern_item(&u->processes, i);
	}
	if (last && last->next < u->next)
		u->next = last->next;
}

/* Takes a snapshot of each process of which one is due, for some milliseconds at most. */
static double do_periodic_work(struct session *s, double now)
{
	struct session_suspended *u = &s->suspended;

	if (!s->attach_ns || s->detach_ns)
		return SESSION_NEVER_S;
	if (now < u->next)
		return u->next;
	u->until = now + TURN_S;
	/* A process may load asyncio at any time. */
	u->next = now + INTERVAL_S;
	processes_visit_all(s->processes, look_at_record, s);
	return u->next;
}

static void look_last(struct processes_record *process, double until_s, void *arg)
{
	struct session *s = arg;

	s->suspended.last_until_s = until_s;
	if (session_used_s() < until_s)
		look_at_process(s, process);
}

/* Takes the last snapshots. */
static void end(struct session *s)
{
	s->suspended.end_ns = clock_ns(CLOCK_MONOTONIC);
	if (session_visit_by_user(s, s->ended_used_s + SESSION_END_SNAPSHOTS_S, session_runs_python, look_last, s))
		s->suspended.account.failed++;
}

/*
 * A process that ended, or that has too many tasks for a last snapshot: until the end its tasks count as they were last
 * seen, but not for much longer than until the snapshot that was due next.
 */
static void give_rest(struct session *s, const struct snapshot *snapshot)
{
	bool had_last = snapshot->time_ns >= s->suspended.end_ns;
	const struct processes_record *process = processes_find_record(s->processes, snapshot->proc_id);
	double seen = (double)snapshot->time_ns / NS, most = snapshot->next - seen + TURN_S;
	double left = 0;

	if (process && process->ended)
		left = process->ended_at - seen;
	else if (process && s->suspended.end_ns && !had_last)
		left = (double)s->suspended.end_ns / NS - seen;

	if (left > 0)
		give_time(&s->suspended, snapshot, (uint64_t)((left < most ? left : most) * NS));
}

static int settle_stack(struct session *s, const struct suspended_stack *stack)
{
	struct processes_record *process = processes_find_record(s->processes, stack->proc_id);
	const struct pybpf_thread_key of = {.proc_id = stack->proc_id};
	uint32_t owner, thread;

	if (!process || !stack->ns)
		return 0;
	if (session_find_owners(s, &of, process, &owner, &thread))
		return -ENOMEM;
	s->suspended.account.ns += stack->ns;
	if (stack->id == UNKEPT_ID)
		s->suspended.account.unkept_ns += stack->ns;
	return profile_add_time(s->profile, stack->stack, owner, thread, (stack->ns + NS_PER_US / 2) / NS_PER_US, 0);
}

/* Puts the time of the processes that are due into the profile, and forgets these. */
static int settle(struct session *s, const struct session_due *due)
{
	struct session_suspended *u = &s->suspended;
	int err = 0;

	for (uint32_t i = u->processes.count; i-- > 0;) {
		struct snapshot *snapshot = intern_item(&u->processes, i);

		if (!session_is_due(s, due, snapshot->proc_id))
			continue;
		give_rest(s, snapshot);
		free(snapshot->stacks);
		intern_remove(&u->processes, i);
	}
	/* Stacks stay in their places, to which snapshots of other processes refer: only their time is taken. */
	for (uint32_t i = 0; i < u->stacks.count && !err; i++) {
		struct suspended_stack *stack = intern_item(&u->stacks, i);

		if (!session_is_due(s, due, stack->proc_id))
			continue;
		err = settle_stack(s, stack);
		stack->ns = 0;
	}
	return err;
}

static void tell(const struct session *s, struct session_account *all)
{
	struct session_suspended_account *account = &all->suspended;
	const struct session_suspended *u = &s->suspended;

	*account = u->account;
	account->looked = true;
	account->interval_ns = u->intervals ? u->intervals_ns / u->intervals : 0;
}

static void print(const struct session_account *all, const struct profile *p, FILE *out)
{
	const struct session_suspended_account *a = &all->suspended;

	(void)p;
	if (!a->looked)
		return;
	fprintf(out,
		"pybpf: suspended tasks: %.2f task-seconds, from %" PRIu64 " snapshot%s, %.0f ms apart in the mean, "
		"with %.1f tasks each, at most %" PRIu64 "\n",
		(double)a->ns / NS, a->snapshots, a->snapshots == 1 ? "" : "s", (double)a->interval_ns / 1e6,
		a->snapshots ? (double)a->suspended / (double)a->snapshots : 0.0, a->most);
	if (a->moving || a->torn)
		fprintf(out,
			"pybpf: suspended tasks: left out of a snapshot, as they changed while they were read: %" PRIu64
			" task%s, and the ends of %" PRIu64 " list%s of tasks\n",
			a->moving, a->moving == 1 ? "" : "s", a->torn, a->torn == 1 ? "" : "s");
	if (a->beyond || a->failed)
		fprintf(out,
			"pybpf: suspended tasks: %" PRIu64 " snapshot%s had more tasks than are read, and %" PRIu64
			" failed\n",
			a->beyond, a->beyond == 1 ? "" : "s", a->failed);
	if (a->unkept_ns)
		fprintf(out,
			"pybpf: suspended tasks: %.2f task-seconds are in stacks that found no room (see "
			"--max-stacks)\n",
			(double)a->unkept_ns / NS);
}

static const struct session_entry entries[] = {
	{"suspended_tasks", "time_s", SESSION_SECONDS(suspended.ns)},
	{"suspended_tasks", "snapshots", SESSION_COUNT(suspended.snapshots), "suspended tasks", "snapshots of them"},
	{"suspended_tasks", "failed", SESSION_COUNT(suspended.failed)},
	{"suspended_tasks", "interval_s", SESSION_SECONDS(suspended.interval_ns)},
	{"suspended_tasks", "longest_interval_s", SESSION_SECONDS(suspended.longest_ns)},
	{"suspended_tasks", "cost_s", SESSION_SECONDS(suspended.cost_ns)},
	{"suspended_tasks", "suspended", SESSION_COUNT(suspended.suspended)},
	{"suspended_tasks", "running", SESSION_COUNT(suspended.running)},
	{"suspended_tasks", "ended", SESSION_COUNT(suspended.ended)},
	{"suspended_tasks", "moving", SESSION_COUNT(suspended.moving), "suspended tasks",
	 "tasks left out of one, as they changed while they were read"},
	{"suspended_tasks", "torn_lists", SESSION_COUNT(suspended.torn), "suspended tasks",
	 "lists of tasks that were not read to their ends, as they changed meanwhile"},
	{"suspended_tasks", "beyond", SESSION_COUNT(suspended.beyond), "suspended tasks",
	 "snapshots with more tasks than are read"},
	{"suspended_tasks", "most", SESSION_COUNT(suspended.most)},
	{"suspended_tasks", "unkept_s", SESSION_SECONDS(suspended.unkept_ns)},
	{0},
};

static bool is_wanted(const struct session_options *options)
{
	return options->suspended;
}

const struct session_measure session_suspended_measure = {
	.name = "time of suspended tasks",
	.is_wanted = is_wanted,
	.init = init,
	.free = release,
	.end = end,
	.do_periodic_work = do_periodic_work,
	.settle = settle,
	.tell = tell,
	.print = print,
	.entries = entries,
};

// SPDX-License-Identifier: Apache-2.0
/*
 * Decides whose sleeping threads' stacks are read next. There may be many thousands: each turn of the run's loop reads
 * some, and users take turns, so that a user with many threads delays nobody else's.
 */
#include "session/waits/initial_stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "kernel/waits.h"
#include "session/account/account_entry.h"
#include "session/account/account_text.h"
#include "session/internal.h"
#include "session/measure.h"
#include "session/native/native.h"
#include "session/waits/initial_stacks_read.h"

/* Longest time of a turn. As long as it took, the loop then does nothing of this. */
#define TURN_S 0.01
/* Time in which the record of a process comes that started as the run began: its event waits in a buffer. */
#define RECORD_S 0.5
/* Time in which tables for native frames are made before stacks are read without them, and for these if the run ends
 * first. */
#define TABLES_S 1.0
#define END_S    0.1
/* Interval between looks at processes of which it is not known yet what they run. */
#define LOOKING_S 0.05
/*
 * Time for all threads of a user, and what is added with each second of the run: some 10,000 threads take a second, but
 * a process can make each walk of its threads a thousand times longer.
 */
#define USER_S     2.0
#define USER_SHARE 0.1
/*
 * A user's turn lasts until that has taken so much more time than the other's, and a process's turn among its user's
 * lasts so long: a helper keeps the lists of some processes only, and takes up to a tenth of a second to read a long
 * one.
 */
#define QUANTUM_S 0.2
#define NONE      UINT32_MAX

struct user {
	uid_t uid;
	uint32_t first, last; /* processes; NONE: no process is left */
	uint32_t pad;
	double used_s;
};

void session_initial_stacks_init(struct session_initial_stacks *l)
{
	memset(l, 0, sizeof(*l));
	intern_init(&l->stacks, sizeof(struct session_initial_stack), offsetof(struct session_initial_stack, gil));
	intern_init(&l->known, sizeof(struct session_known_stack), offsetof(struct session_known_stack, stack_id));
	intern_init(&l->users, sizeof(struct user), sizeof(uid_t));
}

static void free_queues(struct session_initial_stacks *l)
{
	intern_free(&l->users);
	free(l->found);
	free(l->processes);
	l->found = NULL;
	l->processes = NULL;
	l->nr_found = l->found_room = 0;
	l->nr_processes = l->placed = 0;
}

void session_initial_stacks_free(struct session_initial_stacks *l)
{
	intern_free(&l->stacks);
	intern_free(&l->known);
	free_queues(l);
	session_initial_stacks_init(l);
}

static void note_found(const struct pybpf_thread_found *found, void *arg)
{
	struct session *s = arg;
	struct session_initial_stacks *l = &s->waits.initial_stacks;

	if (array_reserve(&l->found, &l->found_room, l->nr_found + 1, sizeof(*l->found))) {
		l->late++;
		return;
	}
	l->found[l->nr_found++] = *found;
}

static int compare_found(const void *a, const void *b)
{
	const struct pybpf_thread_found *one = a, *other = b;

	if (one->proc_id != other->proc_id)
		return one->proc_id < other->proc_id ? -1 : 1;
	return one->pid < other->pid ? -1 : one->pid > other->pid;
}

/* The threads of those that find no memory are not read. */
static void list_processes(struct session_initial_stacks *l)
{
	size_t room = 0;

	if (l->nr_found)
		qsort(l->found, l->nr_found, sizeof(*l->found), compare_found);
	for (size_t i = 0; i < l->nr_found; i++) {
		struct session_initial_process *last = l->nr_processes ? &l->processes[l->nr_processes - 1] : NULL;

		if (last && last->proc_id == l->found[i].proc_id) {
			last->end = i + 1;
			continue;
		}
		if (array_reserve(&l->processes, &room, l->nr_processes + 1u, sizeof(*l->processes))) {
			l->late++;
			continue;
		}
		l->processes[l->nr_processes++] =
			(struct session_initial_process){.proc_id = l->found[i].proc_id, .next = i, .end = i + 1};
	}
}

int session_initial_stacks_find(struct session *s)
{
	struct session_initial_stacks *l = &s->waits.initial_stacks;
	int err = kernel_find_threads(s->kernel, note_found, s);
	size_t asleep = 0;

	for (size_t i = 0; i < l->nr_found; i++) {
		if (session_initial_still_sleeps(s, &l->found[i]))
			l->found[asleep++] = l->found[i];
	}
	l->nr_found = asleep;
	l->begin = clock_s(CLOCK_MONOTONIC);
	l->tables_until = l->begin + TABLES_S;
	list_processes(l);
	return err;
}

static void push_process(struct session_initial_stacks *l, struct user *user, uint32_t process)
{
	l->processes[process].after = NONE;
	if (user->first == NONE)
		user->first = process;
	else
		l->processes[user->last].after = process;
	user->last = process;
}

static void push_first(struct session_initial_stacks *l, struct user *user, uint32_t process)
{
	l->processes[process].after = user->first;
	if (user->first == NONE)
		user->last = process;
	user->first = process;
}

static uint32_t pop_process(const struct session_initial_stacks *l, struct user *user)
{
	uint32_t process = user->first;

	user->first = l->processes[process].after;
	return process;
}

/* Puts the process into the queue of its user. Returns 0 or -ENOMEM. */
static int place_process(struct session_initial_stacks *l, uint32_t at, struct processes_record *record)
{
	const struct user fresh = {.uid = processes_get_user(record), .first = NONE, .last = NONE};
	bool is_fresh;
	uint32_t i = intern_add(&l->users, &fresh, &is_fresh);

	if (i == INTERN_NONE)
		return -ENOMEM;
	push_process(l, intern_item(&l->users, i), at);
	return 0;
}

/* Gives up a process whose record has not come, as its event was lost, or whose queue is full. */
static void give_up(struct session *s, struct session_initial_process *process)
{
	for (; process->next < process->end; process->next++)
		s->waits.initial_stacks.late +=
			session_initial_still_sleeps(s, &s->waits.initial_stacks.found[process->next]);
}

/* Puts the processes into the queues of their users; those whose records have not come stay behind. */
static void place_processes(struct session *s, double until)
{
	struct session_initial_stacks *l = &s->waits.initial_stacks;
	double now = clock_s(CLOCK_MONOTONIC);

	for (uint32_t i = l->placed; i < l->nr_processes && now < until; i++) {
		struct session_initial_process process = l->processes[i];
		struct processes_record *record = processes_find_record(s->processes, process.proc_id);

		if (!record && now < l->begin + RECORD_S)
			continue;
		l->processes[i] = l->processes[l->placed];
		l->processes[l->placed] = process;
		if (!record || place_process(l, l->placed, record))
			give_up(s, &l->processes[l->placed]);
		l->placed++;
		now = clock_s(CLOCK_MONOTONIC);
	}
}

/* Returns the user with a process to be looked at in this turn whose turn it is, or NULL. */
static struct user *choose_user(struct session_initial_stacks *l, double now)
{
	double allowed_s = USER_S + USER_SHARE * (now - l->begin);
	struct user *least = NULL, *last = NULL;

	for (uint32_t i = 0; i < l->users.count; i++) {
		struct user *user = intern_item(&l->users, i);

		/* Processes of which it is not known yet what they run go to the end when they have been looked at. */
		if (user->first == NONE || l->processes[user->first].turn == l->turn || user->used_s > allowed_s)
			continue;
		if (!least || user->used_s < least->used_s)
			least = user;
		if (user->uid == l->last_uid)
			last = user;
	}
	if (last && last->used_s < least->used_s + QUANTUM_S)
		return last;
	if (least)
		l->last_uid = least->uid;
	return least;
}

/* Puts the process back into its user's queue, after a look that began at that time. */
static void put_back(struct session_initial_stacks *l, struct user *user, uint32_t at, double before)
{
	struct session_initial_process *process = &l->processes[at];

	process->front_s += clock_s(CLOCK_MONOTONIC) - before;
	if (process->front_s < QUANTUM_S) {
		push_first(l, user, at);
	} else {
		process->front_s = 0;
		push_process(l, user, at);
	}
}

/* Returns whether it is too early to read the process's stacks. */
static bool must_wait(const struct session *s, const struct processes_record *record, double now)
{
	return record->state == PROCESSES_LOOKING ||
	       (record->state == PROCESSES_PYTHON && now < s->waits.initial_stacks.tables_until &&
		session_native_is_pending(s, record->proc_id));
}

/* Looks at the first process of the user. now: CLOCK_MONOTONIC seconds. */
static void look_at_process(struct session *s, struct user *user, double now)
{
	struct session_initial_stacks *l = &s->waits.initial_stacks;
	uint32_t at = pop_process(l, user);
	struct session_initial_process *process = &l->processes[at];
	const struct processes_record *record = processes_find_record(s->processes, process->proc_id);
	int err = -ESRCH;

	if (record && !record->ended && must_wait(s, record, now)) {
		process->turn = l->turn;
		push_process(l, user, at);
		return;
	}
	if (record && !record->ended && record->state == PROCESSES_PYTHON)
		err = session_initial_stacks_read(s, process, record);
	if (!err && process->next < process->end) {
		put_back(l, user, at, now);
		return;
	}
	/* Also for lack of memory: it costs these threads' stacks, and no one else's. */
	if (record && record->state == PROCESSES_PYTHON)
		l->late += process->end - process->next;
	process->next = process->end;
}

static bool is_done(const struct session_initial_stacks *l)
{
	if (l->placed < l->nr_processes)
		return false;
	for (uint32_t i = 0; i < l->users.count; i++) {
		if (((const struct user *)intern_item(&l->users, i))->first != NONE)
			return false;
	}
	return true;
}

double session_initial_stacks_look(struct session *s, double now)
{
	struct session_initial_stacks *l = &s->waits.initial_stacks;
	double before = now, until = now + TURN_S;
	struct user *user = NULL;

	if (!l->nr_processes || !session_takes_new_stacks(s))
		return SESSION_NEVER_S;
	if (now < l->next)
		return l->next;
	l->turn++;
	place_processes(s, until);
	while (before < until && (user = choose_user(l, before))) {
		look_at_process(s, user, before);
		now = clock_s(CLOCK_MONOTONIC);
		user->used_s += now - before;
		before = now;
	}
	if (is_done(l)) {
		kernel_see_polled(s->kernel);
		free_queues(l);
	}
	l->next = now + (user ? before - (until - TURN_S) : LOOKING_S);
	return l->next;
}

const struct session_initial_stack *session_initial_stacks_get(const struct session_initial_stacks *l,
							       const struct pybpf_wait_key *key)
{
	const struct session_initial_stack wanted = {.proc_id = key->thread.proc_id, .tid = key->thread.tid};
	uint32_t i = key->stack_id == PYBPF_STACK_ID_EARLIER ? intern_find(&l->stacks, &wanted) : INTERN_NONE;

	return i == INTERN_NONE ? NULL : intern_item(&l->stacks, i);
}

void session_initial_stacks_note(struct session_initial_stacks *l, const struct pybpf_wait_key *key, uint64_t ns)
{
	if (key->stack_id == PYBPF_STACK_ID_EARLIER && !session_initial_stacks_get(l, key))
		l->unread_ns += ns;
}

size_t session_count_unread_threads(const struct session *s)
{
	const struct session_initial_stacks *l = &s->waits.initial_stacks;
	size_t count = 0;

	for (uint32_t i = 0; i < l->nr_processes; i++) {
		const struct processes_record *record = processes_find_record(s->processes, l->processes[i].proc_id);

		if (record && record->state == PROCESSES_PYTHON)
			count += l->processes[i].end - l->processes[i].next;
	}
	return count;
}

void session_initial_stacks_tell(const struct session *s, struct session_account *account)
{
	const struct session_initial_stacks *l = &s->waits.initial_stacks;

	account->late_initial_stacks = l->late;
	account->unread_initial_ns = l->unread_ns;
	account->unread_initial_stacks = session_count_unread_threads(s);
}

/* Reads the stacks that have waited for tables: their Python functions are those of a run without native frames. */
static void read_waiting(struct session *s)
{
	struct session_initial_stacks *l = &s->waits.initial_stacks;
	double now = clock_s(CLOCK_MONOTONIC), until = now + END_S;

	if (now >= l->tables_until || !session_native_frames(s))
		return;
	l->tables_until = now;
	for (l->next = now; now < until && l->nr_processes; now = clock_s(CLOCK_MONOTONIC)) {
		session_initial_stacks_look(s, now);
		l->next = now;
	}
}

static void end(struct session *s)
{
	read_waiting(s);
	kernel_see_polled(s->kernel);
}

/* The part of all time from which on threads that woke before their stacks were read are reported. */
#define LATE_SHARE 0.01

static void print(const struct session_account *a, const struct profile *p, FILE *out)
{
	uint64_t threads = a->unread_initial_stacks + a->late_initial_stacks, total_ns = 0;

	(void)p;
	for (int i = 0; i < PYBPF_NR_STATES; i++)
		total_ns += a->state_ns[i];
	if (!threads || (!a->unread_initial_stacks && (double)a->unread_initial_ns < LATE_SHARE * (double)total_ns))
		return;
	fputs(threads == 1 ? "pybpf: the stack of " : "pybpf: the stacks of ", out);
	session_print_grouped(threads, out);
	fprintf(out,
		" thread%s that did not run when pybpf began %s not read before %s ran or pybpf ended: %.2f "
		"thread-seconds are in [asleep since before the run]\n",
		threads == 1 ? "" : "s", threads == 1 ? "was" : "were", threads == 1 ? "it" : "they",
		(double)a->unread_initial_ns / 1e9);
}

static const struct session_entry entries[] = {
	{"threads", "unread", SESSION_COUNT(unread_initial_stacks)},
	{"threads", "woke_unread", SESSION_EPOCH_COUNT(late_initial_stacks)},
	{"threads", "unread_s", SESSION_EPOCH_SECONDS(unread_initial_ns)},
	{0},
};

static bool is_wanted(const struct session_options *options)
{
	return options->mode != SESSION_CPU;
}

const struct session_measure session_initial_stacks_measure = {
	.name = "threads that sleep when the run begins",
	.is_wanted = is_wanted,
	.begin = session_initial_stacks_find,
	.end = end,
	.do_periodic_work = session_initial_stacks_look,
	.tell = session_initial_stacks_tell,
	.print = print,
	.entries = entries,
};

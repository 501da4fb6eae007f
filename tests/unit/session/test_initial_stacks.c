// SPDX-License-Identifier: Apache-2.0
/*
 * Whose sleeping threads are read when, and what of them is counted. The kernel, the helper, the processes and the
 * clock are played: a question takes its time on that clock.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/clock.h"
#include "discovery/ask_threads.h"
#include "kernel/procs.h"
#include "kernel/waits.h"
#include "session/internal.h"
#include "session/native/native.h"
#include "session/sources/source_file.h"
#include "session/waits/comm.h"
#include "session/waits/initial_stacks.h"
#include "symbols/pysym.h"

#define BEGIN_S 1000.0
/* Most threads of a process. */
#define ROOM 10000
#define MANY ROOM
#define FEW  10

struct process {
	struct processes_record record;
	uint32_t threads;
	double known_at;              /* when its record is there, in s since the start */
	double tables_at;             /* when the tables for its native frames are */
	double question_s;            /* how long one takes */
	uint32_t per_answer;          /* threads */
	unsigned codes;               /* of an answer, before its stacks */
	double code_s;                /* how long one takes to be taken */
	int err;                      /* the answer; 0: stacks */
	double first_read, last_read; /* 0: not yet */
	uint32_t read;
	bool cut;   /* not all were taken */
	bool awake; /* its threads have run */
};

static struct {
	double now;
	struct process processes[4];
	uint32_t count;
	struct process *asked;
	unsigned allocations, first_refused, refused; /* of arrays: so many, from the first one on, find no memory */
} played;

double clock_s(clockid_t clock)
{
	(void)clock;
	return played.now;
}

uint64_t clock_ns(clockid_t clock)
{
	return (uint64_t)(clock_s(clock) * 1e9);
}

/* Numbers of processes begin with 1. */
static struct process *find(uint64_t proc_id)
{
	assert_in_range(proc_id, 1, played.count);
	return &played.processes[proc_id - 1];
}

int kernel_find_threads(struct kernel *k, void (*visit)(const struct pybpf_thread_found *found, void *arg), void *arg)
{
	(void)k;
	for (uint32_t i = 0; i < played.count; i++) {
		for (uint32_t thread = 0; thread < played.processes[i].threads; thread++) {
			const uint32_t pid = (i + 1) * ROOM + thread;

			visit(&(struct pybpf_thread_found){.proc_id = i + 1, .pid = pid, .tid = pid}, arg);
		}
	}
	return 0;
}

int kernel_get_thread(const struct kernel *k, uint32_t pid, struct pybpf_thread *thread)
{
	(void)k;
	*thread = (struct pybpf_thread){.id.proc_id = pid / ROOM, .id.tid = pid, .state = PYBPF_STATE_OTHER};
	thread->woken_ns = find(pid / ROOM)->awake;
	return 0;
}

int kernel_get_process(const struct kernel *k, pid_t pid, struct pybpf_proc *entry)
{
	(void)k;
	*entry = (struct pybpf_proc){.proc_id = (uint64_t)pid, .nr_runtimes = 1};
	return 0;
}

int kernel_note_polled(struct kernel *k, uint32_t pid, uint32_t fd)
{
	(void)k;
	(void)pid;
	(void)fd;
	return 0;
}

void session_thread_names_note(struct session *s, const struct pybpf_thread_key *thread, uint64_t thread_id)
{
	(void)s;
	(void)thread;
	(void)thread_id;
}

/* As base/array.c has it, with room for what is asked for alone. */
int array_reserve(void *array, size_t *room, size_t count, size_t item_size)
{
	void **items = array, *moved;

	if (count <= *room)
		return 0;
	if (played.allocations++ >= played.first_refused && played.refused) {
		played.refused--;
		return -ENOMEM;
	}
	moved = reallocarray(*items, count, item_size);
	assert_non_null(moved);
	*items = moved;
	*room = count;
	return 0;
}

void kernel_see_polled(struct kernel *k)
{
	(void)k;
}

const struct pybpf_layout *kernel_get_layout(const struct kernel *k, uint32_t index)
{
	static const struct pybpf_layout layout;

	(void)k;
	(void)index;
	return &layout;
}

struct processes_record *processes_find_record(const struct processes *p, uint64_t proc_id)
{
	struct process *process = find(proc_id);

	(void)p;
	return played.now >= BEGIN_S + process->known_at ? &process->record : NULL;
}

uid_t processes_get_user(struct processes_record *process)
{
	return process->user;
}

int discovery_ask_threads(const struct ask_threads *asked, double slice_s, const struct ask_threads_taker *taker,
			  uint32_t *done)
{
	static const struct pybpf_code_event code;
	static const struct pybpf_frame frame = {.kind = PYBPF_FRAME_PYTHON};
	const struct ask_threads_stack stack = {.depth = 1, .kept = 1, .frames = &frame};
	struct process *process = played.asked = find(asked->life);
	int err = process->err;

	(void)slice_s;
	*done = 0;
	played.now += process->question_s;
	assert_int_equal(asked->tell_again, process->cut);
	while (process->codes && !err)
		err = taker->code(&code, sizeof(code), taker->arg);
	process->cut = process->codes;
	while (!err && *done < process->per_answer && *done < asked->count) {
		err = taker->stack(*done, &stack, taker->arg);
		++*done;
	}
	process->read += *done;
	process->last_read = *done ? played.now : process->last_read;
	process->first_read = process->first_read ?: process->last_read;
	return err;
}

int pysym_add_read_code(struct pysym *s, const struct pybpf_code_event *event, size_t size)
{
	(void)s;
	(void)event;
	(void)size;
	played.now += played.asked->code_s;
	played.asked->codes--;
	return 0;
}

int stacks_add(struct stacks *t, const struct pybpf_stack_event *event, size_t size)
{
	(void)t;
	assert_int_equal(event->event.size, size);
	assert_int_equal(size, sizeof(*event) + sizeof(struct pybpf_frame) + sizeof(uint64_t));
	assert_int_equal(event->nr_native, 1);
	assert_int_equal(event->native_end, PYBPF_NATIVE_END_WHOLE);
	return 0;
}

bool session_takes_new_stacks(const struct session *s)
{
	return !s->stacks_refused;
}

bool session_native_is_pending(const struct session *s, uint64_t proc_id)
{
	(void)s;
	return played.now < BEGIN_S + find(proc_id)->tables_at;
}

void session_native_follow(struct session *s, const struct pybpf_thread_found *found, struct native_walked *out)
{
	static const uint64_t frame;

	(void)s;
	(void)found;
	*out = (struct native_walked){.frames = &frame, .count = 1, .end = PYBPF_NATIVE_END_WHOLE};
}

struct native_frames *session_native_frames(const struct session *s)
{
	static int frames;

	(void)s;
	return (struct native_frames *)(void *)&frames;
}

void session_note_comm(struct session *s, const struct pybpf_thread *thread)
{
	(void)s;
	(void)thread;
}

bool source_read_rights(pid_t task, struct pybpf_rights *rights)
{
	(void)task;
	(void)rights;
	return false;
}

/* Adds a process that runs Python. */
static struct process *add(uid_t user, uint32_t threads)
{
	struct process *process = &played.processes[played.count++];

	assert_in_range(played.count, 1, sizeof(played.processes) / sizeof(*played.processes));
	*process = (struct process){.threads = threads, .question_s = 0.005, .per_answer = 1};
	process->record = (struct processes_record){
		.proc_id = played.count, .pid = (pid_t)played.count, .user = user, .state = PROCESSES_PYTHON};
	return process;
}

static int setup(void **state)
{
	memset(&played, 0, sizeof(played));
	played.now = BEGIN_S;
	*state = calloc(1, sizeof(struct session));
	session_initial_stacks_init(&((struct session *)*state)->waits.initial_stacks);
	return 0;
}

static int teardown(void **state)
{
	session_initial_stacks_free(&((struct session *)*state)->waits.initial_stacks);
	free(*state);
	return 0;
}

/* Runs for so many seconds, or until there is nothing to read any more. Returns the longest turn in seconds. */
static double run(struct session *s, double seconds)
{
	const double until = played.now + seconds;
	double longest = 0;

	while (played.now < until) {
		double before = played.now, next = session_initial_stacks_look(s, before);

		assert_int_equal(s->error, 0);
		longest = played.now - before > longest ? played.now - before : longest;
		if (next > until)
			break;
		played.now = next > played.now ? next : played.now;
	}
	return longest;
}

static struct session_account account_of(const struct session *s)
{
	struct session_account account;

	memset(&account, 0, sizeof(account));
	session_initial_stacks_tell(s, &account);
	return account;
}

static void test_all_are_read(void **state)
{
	struct session *s = *state;
	const struct process *one = add(1, FEW), *other = add(2, FEW);

	assert_int_equal(session_initial_stacks_find(s), 0);
	run(s, 10);
	assert_int_equal(one->read, FEW);
	assert_int_equal(other->read, FEW);
	assert_int_equal(account_of(s).unread_initial_stacks + account_of(s).late_initial_stacks, 0);
}

/* Tables for native frames are waited for, but not for long, and no other process waits for them. */
static void test_tables_are_waited_for(void **state)
{
	struct session *s = *state;
	struct process *soon = add(1, FEW), *never = add(1, FEW);
	const struct process *other = add(1, FEW);

	soon->tables_at = 0.4;
	never->tables_at = 1000;
	assert_int_equal(session_initial_stacks_find(s), 0);
	run(s, 10);
	assert_true(soon->first_read >= BEGIN_S + 0.4 && soon->last_read < BEGIN_S + 0.6);
	assert_true(never->first_read >= BEGIN_S + 1 && never->last_read < BEGIN_S + 1.2);
	assert_true(other->last_read < BEGIN_S + 0.2);
	assert_int_equal(soon->read + never->read + other->read, 3 * FEW);
}

/* Python's functions are those of a run without native frames. */
static void test_the_end_waits_for_no_table(void **state)
{
	struct session *s = *state;
	struct process *never = add(1, FEW);

	never->tables_at = 1000;
	never->per_answer = FEW;
	assert_int_equal(session_initial_stacks_find(s), 0);
	run(s, 0.2);
	assert_int_equal(never->read, 0);
	session_initial_stacks_measure.end(s);
	assert_int_equal(never->read, FEW);
	assert_true(played.now < BEGIN_S + 0.4);
}

/* Rights are given up when the threads are found: before, no other process's memory is read for them. */
static void test_nothing_is_read_before_the_run(void **state)
{
	struct session *s = *state;

	add(1, FEW);
	assert_int_equal(session_initial_stacks_find(s), 0);
	assert_null(played.asked);
	run(s, 10);
	assert_non_null(played.asked);
}

/* A user's process with many threads leaves time for the others. */
static void test_processes_of_a_user_take_turns(void **state)
{
	struct session *s = *state;
	const struct process *many = add(1, MANY), *few = add(1, FEW);

	assert_int_equal(session_initial_stacks_find(s), 0);
	run(s, 60);
	assert_int_equal(few->read, FEW);
	assert_in_range(many->read, 1, MANY - 1);
	assert_true(few->last_read < many->last_read);
	assert_int_equal(account_of(s).unread_initial_stacks, MANY - many->read);
}

/* A helper that serves others meanwhile would read the list anew each time. */
static void test_a_turn_is_long(void **state)
{
	struct session *s = *state;
	const struct process *one = add(1, MANY), *other = add(2, MANY);
	uint32_t changes = 0;
	double asked_s = 0;

	assert_int_equal(session_initial_stacks_find(s), 0);
	for (const struct process *last = NULL; played.now < BEGIN_S + 5; last = played.asked) {
		double before = played.now;

		played.now = session_initial_stacks_look(s, before);
		changes += last && last != played.asked;
		asked_s += 0.01;
	}
	assert_true(one->read > 100 && other->read > 100);
	assert_in_range(changes, 2, (uint32_t)(asked_s / 0.05));
}

static void test_users_take_turns(void **state)
{
	struct session *s = *state;
	const struct process *many = add(1, MANY), *few = add(2, FEW);

	assert_int_equal(session_initial_stacks_find(s), 0);
	run(s, 2);
	assert_int_equal(few->read, FEW);
	assert_in_range(many->read, 1, MANY - 1);
}

/* Nobody's threads take all the time: neither of a turn, nor of the run. */
static void test_time_is_bounded(void **state)
{
	struct session *s = *state;
	struct process *slow = add(1, MANY);

	slow->question_s = 0.05;
	assert_int_equal(session_initial_stacks_find(s), 0);
	assert_true(run(s, 30) < 0.1);
	/* As session/waits/initial_stacks.c says: 2 s, and 0.1 s for each second. */
	assert_in_range(slow->read, 1, (uint32_t)((2 + 0.1 * 30) / slow->question_s) + 1);
	assert_int_equal(account_of(s).unread_initial_stacks, MANY - slow->read);
}

/* Each code object's path is looked at on a file system that takes its time. */
static void test_slow_paths_do_not_hold_a_turn(void **state)
{
	struct session *s = *state;
	struct process *slow = add(1, FEW);

	slow->codes = 50;
	slow->code_s = 0.02;
	assert_int_equal(session_initial_stacks_find(s), 0);
	assert_true(run(s, 10) < 0.2);
	assert_int_equal(slow->read, FEW);
	assert_int_equal(account_of(s).unread_initial_stacks + account_of(s).late_initial_stacks, 0);
}

static void test_those_that_woke_are_counted(void **state)
{
	struct session *s = *state;
	struct process *awake = add(1, FEW);
	const struct process *asleep = add(1, FEW);

	assert_int_equal(session_initial_stacks_find(s), 0);
	awake->awake = true;
	run(s, 10);
	assert_int_equal(awake->read, 0);
	assert_int_equal(asleep->read, FEW);
	assert_int_equal(account_of(s).late_initial_stacks, FEW);
	assert_int_equal(account_of(s).unread_initial_stacks, 0);
}

/* Without memory for a thread, or for a process, only these are not read. */
static void test_without_memory(void **state)
{
	struct session *s = *state;
	const struct process *one = add(1, FEW), *other = add(2, FEW);

	played.first_refused = 3;
	played.refused = 1;
	assert_int_equal(session_initial_stacks_find(s), 0);
	run(s, 10);
	assert_int_equal(one->read, FEW - 1);
	assert_int_equal(other->read, FEW);
	assert_int_equal(account_of(s).late_initial_stacks, 1);
	assert_int_equal(account_of(s).unread_initial_stacks, 0);
}

static void test_without_memory_for_a_process(void **state)
{
	struct session *s = *state;
	const struct process *one = add(1, FEW), *other = add(2, FEW);

	/* All threads are listed before the first process is, which is tried with each of its own. */
	played.first_refused = 2 * FEW;
	played.refused = FEW;
	assert_int_equal(session_initial_stacks_find(s), 0);
	run(s, 10);
	assert_int_equal(one->read, 0);
	assert_int_equal(other->read, FEW);
	assert_int_equal(account_of(s).late_initial_stacks, FEW);
	assert_int_equal(account_of(s).unread_initial_stacks, 0);
}

/* The kernel's event of a process that has just started may come later than its threads. */
static void test_a_record_may_come_later(void **state)
{
	struct session *s = *state;
	struct process *late = add(1, FEW);
	const struct process *other = add(2, FEW);

	late->known_at = 0.2;
	assert_int_equal(session_initial_stacks_find(s), 0);
	run(s, 10);
	assert_int_equal(late->read, FEW);
	assert_int_equal(other->read, FEW);
	assert_true(other->last_read < BEGIN_S + late->known_at);
	assert_int_equal(account_of(s).unread_initial_stacks + account_of(s).late_initial_stacks, 0);
}

/* Or never: the event is lost. Where the process has ended meanwhile, nothing is. */
static void test_a_record_may_never_come(void **state)
{
	struct session *s = *state;
	struct process *lost = add(1, FEW), *ended = add(1, FEW);
	const struct process *other = add(1, FEW);

	lost->known_at = ended->known_at = 1e9;
	ended->awake = true;
	assert_int_equal(session_initial_stacks_find(s), 0);
	run(s, 10);
	assert_int_equal(other->read, FEW);
	assert_int_equal(lost->read + ended->read, 0);
	assert_int_equal(account_of(s).unread_initial_stacks + account_of(s).late_initial_stacks, FEW);
}

static void test_those_of_a_process_without_an_answer_are_counted(void **state)
{
	struct session *s = *state;
	struct process *mute = add(1, FEW);
	const struct process *other = add(1, FEW);

	mute->err = -ETIMEDOUT;
	assert_int_equal(session_initial_stacks_find(s), 0);
	run(s, 10);
	assert_int_equal(other->read, FEW);
	assert_int_equal(account_of(s).late_initial_stacks + account_of(s).unread_initial_stacks, FEW);
}

/* What one process costs ends no run. */
static void test_those_without_memory_are_counted(void **state)
{
	struct session *s = *state;
	struct process *refused = add(1, FEW);
	const struct process *other = add(1, FEW);

	refused->err = -ENOMEM;
	assert_int_equal(session_initial_stacks_find(s), 0);
	run(s, 10);
	assert_int_equal(other->read, FEW);
	assert_int_equal(account_of(s).late_initial_stacks, FEW);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_all_are_read, setup, teardown),
		cmocka_unit_test_setup_teardown(test_tables_are_waited_for, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_end_waits_for_no_table, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing_is_read_before_the_run, setup, teardown),
		cmocka_unit_test_setup_teardown(test_processes_of_a_user_take_turns, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_turn_is_long, setup, teardown),
		cmocka_unit_test_setup_teardown(test_users_take_turns, setup, teardown),
		cmocka_unit_test_setup_teardown(test_time_is_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slow_paths_do_not_hold_a_turn, setup, teardown),
		cmocka_unit_test_setup_teardown(test_those_that_woke_are_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(test_without_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_without_memory_for_a_process, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_record_may_come_later, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_record_may_never_come, setup, teardown),
		cmocka_unit_test_setup_teardown(test_those_of_a_process_without_an_answer_are_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(test_those_without_memory_are_counted, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

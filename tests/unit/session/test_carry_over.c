// SPDX-License-Identifier: Apache-2.0
/*
 * Waits are split at the end of each epoch. The kernel side is played: threads run, sleep and wake up at random, and it
 * adds up their time as bpf/wait_time.bpf.h does. The truth is what it has added up in the whole run.
 */
#include "session/waits/carry_over.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define THREADS 24
#define STACKS  3
#define HOUR_NS 3600000000000u
#define MS      1000000u
/* Longest time between two events of a thread, and for which the threads are read at the end of an epoch. */
#define EVENT_NS (4 * MS)
#define READ_NS  (2 * MS)

/* Time of one thread by stack and state. */
struct sums {
	uint64_t ns[PYBPF_STACK_ID_STACKS + STACKS][PYBPF_NR_STATES], count;
};

struct played_thread {
	struct pybpf_thread entry, read;
	uint64_t next_ns; /* of its events */
	bool lives, was_read, sleeps_on;
	struct session_parts map; /* the kernel's of this epoch */
	struct sums truth, told;
	uint64_t told_ns; /* of the epoch */
};

static struct {
	struct played_thread threads[THREADS];
	struct session_ahead ahead;
	uint64_t seed, end_ns, before_ns;
	uint64_t unread_ns; /* sum of the times between the reading of threads and the ends of epochs */
} played;

static uint64_t draw(uint64_t below)
{
	played.seed = played.seed * 6364136223846793005u + 1442695040888963407u;
	return (played.seed >> 33) % below;
}

static void note(struct sums *sums, const struct pybpf_wait_key *key, const struct pybpf_wait_time *time)
{
	sums->ns[key->stack_id][PYBPF_WAIT_STATE_OF(key->wait_id)] += time->ns;
	sums->count += time->count;
}

/* As add_time(). */
static void add_time(struct played_thread *t, const struct pybpf_wait_key *key, uint64_t ns, uint64_t earlier_ns)
{
	const struct pybpf_wait_time time = {.count = !earlier_ns, .ns = ns};

	note(&t->truth, key, &time);
	for (size_t i = 0; i < t->map.count; i++) {
		if (memcmp(&t->map.items[i].key, key, sizeof(*key)))
			continue;
		t->map.items[i].time.ns += ns;
		t->map.items[i].time.count += time.count;
		return;
	}
	assert_int_equal(session_parts_add(&t->map, key, &time), 0);
}

static struct pybpf_wait_key key_of(const struct pybpf_thread *e, uint64_t stack_id, uint64_t wait_id)
{
	return (struct pybpf_wait_key){.stack_id = stack_id, .thread = e->id, .wait_id = wait_id};
}

static void add_gil_sleeps(struct played_thread *t)
{
	struct pybpf_thread *e = &t->entry;

	if (e->gil_ns)
		add_time(t, &e->gil_key, e->gil_ns, e->gil_waited_ns - e->gil_ns);
	e->gil_ns = 0;
}

static void sleep_for(struct played_thread *t, enum pybpf_state state, uint64_t now)
{
	struct pybpf_thread *e = &t->entry;
	bool goes_on = state == PYBPF_STATE_GIL && e->gil_waited_ns && draw(2);

	e->running_ns += now - e->since_ns;
	if (!goes_on) {
		add_gil_sleeps(t);
		e->gil_waited_ns = 0;
		e->stack_id = PYBPF_STACK_ID_STACKS + draw(STACKS);
	}
	e->wait_id = PYBPF_WAIT_ID(state) | draw(3) << 20;
	e->state = state;
	e->since_ns = now;
	e->woken_ns = 0;
	e->ready_id = PYBPF_WAIT_ID(PYBPF_STATE_QUEUED);
}

static void run(struct played_thread *t, uint64_t now)
{
	struct pybpf_thread *e = &t->entry;
	struct pybpf_wait_key key = key_of(e, e->stack_id, e->wait_id);

	if (e->state == PYBPF_STATE_GIL) {
		e->gil_waited_ns += e->woken_ns - e->since_ns;
		e->gil_ns += e->woken_ns - e->since_ns;
		e->gil_key = key;
	} else {
		add_time(t, &key, e->woken_ns - e->since_ns, 0);
	}
	key.wait_id = e->ready_id;
	add_time(t, &key, now - e->woken_ns, 0);
	e->state = PYBPF_STATE_RUNNING;
	e->since_ns = now;
}

static void end_thread(struct played_thread *t, uint64_t now)
{
	struct pybpf_thread *e = &t->entry;
	const struct pybpf_wait_key key = key_of(e, 0, PYBPF_WAIT_ID(PYBPF_STATE_RUNNING));

	e->running_ns += now - e->since_ns;
	add_gil_sleeps(t);
	add_time(t, &key, e->running_ns, 0);
	t->lives = false;
}

static void start(struct played_thread *t, uint64_t now)
{
	static const struct pybpf_thread none;
	uint32_t tid = t->entry.id.tid;

	t->entry = none;
	t->entry.id.proc_id = 1 + tid % 3;
	t->entry.id.tid = tid;
	t->entry.begin_ns = t->entry.since_ns = now;
	t->lives = true;
}

/* One event of a thread, at next_ns. */
static void go_on(struct played_thread *t, bool may_end)
{
	static const enum pybpf_state states[] = {PYBPF_STATE_GIL, PYBPF_STATE_LOCK, PYBPF_STATE_POLL,
						  PYBPF_STATE_SLEEP};
	struct pybpf_thread *e = &t->entry;
	uint64_t now = t->next_ns;

	t->next_ns = now + 1 + draw(draw(8) ? EVENT_NS : EVENT_NS * 200);
	if (e->state != PYBPF_STATE_RUNNING && e->woken_ns) {
		run(t, now);
	} else if (e->state != PYBPF_STATE_RUNNING) {
		e->woken_ns = now;
		/* What was ready is known when it is woken. */
		if (e->state == PYBPF_STATE_POLL)
			e->wait_id |= 1u << 30;
		/* As run_until() has it where the switch was not told: it runs since it was woken. */
		if (!draw(4))
			run(t, now);
	} else if (may_end && !draw(40)) {
		end_thread(t, now);
	} else {
		sleep_for(t, states[draw(4)], now);
	}
}

static void go_until(struct played_thread *t, uint64_t until, bool may_end)
{
	while (t->lives && !t->sleeps_on && t->next_ns <= until)
		go_on(t, may_end);
}

static int take(const struct session_part *part, void *arg)
{
	struct played_thread *t = &played.threads[part->key.thread.tid];

	(void)arg;
	assert_true(part->time.ns <= HOUR_NS * 24 * 365);
	note(&t->told, &part->key, &part->time);
	t->told_ns += part->time.ns;
	return 0;
}

/* Ends an epoch. read_ns: for how long the threads are read before. */
static void end_epoch(uint64_t length_ns, uint64_t read_ns)
{
	struct pybpf_thread *threads = calloc(THREADS, sizeof(*threads));
	struct session_ahead_news news = {.threads = threads};

	assert_non_null(threads);
	played.before_ns = played.end_ns;
	played.end_ns += length_ns;
	for (int i = 0; i < THREADS; i++) {
		struct played_thread *t = &played.threads[i];
		uint64_t early = read_ns ? draw(read_ns) : 0;

		go_until(t, played.end_ns - early, true);
		t->was_read = t->lives;
		if (t->lives)
			threads[news.nr_threads++] = t->entry;
		go_until(t, played.end_ns, true);
		played.unread_ns += early;
		for (size_t at = 0; at < t->map.count; at++)
			assert_int_equal(session_parts_add(&news.ended, &t->map.items[at].key, &t->map.items[at].time),
					 0);
		t->map.count = 0;
		t->told_ns = 0;
	}
	news.end_ns = played.end_ns;
	session_ahead_sort(threads, news.nr_threads);
	assert_int_equal(session_ahead_settle(&played.ahead, &news, take, NULL), 0);
	session_parts_free(&news.ended);
	free(threads);
}

/* In an epoch a thread has the time for which it has lived in it. */
static void assert_lives_are_told(void)
{
	for (int i = 0; i < THREADS; i++) {
		struct played_thread *t = &played.threads[i];
		const struct pybpf_thread *e = &t->entry;
		uint64_t begin = e->begin_ns > played.before_ns ? e->begin_ns : played.before_ns;

		if (t->lives && t->was_read)
			assert_int_equal(t->told_ns, played.end_ns - begin);
	}
}

static void begin(uint64_t seed)
{
	memset(&played, 0, sizeof(played));
	played.seed = seed;
	played.end_ns = HOUR_NS;
	for (uint32_t i = 0; i < THREADS; i++) {
		played.threads[i].entry.id.tid = i;
		played.threads[i].next_ns = played.end_ns + draw(EVENT_NS);
		start(&played.threads[i], played.end_ns);
	}
}

/* Threads that have ended begin anew, with the same number. */
static void replace_ended(void)
{
	for (int i = 0; i < THREADS; i++) {
		struct played_thread *t = &played.threads[i];

		if (t->lives || t->told_ns)
			continue;
		start(t, played.end_ns);
		t->next_ns = played.end_ns + 1 + draw(EVENT_NS);
	}
}

/* All threads end, and are told of a last time: as of processes that have ended. */
static void finish(void)
{
	struct session_ahead_news news = {.threads = NULL};

	for (int i = 0; i < THREADS; i++) {
		struct played_thread *t = &played.threads[i];

		t->sleeps_on = false;
		while (t->lives)
			go_on(t, true);
		for (size_t at = 0; at < t->map.count; at++)
			assert_int_equal(session_parts_add(&news.ended, &t->map.items[at].key, &t->map.items[at].time),
					 0);
		session_parts_free(&t->map);
	}
	assert_int_equal(session_ahead_settle(&played.ahead, &news, take, NULL), 0);
	assert_int_equal(played.ahead.reported.count, 0);
	session_parts_free(&news.ended);
	session_ahead_free(&played.ahead);
}

static uint64_t apart(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* The sums of all epochs are those of the whole run. *moved: time that is in another stack or state. */
static void assert_sums(uint64_t *moved)
{
	*moved = 0;
	for (int i = 0; i < THREADS; i++) {
		const struct played_thread *t = &played.threads[i];
		uint64_t told = 0, truth = 0;

		for (int stack = 0; stack < PYBPF_STACK_ID_STACKS + STACKS; stack++) {
			for (int state = 0; state < PYBPF_NR_STATES; state++) {
				told += t->told.ns[stack][state];
				truth += t->truth.ns[stack][state];
				*moved += apart(t->told.ns[stack][state], t->truth.ns[stack][state]);
			}
		}
		assert_int_equal(told, truth);
	}
}

static void assert_counts(void)
{
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(played.threads[i].told.count, played.threads[i].truth.count);
}

/* Nothing happens between the reading of the threads and the end of the epoch: all is exact. */
static void test_exact(void **unused)
{
	uint64_t moved;

	(void)unused;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		begin(seed);
		for (int epoch = 0; epoch < 100; epoch++) {
			end_epoch(1 + draw(200 * MS), 0);
			assert_lives_are_told();
			replace_ended();
		}
		finish();
		assert_sums(&moved);
		assert_int_equal(moved, 0);
		assert_counts();
	}
}

/* Threads go on while they are read: what an epoch has is exact by thread, and by state up to the time of the reading.
 */
static void test_threads_go_on(void **unused)
{
	uint64_t moved;

	(void)unused;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		begin(seed);
		for (int epoch = 0; epoch < 100; epoch++) {
			end_epoch(READ_NS + 1 + draw(200 * MS), READ_NS);
			assert_lives_are_told();
			replace_ended();
		}
		finish();
		assert_sums(&moved);
		assert_true(moved <= 2 * played.unread_ns);
	}
}

/* A thread that sleeps for months is in each epoch with the epoch's length, once as a wait. */
static void test_sleeps_on(void **unused)
{
	const uint64_t epochs = 10000, minute = HOUR_NS / 60;
	uint64_t moved;

	(void)unused;
	begin(1);
	for (int i = 0; i < THREADS; i++) {
		sleep_for(&played.threads[i], PYBPF_STATE_LOCK, played.end_ns);
		played.threads[i].sleeps_on = true;
	}
	for (uint64_t epoch = 0; epoch < epochs; epoch++) {
		end_epoch(minute, 0);
		for (int i = 0; i < THREADS; i++) {
			assert_int_equal(played.threads[i].told_ns, minute);
			assert_int_equal(played.threads[i].told.count, 1);
		}
	}
	assert_int_equal(played.ahead.reported.count, 2 * THREADS);
	for (int i = 0; i < THREADS; i++)
		played.threads[i].next_ns = played.end_ns;
	finish();
	assert_sums(&moved);
	assert_int_equal(moved, 0);
}

/* Nothing is kept of a process that has ended. */
static void test_forget_process(void **unused)
{
	(void)unused;
	begin(1);
	end_epoch(MS, 0);
	for (uint64_t proc_id = 1; proc_id <= 3; proc_id++) {
		session_ahead_forget_process(&played.ahead, proc_id);
		for (size_t i = 0; i < played.ahead.reported.count; i++)
			assert_true(played.ahead.reported.items[i].key.thread.proc_id > proc_id);
	}
	assert_int_equal(played.ahead.reported.count, 0);
	for (int i = 0; i < THREADS; i++)
		session_parts_free(&played.threads[i].map);
	session_ahead_free(&played.ahead);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_threads_go_on),
		cmocka_unit_test(test_sleeps_on),
		cmocka_unit_test(test_forget_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

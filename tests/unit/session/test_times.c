// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "profiles.h"
#include "session/samples/times.h"

static struct pybpf_time_event record(uint64_t stack_id, uint32_t tid, uint64_t time_ns)
{
	return (struct pybpf_time_event){
		.event = {.type = PYBPF_EVENT_TIME, .size = sizeof(struct pybpf_time_event)},
		.time_ns = time_ns,
		.key = {.stack_id = stack_id, .thread.proc_id = 1, .thread.tid = tid},
	};
}

static void add(struct session_times *t, uint64_t stack_id, uint32_t tid, uint64_t time_ns)
{
	const struct pybpf_time_event event = record(stack_id, tid, time_ns);

	assert_int_equal(session_times_add(t, &event, sizeof(event)), 0);
}

/* A record waits for its sample, and becomes an event once. */
static void test_waits(void **unused)
{
	const struct pybpf_count_key one = {.stack_id = 7, .thread.proc_id = 1, .thread.tid = 1};
	const struct pybpf_count_key two = {.stack_id = 7, .thread.proc_id = 1, .thread.tid = 2};
	struct profile *p = new_profile();
	const struct profile_event *events;
	struct session_times t;
	size_t count;

	(void)unused;
	session_times_init(&t);
	add(&t, 7, 2, 1500);
	add(&t, 7, 1, 1200);
	add(&t, 7, 2, 900);
	assert_int_equal(session_times_settle(&t, p, 1000), 0);
	profile_events(p, &count);
	assert_int_equal(count, 0);

	assert_int_equal(session_times_know(&t, &one, 41, 1), 0);
	assert_int_equal(session_times_settle(&t, p, 1000), 0);
	events = profile_events(p, &count);
	assert_int_equal(count, 1);
	assert_int_equal(events[0].sample, 41);
	assert_int_equal(events[0].time_ns, 200);

	assert_int_equal(session_times_know(&t, &two, 42, 1010), 0);
	assert_int_equal(session_times_settle(&t, p, 1000), 0);
	assert_int_equal(session_times_settle(&t, p, 1000), 0);
	profile_sort_events(p);
	events = profile_events(p, &count);
	assert_int_equal(count, 3);
	/* Taken on another CPU while the beginning was noted. */
	assert_int_equal(events[0].time_ns, 0);
	assert_int_equal(events[1].sample, 41);
	assert_int_equal(events[2].time_ns, 500);
	assert_int_equal(events[2].sample, 42);
	assert_int_equal(events[1].value, 1);
	assert_int_equal(events[2].value, 1010);
	session_times_free(&t);
	profile_free(p);
}

/* The same TID of the same process, another thread; the same thread number of two processes. */
static void test_whose(void **unused)
{
	const struct pybpf_count_key keys[] = {
		{.stack_id = 7, .thread = {1, 1, 1}},
		{.stack_id = 7, .thread = {1, 1, 2}},
		{.stack_id = 7, .thread = {1ULL << 32 | 1, 1, 1}},
	};
	struct profile *p = new_profile();
	const struct profile_event *events;
	struct session_times t;
	size_t count;

	(void)unused;
	session_times_init(&t);
	for (uint32_t i = 0; i < 3; i++) {
		struct pybpf_time_event event = record(7, 1, 1000 + i);

		event.key.thread.proc_id = keys[i].thread.proc_id;
		event.key.thread.tid_start_ms = keys[i].thread.tid_start_ms;
		assert_int_equal(session_times_add(&t, &event, sizeof(event)), 0);
		assert_int_equal(session_times_know(&t, &keys[i], 40 + i, 1), 0);
	}
	assert_int_equal(session_times_settle(&t, p, 1000), 0);
	events = profile_events(p, &count);
	assert_int_equal(count, 3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(events[i].time_ns, i);
		assert_int_equal(events[i].sample, 40 + i);
	}
	session_times_free(&t);
	profile_free(p);
}

static void test_short_record(void **unused)
{
	const struct pybpf_time_event event = record(7, 1, 1);
	struct session_times t;

	(void)unused;
	session_times_init(&t);
	assert_int_equal(session_times_add(&t, &event, sizeof(event) - 1), -EBADMSG);
	assert_int_equal(t.count, 0);
	session_times_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_whose),
		cmocka_unit_test(test_short_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "profiles.h"
#include "session/waits/intervals.h"

#define MS 1000000ULL

static struct pybpf_wait_key key_of(uint32_t tid)
{
	return (struct pybpf_wait_key){.stack_id = 70, .thread.proc_id = 1, .wait_id = 9, .thread.tid = tid};
}

static void add(struct session_intervals *l, uint32_t tid, uint64_t time_ns, uint64_t ns)
{
	const struct pybpf_wait_key key = key_of(tid);

	assert_int_equal(session_intervals_add(l, &key, time_ns, ns), 0);
}

static void know(struct session_intervals *l, uint32_t tid, uint32_t sample, uint64_t count, uint64_t ns)
{
	const struct pybpf_wait_key key = key_of(tid);

	assert_int_equal(session_intervals_know(l, &key, sample, (struct pybpf_wait_time){.count = count, .ns = ns}),
			 0);
}

/* An interval waits until its sample is known, and is then one event as long as itself. */
static void test_events(void **unused)
{
	struct profile *p = new_profile();
	const struct profile_event *events;
	struct session_intervals l;
	size_t count;

	(void)unused;
	session_intervals_init(&l);
	add(&l, 1, 1010 * MS, 5 * MS);
	add(&l, 2, 1020 * MS, 7 * MS);
	add(&l, 1, 1030 * MS, MS - 1); /* short */
	know(&l, 1, 41, 2, 6 * MS - 1);
	assert_int_equal(session_intervals_settle(&l, p, 1000 * MS), 0);
	events = profile_events(p, &count);
	assert_int_equal(count, 1);
	assert_int_equal(events[0].time_ns, 10 * MS);
	assert_int_equal(events[0].sample, 41);
	assert_int_equal(events[0].value, 5000);

	know(&l, 2, 42, 1, 7 * MS);
	assert_int_equal(session_intervals_settle(&l, p, 1000 * MS), 0);
	assert_int_equal(session_intervals_settle(&l, p, 1000 * MS), 0);
	events = profile_events(p, &count);
	assert_int_equal(count, 2);
	assert_int_equal(events[1].sample, 42);
	assert_int_equal(l.all.count, 3);
	assert_int_equal(l.all.ns, 13 * MS - 1);
	assert_int_equal(l.drawn.count, 2);
	assert_int_equal(l.drawn.ns, 12 * MS);
	session_intervals_free(&l);
	profile_free(p);
}

/* What is before the profile's beginning is no part of it, nor what its sample has no value for. */
static void test_cut(void **unused)
{
	struct profile *p = new_profile();
	const struct profile_event *events;
	struct session_intervals l;
	size_t count;

	(void)unused;
	session_intervals_init(&l);
	add(&l, 1, 980 * MS, 50 * MS);
	add(&l, 1, 900 * MS, 100 * MS);
	add(&l, 1, 1100 * MS, 50 * MS);
	know(&l, 1, 41, 3, 40 * MS);
	assert_int_equal(session_intervals_settle(&l, p, 1000 * MS), 0);
	events = profile_events(p, &count);
	assert_int_equal(count, 2);
	assert_int_equal(events[0].time_ns, 0);
	assert_int_equal(events[0].value, 30000);
	assert_int_equal(events[1].time_ns, 100 * MS);
	assert_int_equal(events[1].value, 10000);
	session_intervals_free(&l);
	profile_free(p);
}

/* A wait of two hours is longer than the value of an event can be: two follow each other. */
static void test_long(void **unused)
{
	const uint64_t us = 7200ULL * 1000000;
	struct profile *p = new_profile();
	const struct profile_event *events;
	struct session_intervals l;
	size_t count;

	(void)unused;
	session_intervals_init(&l);
	add(&l, 1, 0, us * 1000);
	know(&l, 1, 41, 1, us * 1000);
	assert_int_equal(session_intervals_settle(&l, p, 0), 0);
	events = profile_events(p, &count);
	assert_int_equal(count, 2);
	assert_int_equal((uint64_t)events[0].value + events[1].value, us);
	assert_int_equal(events[1].time_ns, (uint64_t)events[0].value * 1000);
	session_intervals_free(&l);
	profile_free(p);
}

static void test_records(void **unused)
{
	const struct pybpf_interval_event event = {.time_ns = MS, .ns = 3 * MS, .key = key_of(1)};
	struct session_intervals l;

	(void)unused;
	session_intervals_init(&l);
	assert_int_equal(session_intervals_take(&l, &event, sizeof(event) - 1, false), -EBADMSG);
	assert_int_equal(session_intervals_take(&l, &event, sizeof(event), true), 0);
	assert_int_equal(l.count, 0);
	assert_int_equal(l.refused.count, 1);
	assert_int_equal(l.refused.ns, 3 * MS);
	assert_int_equal(session_intervals_take(&l, &event, sizeof(event), false), 0);
	assert_int_equal(l.count, 1);
	session_intervals_free(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

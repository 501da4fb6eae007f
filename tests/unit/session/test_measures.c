// SPDX-License-Identifier: Apache-2.0
/* Which measures a run has by its options, in which order, and that no two of them take the same. */
#include "session/measure.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "session/internal.h"
#include "session/waits/left_out.h"
#include "session/samples/resident.h"
#include "session/samples/samples.h"

/* The measures that stand in every run. */
#define ALWAYS &session_thread_names_measure

static struct session *make(struct session_options options)
{
	struct session *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	s->options = options;
	session_measures_init(s);
	return s;
}

static void drop(struct session *s)
{
	session_measures_free(s);
	free(s);
}

static void assert_measures(struct session_options options, const struct session_measure *const *wanted)
{
	struct session *s = make(options);
	size_t i = 0;

	for (; wanted[i]; i++) {
		assert_true(i < s->nr_measures);
		assert_string_equal(s->measures[i]->name, wanted[i]->name);
	}
	assert_int_equal(s->nr_measures, i);
	drop(s);
}

static void test_by_options(void **state)
{
	static const struct session_measure *const cpu[] = {&session_schedstat_measure, ALWAYS,
							    &session_samples_measure, NULL};
	static const struct session_measure *const states[] = {&session_schedstat_measure, &session_states_measure,
							       ALWAYS, &session_samples_measure, NULL};
	static const struct session_measure *const wall[] = {
		&session_waits_measure,
		&session_initial_stacks_measure,
		ALWAYS,
		&session_left_out_measure,
		&session_suspended_measure,
		&session_loop_blocks_measure,
		&session_samples_measure,
		&session_times_measure,
		&session_intervals_measure,
		NULL,
	};
	static const struct session_measure *const offcpu[] = {&session_waits_measure, &session_initial_stacks_measure,
							       ALWAYS, &session_left_out_measure, NULL};
	static const struct session_measure *const gil[] = {
		&session_waits_measure, &session_initial_stacks_measure, ALWAYS, &session_left_out_measure,
		&session_gil_measure,   &session_samples_measure,        NULL,
	};

	(void)state;
	assert_measures((struct session_options){.mode = SESSION_CPU}, cpu);
	assert_measures((struct session_options){.mode = SESSION_CPU, .states = true}, states);
	assert_measures(
		(struct session_options){.mode = SESSION_WALL, .suspended = true, .loop_block_ns = 1, .times = true},
		wall);
	assert_measures((struct session_options){.mode = SESSION_OFFCPU}, offcpu);
	assert_measures((struct session_options){.mode = SESSION_GIL}, gil);
}

static void test_one_name_each(void **state)
{
	(void)state;
	for (size_t i = 0; i < SESSION_MEASURES; i++) {
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(session_measures[i]->name, session_measures[k]->name);
	}
}

static void test_one_taker_of_each_record(void **state)
{
	uint32_t taken = 0;

	(void)state;
	for (size_t i = 0; i < SESSION_MEASURES; i++) {
		assert_int_equal(taken & session_measures[i]->records, 0);
		assert_int_equal(!session_measures[i]->records, !session_measures[i]->take);
		taken |= session_measures[i]->records;
	}
	assert_ptr_equal(session_measures_find_taker(PYBPF_EVENT_MEMORY), &session_resident_measure);
	assert_ptr_equal(session_measures_find_taker(PYBPF_EVENT_WAKER), &session_waits_measure);
	assert_null(session_measures_find_taker(PYBPF_EVENT_STACK));
	assert_null(session_measures_find_taker(PYBPF_EVENT_CODE));
	assert_null(session_measures_find_taker(PYBPF_EVENT_TASKS));
}

/* In a mode that measures time, samples of a stack are kept until the thread's time is known. */
static void test_counts_go_to_the_first(void **state)
{
	const struct pybpf_count_key key = {.thread = {1, 2, 0}};
	const struct pybpf_count count = {.count = 3};
	const struct session_counted counted = {.key = &key, .count = &count, .stack = 4};
	struct session *s = make((struct session_options){.mode = SESSION_WALL});

	(void)state;
	assert_int_equal(session_measures_add_count(s, &counted), 0);
	assert_int_equal(s->waits.running.nr_samples, 1);
	assert_int_equal(s->waits.running.samples[0].count, 3);
	assert_int_equal(s->waits.running.samples[0].stack, 4);
	drop(s);
}

static void assert_values(struct session_options options, const char *name, const char *unit, uint64_t period_ns)
{
	const struct session_account account = {.freq = options.nr_events ? 0 : options.freq};
	struct profile_measure values = {0};
	struct session *s = make(options);

	session_measures_describe(s, &account, &values);
	assert_string_equal(values.name, name);
	assert_string_equal(values.unit, unit);
	assert_int_equal(values.period_ns, period_ns);
	drop(s);
}

static void test_what_values_are(void **state)
{
	const struct kernel_event memory = {.title = "memory", .unit = "bytes"}, untitled = {.period = 2};

	(void)state;
	assert_values((struct session_options){.freq = 100}, "samples", "count", 10000000);
	assert_values((struct session_options){.freq = 100, .events = &memory, .nr_events = 1, .held = true}, "memory",
		      "bytes", 0);
	assert_values((struct session_options){.events = &untitled, .nr_events = 1}, "events", "count", 0);
	assert_values((struct session_options){.freq = 100, .mode = SESSION_WALL}, "wall", PROFILE_UNIT_TIME, 0);
	assert_values((struct session_options){.mode = SESSION_OFFCPU}, "offcpu", PROFILE_UNIT_TIME, 0);
	assert_values((struct session_options){.mode = SESSION_GIL, .gil_holders = true}, "gil_holders",
		      PROFILE_UNIT_TIME, 0);
}

static struct kernel_options asked(struct session_options options)
{
	struct kernel_options kernel = {0};
	struct session *s = make(options);

	session_measures_ask_kernel(s, &kernel);
	drop(s);
	return kernel;
}

static void test_what_the_kernel_is_asked(void **state)
{
	const struct kernel_event event = {.title = "event"};
	struct kernel_options kernel = asked((struct session_options){.mode = SESSION_CPU, .wakers = true});

	(void)state;
	assert_false(kernel.waits || kernel.states || kernel.threads || kernel.times || kernel.wakers || kernel.events);
	kernel = asked((struct session_options){.mode = SESSION_CPU, .states = true});
	assert_true(kernel.states && !kernel.waits && !kernel.threads && !kernel.wait_detail);
	kernel = asked((struct session_options){.mode = SESSION_OFFCPU, .times = true, .loop_block_ns = 2});
	assert_true(kernel.waits && kernel.threads && kernel.wait_detail && kernel.times && !kernel.gil_waits);
	assert_int_equal(kernel.loop_block_ns, 2);
	kernel = asked((struct session_options){
		.mode = SESSION_GIL, .wakers = true, .no_wait_detail = true, .min_block_ns = 3});
	assert_true(kernel.gil_waits && kernel.wakers && !kernel.wait_detail);
	assert_int_equal(kernel.min_block_ns, 3);
	kernel = asked((struct session_options){.events = &event, .nr_events = 1, .held = true});
	assert_true(kernel.held && kernel.events == &event && kernel.nr_events == 1);
}

static void test_times_of_all_are_counted(void **state)
{
	struct session *s = make((struct session_options){.mode = SESSION_WALL, .times = true});

	(void)state;
	s->times.count = 2;
	s->waits.intervals.count = 3;
	assert_int_equal(session_measures_count_times(s), 5);
	drop(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_options),
		cmocka_unit_test(test_one_name_each),
		cmocka_unit_test(test_one_taker_of_each_record),
		cmocka_unit_test(test_counts_go_to_the_first),
		cmocka_unit_test(test_what_values_are),
		cmocka_unit_test(test_what_the_kernel_is_asked),
		cmocka_unit_test(test_times_of_all_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "timelines.h"

#define SLICES 64

/* Slices and metadata of a trace. */
static size_t slices_of(const json_t *file, json_int_t tid, const json_t **slices)
{
	const json_t *events = member(file, "traceEvents");
	size_t n = 0;

	for (size_t i = 0; i < json_array_size(events); i++) {
		const json_t *event = json_array_get(events, i);

		if (strcmp(text_of(event, "ph"), "X") != 0 || number_of(event, "tid") != tid)
			continue;
		assert_true(n < SLICES);
		slices[n++] = event;
	}
	return n;
}

static double at(const json_t *event, const char *key)
{
	return json_number_value(member(event, key));
}

static void assert_slice(const json_t *event, const char *name, double begin_us, double length_us)
{
	assert_string_equal(text_of(event, "name"), name);
	assert_true(at(event, "ts") == begin_us);
	assert_true(at(event, "dur") == length_us);
}

static void assert_metadata(const json_t *file, const char *name, json_int_t pid, json_int_t tid, const char *key,
			    const char *want)
{
	const json_t *events = member(file, "traceEvents");
	int found = 0;

	for (size_t i = 0; i < json_array_size(events); i++) {
		const json_t *event = json_array_get(events, i);

		if (strcmp(text_of(event, "ph"), "M") != 0 || strcmp(text_of(event, "name"), name) != 0 ||
		    number_of(event, "pid") != pid || number_of(event, "tid") != tid)
			continue;
		assert_string_equal(text_of(member(event, "args"), key), want);
		found++;
	}
	assert_int_equal(found, 1);
}

/* Returns whether an event is the slice of a frame. */
static bool is_of_stack(const json_t *event)
{
	return *text_of(event, "ph") == 'X' && strcmp(text_of(event, "cat"), "waker") != 0;
}

/* Each event is one; slices of a thread lie inside each other, or beside. */
static void check(const json_t *file)
{
	const json_t *events = member(file, "traceEvents");

	for (size_t i = 0; i < json_array_size(events); i++) {
		const json_t *a = json_array_get(events, i);

		assert_non_null(strpbrk(text_of(a, "ph"), "XMisf"));
		text_of(a, "name");
		if (!is_of_stack(a))
			continue;
		assert_true(at(a, "dur") >= 0);
		for (size_t k = i + 1; k < json_array_size(events); k++) {
			const json_t *b = json_array_get(events, k);

			if (!is_of_stack(b) || number_of(a, "tid") != number_of(b, "tid") ||
			    number_of(a, "pid") != number_of(b, "pid"))
				continue;
			assert_true(at(b, "ts") >= at(a, "ts"));
			assert_true(at(b, "ts") >= at(a, "ts") + at(a, "dur") - 1e-6 ||
				    at(b, "ts") + at(b, "dur") <= at(a, "ts") + at(a, "dur") + 1e-6);
		}
	}
}

static void test_timeline(void **unused)
{
	struct profile *p = timeline();
	json_t *file = parsed(p, output_chrometrace);
	const json_t *slices[SLICES];

	(void)unused;
	check(file);
	assert_metadata(file, "process_name", 42, 43, "name", "python3 (42)");
	assert_metadata(file, "thread_name", 42, 43, "name", "worker");
	assert_int_equal(slices_of(file, 42, slices), 6);
	assert_slice(slices[0], "main", 0, 41000);
	assert_slice(slices[1], "f", 0, 31000);
	assert_slice(slices[2], "g", 10000, 21000);
	assert_slice(slices[3], "h", 31000, 10000);
	/* Nothing between 41 and 100 ms: the thread was not seen. */
	assert_slice(slices[4], "main", 100000, 10000);
	assert_slice(slices[5], "f", 100000, 10000);
	assert_int_equal(slices_of(file, 43, slices), 2);
	assert_slice(slices[1], "w", 5000, 20000);
	json_decref(file);
	profile_free(p);
}

/* A flow leads from who ended a wait to the wait, in its last microsecond; none from who had no stacks yet. */
static void test_flows(void **unused)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 42, "python3");
	uint32_t waiter = profile_add_thread(p, owner, 42, "waits"), waker = profile_add_thread(p, owner, 43, "wakes");
	uint32_t f = on(p, PROFILE_ROOT, "f", "app.py", 3);
	uint32_t lock = profile_add_stack(p, f, profile_add_wait(p, "lock", "[lock]", 0));
	uint32_t woken = profile_add_stack(p, lock, profile_add_wait(p, "lock", "[woken by: wakes (43)]", 43));
	uint32_t remark = profile_add_stack(p, woken, profile_add_wait(p, "lock", "[waker: f (app.py)]", 0));
	uint32_t sample;
	json_t *file, *events;
	size_t flows = 0;

	(void)unused;
	assert_int_equal(profile_set_measure(p, &(struct profile_measure){"time", PROFILE_UNIT_TIME, 0}), 0);
	assert_int_equal(profile_set_fact(p, PROFILE_FACT_FREQ, "100"), 0);
	assert_int_equal(profile_add_sample(p, remark, owner, waiter, 10000), 0);
	sample = profile_find_sample(p, remark, owner, waiter);
	assert_int_equal(profile_add_event(p, 0, sample, 5000), 0);
	assert_int_equal(profile_add_event(p, 100 * MS, sample, 5000), 0);
	assert_int_equal(profile_add_sample(p, f, owner, waker, 10000), 0);
	assert_int_equal(profile_add_event(p, 100 * MS, profile_find_sample(p, f, owner, waker), 10000), 0);
	assert_int_equal(profile_waker_of(p, remark), 43);
	assert_int_equal(profile_waker_of(p, lock), 0);
	assert_int_equal(profile_waker_of(p, f), 0);
	assert_int_equal(profile_waker_of(p, PROFILE_ROOT), 0);
	file = parsed(p, output_chrometrace);
	check(file);
	events = member(file, "traceEvents");
	for (size_t i = 0; i < json_array_size(events); i++) {
		const json_t *event = json_array_get(events, i);
		bool is_end = strcmp(text_of(event, "ph"), "f") == 0;

		if (*text_of(event, "ph") == 'M' || strcmp(text_of(event, "cat"), "waker") != 0)
			continue;
		flows++;
		assert_int_equal(number_of(event, "tid"), is_end ? 42 : 43);
		assert_true(at(event, "ts") == 104999);
		if (*text_of(event, "ph") == 'X')
			assert_int_equal(number_of(member(event, "args"), "tid"), 42);
		else
			assert_int_equal(number_of(event, "id"), 1);
	}
	assert_int_equal(flows, 3);
	json_decref(file);
	profile_free(p);
}

/* Other lines of a function are the same slice. */
static void test_lines(void **unused)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 42, "python3"), thread = profile_add_thread(p, owner, 42, "python3");
	const json_t *slices[SLICES];
	json_t *file;

	(void)unused;
	measure_cpu(p);
	tick(p, 0, on(p, PROFILE_ROOT, "f", "app.py", 1), owner, thread);
	tick(p, 10, on(p, PROFILE_ROOT, "f", "app.py", 2), owner, thread);
	tick(p, 20, on(p, PROFILE_ROOT, "f", "other.py", 2), owner, thread);
	file = parsed(p, output_chrometrace);
	check(file);
	assert_int_equal(slices_of(file, 42, slices), 2);
	assert_slice(slices[0], "f", 0, 20000);
	json_decref(file);
	profile_free(p);
}

/* One that ended, and one that got its PID later, are two: a reader tells them apart by the number alone. */
static void test_processes_of_one_pid(void **unused)
{
	struct profile *p = new_profile();
	uint32_t former = process(p, 9, "former"), later = process(p, 9, "later");
	uint32_t s = on(p, PROFILE_ROOT, "f", "app.py", 3);
	json_int_t pids[2] = {0};
	size_t found = 0;
	json_t *file, *events;

	(void)unused;
	measure_cpu(p);
	tick(p, 0, s, former, profile_add_thread(p, former, 9, "one"));
	tick(p, 10, s, later, profile_add_thread(p, later, 9, "two"));
	file = parsed(p, output_chrometrace);
	check(file);
	events = member(file, "traceEvents");
	for (size_t i = 0; i < json_array_size(events); i++) {
		const json_t *event = json_array_get(events, i);

		if (!is_of_stack(event))
			continue;
		assert_true(found < 2);
		pids[found++] = number_of(event, "pid");
	}
	assert_int_equal(found, 2);
	assert_int_not_equal(pids[0], pids[1]);
	json_decref(file);
	profile_free(p);
}

static void test_without_times(void **unused)
{
	struct profile *p = new_profile();
	const json_t *slices[SLICES], *events;
	json_t *file = parsed(p, output_chrometrace);
	json_int_t untimed = 0;

	(void)unused;
	check(file);
	events = member(file, "traceEvents");
	assert_int_equal(json_array_size(events), 1);
	assert_string_equal(text_of(json_array_get(events, 0), "ph"), "i");
	json_decref(file);

	take_in(p, on(p, PROFILE_ROOT, "f", "app.py", 1), process(p, 42, "python3"), 17);
	file = parsed(p, output_chrometrace);
	check(file);
	assert_int_equal(slices_of(file, 42, slices), 0);
	events = member(file, "traceEvents");
	for (size_t i = 0; i < json_array_size(events); i++) {
		if (*text_of(json_array_get(events, i), "ph") == 'i')
			untimed += number_of(member(json_array_get(events, i), "args"), "samples");
	}
	assert_int_equal(untimed, 17);
	json_decref(file);
	profile_free(p);
}

static void test_hostile(void **unused)
{
	struct profile *p = hostile();
	json_t *file = parsed(p, output_chrometrace);

	(void)unused;
	check(file);
	json_decref(file);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_timeline),      cmocka_unit_test(test_flows),
		cmocka_unit_test(test_lines),         cmocka_unit_test(test_processes_of_one_pid),
		cmocka_unit_test(test_without_times), cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

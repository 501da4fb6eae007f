// SPDX-License-Identifier: Apache-2.0
#include "timelines.h"

/* The names of the frames of a profile's sample, joined by `;`. */
static void assert_sample(const json_t *file, size_t profile, size_t sample, const char *names, json_int_t weight)
{
	const json_t *one = json_array_get(member(file, "profiles"), profile);
	const json_t *stack = json_array_get(member(one, "samples"), sample);
	char joined[256] = "";

	assert_non_null(stack);
	for (size_t i = 0; i < json_array_size(stack); i++) {
		size_t frame = (size_t)json_integer_value(json_array_get(stack, i));
		const json_t *frames = member(member(file, "shared"), "frames");

		snprintf(joined + strlen(joined), sizeof(joined) - strlen(joined), "%s%s", i ? ";" : "",
			 text_of(json_array_get(frames, frame), "name"));
	}
	assert_string_equal(joined, names);
	assert_int_equal(json_integer_value(json_array_get(member(one, "weights"), sample)), weight);
}

/* Weights and samples are as many, and add up to the end. */
static void check(const json_t *file)
{
	const json_t *profiles = member(file, "profiles");
	size_t frames = json_array_size(member(member(file, "shared"), "frames"));

	assert_string_equal(text_of(file, "$schema"), "https://www.speedscope.app/file-format-schema.json");
	assert_true(json_array_size(profiles) > 0);
	for (size_t i = 0; i < json_array_size(profiles); i++) {
		const json_t *one = json_array_get(profiles, i), *weights = member(one, "weights");
		const json_t *samples = member(one, "samples");
		json_int_t sum = 0;

		assert_string_equal(text_of(one, "type"), "sampled");
		assert_int_equal(json_array_size(weights), json_array_size(samples));
		for (size_t k = 0; k < json_array_size(weights); k++) {
			const json_t *stack = json_array_get(samples, k);

			sum += json_integer_value(json_array_get(weights, k));
			for (size_t f = 0; f < json_array_size(stack); f++)
				assert_true((size_t)json_integer_value(json_array_get(stack, f)) < frames);
		}
		assert_int_equal(number_of(one, "startValue"), 0);
		assert_int_equal(number_of(one, "endValue"), sum);
	}
}

static void test_timeline(void **unused)
{
	struct profile *p = timeline();
	json_t *file = parsed(p, output_speedscope);
	const json_t *first = json_array_get(member(file, "profiles"), 0);
	const json_t *frame = json_array_get(member(member(file, "shared"), "frames"), 0);

	(void)unused;
	check(file);
	assert_int_equal(json_array_size(member(file, "profiles")), 2);
	assert_string_equal(text_of(first, "name"), "python3 (42)");
	assert_string_equal(text_of(first, "unit"), "nanoseconds");
	/* Time is time: from the beginning of the run, with gaps, and all threads end with the run. */
	assert_int_equal(json_array_size(member(first, "samples")), 5);
	assert_sample(file, 0, 0, "main;f", 10 * MS);
	assert_sample(file, 0, 1, "main;f;g", 21 * MS);
	assert_sample(file, 0, 2, "main;h", 10 * MS);
	assert_sample(file, 0, 3, "", 59 * MS);
	assert_sample(file, 0, 4, "main;f", 10 * MS);
	assert_sample(file, 1, 0, "", 5 * MS);
	assert_sample(file, 1, 1, "run;w", 20 * MS);
	assert_sample(file, 1, 2, "", 85 * MS);
	assert_int_equal(number_of(json_array_get(member(file, "profiles"), 1), "endValue"), 110 * MS);
	assert_string_equal(text_of(frame, "file"), "app.py");
	assert_int_equal(number_of(frame, "line"), 10);
	json_decref(file);
	profile_free(p);
}

/* The run is longer than its samples, and says so. */
static void test_duration(void **unused)
{
	struct profile *p = timeline();
	json_t *file;

	(void)unused;
	assert_int_equal(profile_set_fact(p, PROFILE_FACT_DURATION, "0.25"), 0);
	file = parsed(p, output_speedscope);
	check(file);
	assert_sample(file, 0, 5, "", 140 * MS);
	assert_sample(file, 1, 2, "", 225 * MS);
	json_decref(file);
	profile_free(p);
}

/* Bytes have no length in time: their weights are values, in the order of their times. */
static void test_values_with_times(void **unused)
{
	struct profile *p = timeline();
	json_t *file;

	(void)unused;
	assert_int_equal(profile_set_measure(p, &(struct profile_measure){"allocated", "bytes", 0}), 0);
	file = parsed(p, output_speedscope);
	check(file);
	assert_sample(file, 0, 1, "main;f;g", 2);
	assert_int_equal(number_of(json_array_get(member(file, "profiles"), 0), "endValue"), 5);
	json_decref(file);
	profile_free(p);
}

/* Samples whose times are not known are a profile of their own, and do not move the others. */
static void test_some_without_times(void **unused)
{
	struct profile *p = timeline();
	json_t *file;

	(void)unused;
	take_in(p, on(p, PROFILE_ROOT, "lost", "app.py", 1), 0, 3);
	file = parsed(p, output_speedscope);
	check(file);
	assert_int_equal(json_array_size(member(file, "profiles")), 3);
	assert_sample(file, 2, 0, "lost", 30 * MS);
	assert_non_null(strstr(text_of(json_array_get(member(file, "profiles"), 2), "name"), "times unknown"));
	assert_sample(file, 0, 3, "", 59 * MS);
	json_decref(file);
	profile_free(p);
}

static void test_without_times(void **unused)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 42, "python3"), f = on(p, PROFILE_ROOT, "f", "", PROFILE_NO_LINE);
	json_t *file;

	(void)unused;
	take_in(p, f, owner, 5);
	take_in(p, on(p, f, "g", "app.py", 1), owner, 7);
	file = parsed(p, output_speedscope);
	check(file);
	assert_string_equal(text_of(json_array_get(member(file, "profiles"), 0), "unit"), "none");
	assert_sample(file, 0, 0, "f", 5);
	assert_sample(file, 0, 1, "f;g", 7);
	assert_null(json_object_get(json_array_get(member(member(file, "shared"), "frames"), 0), "line"));
	json_decref(file);

	assert_int_equal(profile_set_measure(p, &(struct profile_measure){"allocated", "bytes", 0}), 0);
	file = parsed(p, output_speedscope);
	check(file);
	assert_string_equal(text_of(json_array_get(member(file, "profiles"), 0), "unit"), "bytes");
	json_decref(file);
	profile_free(p);
}

static void test_empty_and_hostile(void **unused)
{
	struct profile *empty = new_profile(), *bad = hostile();
	json_t *file = parsed(empty, output_speedscope);

	(void)unused;
	check(file);
	json_decref(file);
	file = parsed(bad, output_speedscope);
	check(file);
	json_decref(file);
	profile_free(empty);
	profile_free(bad);
}

/* The column where an expression begins, from 1; of a frame without columns none. */
static void test_columns(void **unused)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 42, "python3");
	const json_t *frames;
	json_t *file;

	(void)unused;
	take_in(p, on_expression(p, PROFILE_ROOT, "f", (struct profile_place){3, 1, 3, 4, 9}), owner, 5);
	take_in(p, on(p, PROFILE_ROOT, "f", "app.py", 3), owner, 6);
	file = parsed(p, output_speedscope);
	check(file);
	frames = member(member(file, "shared"), "frames");
	assert_int_equal(number_of(json_array_get(frames, 0), "col"), 5);
	assert_null(json_object_get(json_array_get(frames, 1), "col"));
	json_decref(file);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_timeline),          cmocka_unit_test(test_duration),
		cmocka_unit_test(test_values_with_times), cmocka_unit_test(test_some_without_times),
		cmocka_unit_test(test_without_times),     cmocka_unit_test(test_empty_and_hostile),
		cmocka_unit_test(test_columns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

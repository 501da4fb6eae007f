// SPDX-License-Identifier: Apache-2.0
#include "timelines.h"

/* Columns of a table that have as many rows as it says. */
static void assert_table(const json_t *table)
{
	json_int_t length = number_of(table, "length");
	const char *key;
	json_t *column;

	json_object_foreach((json_t *)table, key, column)
	{
		if (json_is_array(column))
			assert_int_equal(json_array_size(column), length);
	}
}

static json_t *cell(const json_t *table, const char *column, size_t row)
{
	json_t *found = json_array_get(member(table, column), row);

	assert_non_null(found);
	return found;
}

/* An index in a column, which must be one of the table it is for. */
static size_t reference(const json_t *table, const char *column, size_t row, const json_t *to)
{
	json_t *found = cell(table, column, row);

	assert_true(json_is_integer(found));
	assert_in_range(json_integer_value(found), 0, number_of(to, "length") - 1);
	return (size_t)json_integer_value(found);
}

static const char *string_at(const json_t *file, const json_t *index)
{
	json_t *found = json_array_get(member(member(file, "shared"), "stringArray"), json_integer_value(index));

	assert_non_null(found);
	return json_string_value(found);
}

static void check_shared(const json_t *file)
{
	const json_t *shared = member(file, "shared"), *frames = member(shared, "frameTable");
	const json_t *functions = member(shared, "funcTable"), *stacks = member(shared, "stackTable");
	const json_t *sources = member(shared, "sources"), *categories = member(member(file, "meta"), "categories");

	assert_table(frames);
	assert_table(functions);
	assert_table(stacks);
	assert_table(sources);
	assert_table(member(shared, "resourceTable"));
	assert_table(member(shared, "nativeSymbols"));
	for (size_t i = 0; i < (size_t)number_of(frames, "length"); i++) {
		reference(frames, "func", i, functions);
		assert_in_range(json_integer_value(cell(frames, "category", i)), 0, json_array_size(categories) - 1);
	}
	for (size_t i = 0; i < (size_t)number_of(functions, "length"); i++) {
		string_at(file, cell(functions, "name", i));
		if (!json_is_null(cell(functions, "source", i)))
			string_at(file, cell(sources, "filename", reference(functions, "source", i, sources)));
		if (json_integer_value(cell(functions, "resource", i)) != -1)
			reference(functions, "resource", i, member(shared, "resourceTable"));
	}
	for (size_t i = 0; i < (size_t)number_of(stacks, "length"); i++) {
		reference(stacks, "frame", i, frames);
		/* A prefix stands before what it is the prefix of. */
		if (!json_is_null(cell(stacks, "prefix", i)))
			assert_true(json_integer_value(cell(stacks, "prefix", i)) < (json_int_t)i);
	}
}

/* Returns the weight of all threads. */
static json_int_t check(const json_t *file)
{
	const json_t *threads = member(file, "threads");
	json_int_t weight = 0;

	check_shared(file);
	assert_true(json_number_value(member(member(file, "meta"), "interval")) > 0);
	for (size_t i = 0; i < json_array_size(threads); i++) {
		const json_t *samples = member(json_array_get(threads, i), "samples");
		double last = 0;

		assert_table(samples);
		assert_table(member(json_array_get(threads, i), "markers"));
		for (size_t k = 0; k < (size_t)number_of(samples, "length"); k++) {
			double time_ms = json_number_value(cell(samples, "time", k));

			assert_true(time_ms >= last);
			last = time_ms;
			weight += json_integer_value(cell(samples, "weight", k));
			if (json_is_null(cell(samples, "stack", k)))
				assert_int_equal(json_integer_value(cell(samples, "weight", k)), 0);
			else
				reference(samples, "stack", k, member(member(file, "shared"), "stackTable"));
		}
	}
	return weight;
}

static void assert_sample(const json_t *file, size_t thread, size_t row, double time_ms, const char *leaf)
{
	const json_t *samples = member(json_array_get(member(file, "threads"), thread), "samples");
	const json_t *shared = member(file, "shared"), *stack = cell(samples, "stack", row);
	const json_t *frame, *function;

	assert_true(json_number_value(cell(samples, "time", row)) == time_ms);
	if (!leaf) {
		assert_true(json_is_null(stack));
		return;
	}
	frame = cell(member(shared, "stackTable"), "frame", json_integer_value(stack));
	function = cell(member(shared, "frameTable"), "func", json_integer_value(frame));
	assert_string_equal(string_at(file, cell(member(shared, "funcTable"), "name", json_integer_value(function))),
			    leaf);
}

static void test_timeline(void **unused)
{
	struct profile *p = timeline();
	const json_t *thread, *deltas;
	json_t *file;

	(void)unused;
	assert_int_equal(profile_set_fact(p, PROFILE_FACT_START, "1700000000123456789"), 0);
	/* The last samples may be later. */
	assert_int_equal(profile_set_fact(p, PROFILE_FACT_DURATION, "0.095"), 0);
	file = parsed(p, output_gecko);
	assert_int_equal(check(file), 7);
	assert_int_equal(json_array_size(member(file, "threads")), 2);
	assert_true(json_number_value(member(member(file, "meta"), "interval")) == 10);
	assert_in_range(json_number_value(member(member(file, "meta"), "startTime")), 1700000000123., 1700000000124.);
	assert_true(json_number_value(member(member(file, "meta"), "profilingEndTime")) > 100);
	thread = json_array_get(member(file, "threads"), 0);
	assert_string_equal(text_of(thread, "name"), "python3");
	assert_string_equal(text_of(thread, "processName"), "python3 (42)");
	assert_string_equal(text_of(thread, "pid"), "42");
	assert_int_equal(number_of(thread, "tid"), 42);
	assert_true(json_is_true(member(thread, "isMainThread")));
	assert_false(json_is_true(member(json_array_get(member(file, "threads"), 1), "isMainThread")));
	assert_sample(file, 0, 0, 0, "f");
	assert_sample(file, 0, 2, 20, "g");
	assert_sample(file, 0, 3, 31, "h");
	assert_sample(file, 0, 4, 41, NULL); /* off the CPU */
	assert_sample(file, 0, 5, 100, "f");
	assert_sample(file, 0, 6, 110, NULL);
	assert_sample(file, 1, 0, 5, "w");
	/* CPU time since the row before. */
	deltas = member(member(thread, "samples"), "threadCPUDelta");
	assert_int_equal(json_integer_value(json_array_get(deltas, 3)), 10 * MS);
	assert_int_equal(json_integer_value(json_array_get(deltas, 4)), 10 * MS);
	assert_int_equal(json_integer_value(json_array_get(deltas, 5)), 0);
	json_decref(file);
	profile_free(p);
}

static void test_frames(void **unused)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 42, "python3"), one, two, note;
	const json_t *frames, *functions;
	json_t *file;

	(void)unused;
	one = profile_add_stack(p, PROFILE_ROOT, profile_add_frame(p, PROFILE_PYTHON, "f", "app.py", 5, 3));
	two = profile_add_stack(p, one, profile_add_frame(p, PROFILE_PYTHON, "f", "app.py", 7, 3));
	note = profile_add_frame(p, PROFILE_NOTE, "[incomplete]", "", PROFILE_NO_LINE, PROFILE_NO_LINE);
	take_in(p, two, owner, 3);
	take_in(p, profile_add_stack(p, two, note), owner, 4);
	file = parsed(p, output_gecko);
	assert_int_equal(check(file), 7);
	frames = member(member(file, "shared"), "frameTable");
	functions = member(member(file, "shared"), "funcTable");
	/* Two lines of one function. */
	assert_int_equal(number_of(frames, "length"), 3);
	assert_int_equal(number_of(functions, "length"), 2);
	assert_int_equal(json_integer_value(cell(frames, "line", 1)), 7);
	assert_true(json_is_null(cell(frames, "line", 2)));
	assert_int_equal(json_integer_value(cell(functions, "lineNumber", 0)), 3);
	assert_true(json_is_null(cell(functions, "source", 1)));
	assert_int_not_equal(json_integer_value(cell(frames, "category", 0)),
			     json_integer_value(cell(frames, "category", 2)));
	/* Nothing pretends to know times. */
	assert_sample(file, 0, 0, 0, "f");
	assert_sample(file, 0, 1, 0, "[incomplete]");
	json_decref(file);
	profile_free(p);
}

static void test_empty_and_hostile(void **unused)
{
	struct profile *empty = new_profile(), *bad = hostile();
	json_t *file = parsed(empty, output_gecko);

	(void)unused;
	assert_int_equal(check(file), 0);
	json_decref(file);
	file = parsed(bad, output_gecko);
	assert_int_equal(check(file), profile_total(bad));
	/* Processes of one PID are not one process. */
	for (size_t i = 0; i < json_array_size(member(file, "threads")); i++) {
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(text_of(json_array_get(member(file, "threads"), i), "pid"),
						text_of(json_array_get(member(file, "threads"), k), "pid"));
	}
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
	file = parsed(p, output_gecko);
	check(file);
	frames = member(member(file, "shared"), "frameTable");
	assert_int_equal(json_integer_value(cell(frames, "column", 0)), 5);
	assert_true(json_is_null(cell(frames, "column", 1)));
	json_decref(file);
	profile_free(p);
}

static const char *resource_of(const json_t *file, size_t function)
{
	const json_t *shared = member(file, "shared"), *resources = member(shared, "resourceTable");
	json_int_t resource = json_integer_value(cell(member(shared, "funcTable"), "resource", function));
	const json_t *lib;

	if (resource < 0)
		return "";
	assert_int_equal(json_integer_value(cell(resources, "type", (size_t)resource)), 1);
	lib = json_array_get(member(file, "libs"),
			     (size_t)json_integer_value(cell(resources, "lib", (size_t)resource)));
	assert_string_equal(text_of(lib, "name"), string_at(file, cell(resources, "name", (size_t)resource)));
	return text_of(lib, "name");
}

/* The file of compiled code is a library, and no source. */
static void test_libraries(void **unused)
{
	static const struct {
		const char *library;
		bool source;
	} want[] = {{"", true}, {"libz.so.1", false}, {"libc.so.6", false}, {"libz.so.1", false}, {"", false}};
	struct profile *p = new_profile();
	uint32_t stack = on(p, PROFILE_ROOT, "f", "app.py", 5);
	json_t *file;

	(void)unused;
	stack = on_native(p, on_native(p, stack, "deflate", "libz.so.1"), "memcpy", "libc.so.6");
	stack = on_native(p, on_native(p, stack, "longest_match", "libz.so.1"), "[vdso]", "");
	take_in(p, stack, process(p, 42, "python3"), 3);
	file = parsed(p, output_gecko);
	assert_int_equal(check(file), 3);
	assert_int_equal(json_array_size(member(file, "libs")), 2);
	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
		const json_t *source = cell(member(member(file, "shared"), "funcTable"), "source", i);

		assert_string_equal(resource_of(file, i), want[i].library);
		assert_int_equal(!json_is_null(source), want[i].source);
	}
	json_decref(file);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_libraries), cmocka_unit_test(test_timeline),
		cmocka_unit_test(test_frames),    cmocka_unit_test(test_empty_and_hostile),
		cmocka_unit_test(test_columns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

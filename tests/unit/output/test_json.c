// SPDX-License-Identifier: Apache-2.0
/* JSON in one document and in lines, read by jansson. */
#include <jansson.h>
#include <locale.h>
#include <time.h>

#include "profiles_hostile.h"

static json_t *parse(const char *text)
{
	json_error_t error;
	json_t *value = json_loads(text, JSON_REJECT_DUPLICATES, &error);

	if (!value)
		fail_msg("%s at %d:%d", error.text, error.line, error.column);
	return value;
}

static json_t *document(const struct profile *p)
{
	char *text = written(p, output_json);
	json_t *value = parse(text);

	free(text);
	return value;
}

/* Each line is a value of its own; caller releases the array. */
static json_t *lines(const struct profile *p)
{
	char *text = written(p, output_jsonl), *save = NULL;
	json_t *all = json_array();

	assert_int_equal(text[strlen(text) - 1], '\n');
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		json_array_append_new(all, parse(line));
	free(text);
	return all;
}

static void assert_text(json_t *object, const char *key, const char *want)
{
	json_t *value = json_object_get(object, key);

	assert_non_null(value);
	if (want)
		assert_string_equal(json_string_value(value), want);
	else
		assert_true(json_is_null(value));
}

static void assert_number(json_t *object, const char *key, long long want)
{
	json_t *value = json_object_get(object, key);

	assert_true(json_is_integer(value));
	assert_true(json_integer_value(value) == want);
}

static json_t *at(json_t *document, const char *table, size_t index)
{
	json_t *row = json_array_get(json_object_get(document, table), index);

	assert_non_null(row);
	return row;
}

/* Two processes, one in a container and with threads, one without; a note below one stack; times out of order. */
static struct profile *sample_profile(void)
{
	struct profile *p = new_profile();
	struct profile_process_info info = {.pid = 42,
					    .inner_pid = 7,
					    .name = "web",
					    .container = "box",
					    .service = "shop",
					    .attributes = "service.version=1.4\ncontainer.id=4f79\n"};
	uint32_t owner = profile_add_process(p, &info), merged = process(p, 0, "jobs");
	uint32_t worker = profile_add_thread(p, owner, 43, "worker");
	uint32_t note = profile_add_frame(p, PROFILE_NOTE, "[incomplete]", "", PROFILE_NO_LINE, PROFILE_NO_LINE);
	uint32_t root = profile_add_stack(p, PROFILE_ROOT, note);
	uint32_t f = profile_add_stack(p, root, profile_add_frame(p, PROFILE_PYTHON, "f", "app.py", 5, 3));
	uint32_t sample;

	assert_int_equal(profile_add_sample(p, PROFILE_ROOT, owner, worker, 100), 0);
	assert_int_equal(profile_add_sample(p, f, owner, worker, 3), 0);
	assert_int_equal(profile_add_sample(p, root, merged, PROFILE_NONE, 1), 0);
	sample = profile_find_sample(p, f, owner, worker);
	assert_int_equal(profile_add_event(p, 3000, sample, 2), 0);
	assert_int_equal(profile_add_event(p, 1000, sample, 1), 0);
	assert_int_equal(profile_add_event(p, 2000, profile_find_sample(p, root, merged, PROFILE_NONE), 1), 0);
	assert_int_equal(profile_add_event(p, 500, profile_find_sample(p, PROFILE_ROOT, owner, worker), 100), 0);
	profile_sort_events(p);
	assert_int_equal(profile_set_measure(p, &(struct profile_measure){"samples", "count", 10101010}), 0);
	assert_int_equal(profile_set_fact(p, PROFILE_FACT_HOST, "here"), 0);
	assert_int_equal(profile_set_fact(p, PROFILE_FACT_START, "1795755720123999999"), 0);
	assert_int_equal(profile_set_fact(p, PROFILE_FACT_DURATION, "61.250"), 0);
	assert_int_equal(profile_add_account(p, "lost", "full", "without room", 3), 0);
	return p;
}

static void assert_head(json_t *head)
{
	json_t *account = at(head, "account", 0), *measure = json_object_get(head, "measure");

	assert_text(head, "format", "pybpf");
	assert_number(head, "version", 1);
	assert_text(measure, "name", "samples");
	assert_text(measure, "unit", "count");
	assert_number(measure, "period_ns", 10101010);
	assert_text(json_object_get(head, "facts"), "host", "here");
	assert_text(account, "group", "lost");
	assert_text(account, "key", "full");
	assert_text(account, "text", "without room");
	assert_number(account, "value", 3);
}

static void assert_f(json_t *frame)
{
	assert_text(frame, "kind", "python");
	assert_text(frame, "name", "f");
	assert_text(frame, "file", "app.py");
	assert_number(frame, "line", 5);
	assert_number(frame, "first_line", 3);
}

static void assert_note(json_t *frame)
{
	assert_text(frame, "kind", "note");
	assert_text(frame, "name", "[incomplete]");
	assert_text(frame, "file", NULL);
	assert_text(frame, "line", NULL);
	assert_text(frame, "first_line", NULL);
}

static void test_document(void **unused)
{
	struct profile *p = sample_profile();
	json_t *got = document(p), *sample, *stack, *events = json_object_get(got, "events");

	(void)unused;
	assert_head(got);
	sample = at(got, "samples", 0);
	assert_int_equal(json_array_size(json_object_get(got, "samples")), 2);
	assert_number(sample, "value", 3);
	assert_text(at(got, "processes", 0), "name", "web");
	assert_number(at(got, "processes", 0), "pid", 42);
	assert_number(at(got, "processes", 0), "inner_pid", 7);
	assert_text(at(got, "processes", 0), "container", "box");
	assert_text(at(got, "processes", 1), "pid", NULL);
	assert_text(at(got, "processes", 1), "inner_pid", NULL);
	assert_text(at(got, "processes", 1), "container", NULL);
	assert_number(sample, "process", 0);
	assert_number(sample, "thread", 0);
	assert_number(at(got, "threads", 0), "tid", 43);
	assert_number(at(got, "threads", 0), "process", 0);
	assert_text(at(got, "threads", 0), "name", "worker");
	stack = at(got, "stacks", (size_t)json_integer_value(json_object_get(sample, "stack")));
	assert_f(at(got, "frames", (size_t)json_integer_value(json_object_get(stack, "frame"))));
	stack = at(got, "stacks", (size_t)json_integer_value(json_object_get(stack, "parent")));
	assert_note(at(got, "frames", (size_t)json_integer_value(json_object_get(stack, "frame"))));
	assert_text(stack, "parent", NULL);
	assert_number(at(got, "samples", 1), "value", 1);
	assert_text(at(got, "samples", 1), "thread", NULL);

	/* [time, sample, value], of samples that are there. */
	assert_int_equal(json_array_size(events), 3);
	for (size_t i = 0; i < 3; i++) {
		static const int want[3][3] = {{1000, 0, 1}, {2000, 1, 1}, {3000, 0, 2}};

		for (size_t j = 0; j < 3; j++)
			assert_int_equal(json_integer_value(json_array_get(json_array_get(events, i), j)), want[i][j]);
	}
	json_decref(got);
	profile_free(p);
}

/* Any line has its profile's time, in UTC. */
static void assert_span(json_t *line)
{
	assert_text(line, "begin_utc", "2026-11-27T05:02:00.123Z");
	assert_text(line, "end_utc", "2026-11-27T05:03:01.373Z");
}

static void test_lines(void **unused)
{
	struct profile *p = sample_profile();
	json_t *all = lines(p), *sample = json_array_get(all, 1), *events;

	(void)unused;
	assert_int_equal(json_array_size(all), 3);
	assert_text(json_array_get(all, 0), "type", "profile");
	assert_head(json_array_get(all, 0));
	assert_span(json_array_get(all, 0));
	assert_text(sample, "type", "sample");
	assert_span(sample);
	assert_text(sample, "host", "here");
	assert_text(sample, "measured", "samples");
	assert_text(sample, "state", NULL);
	assert_number(sample, "value", 3);
	assert_number(sample, "time_ns", 30303030);
	assert_number(json_object_get(sample, "process"), "pid", 42);
	assert_text(json_object_get(sample, "process"), "container", "box");
	assert_text(json_object_get(sample, "process"), "service", "shop");
	assert_text(json_object_get(sample, "process"), "version", "1.4");
	assert_text(json_object_get(sample, "process"), "container_id", "4f79");
	assert_text(json_object_get(sample, "process"), "namespace", NULL);
	assert_number(json_object_get(sample, "thread"), "tid", 43);
	assert_text(json_object_get(sample, "thread"), "name", "worker");
	assert_int_equal(json_array_size(json_object_get(sample, "stack")), 2);
	assert_note(at(sample, "stack", 0));
	assert_f(at(sample, "stack", 1));
	events = json_object_get(sample, "events");
	assert_int_equal(json_array_size(events), 2);
	assert_int_equal(json_integer_value(json_array_get(json_array_get(events, 0), 0)), 1000);
	assert_int_equal(json_integer_value(json_array_get(json_array_get(events, 1), 0)), 3000);
	assert_int_equal(json_integer_value(json_array_get(json_array_get(events, 1), 1)), 2);
	sample = json_array_get(all, 2);
	assert_text(sample, "thread", NULL);
	events = json_object_get(sample, "events");
	assert_int_equal(json_array_size(events), 1);
	assert_int_equal(json_integer_value(json_array_get(json_array_get(events, 0), 0)), 2000);
	json_decref(all);
	profile_free(p);
}

/* Dates are those of gmtime(3), also around leap days and the ends of centuries. */
static void test_dates(void **unused)
{
	static const char *const more[] = {"951782399", "951782400", "951868799", "951868800", "4107542400"};

	(void)unused;
	for (unsigned i = 0; i < 1000; i++) {
		struct profile *p = new_profile();
		const uint64_t seconds = i < 5 ? strtoull(more[i], NULL, 10) : i * UINT64_C(86399) * 37;
		const time_t moment = (time_t)seconds;
		char start[32], want[32], text[64];
		json_t *all;

		snprintf(start, sizeof(start), "%llu", (unsigned long long)seconds * 1000000000);
		assert_int_equal(profile_set_fact(p, PROFILE_FACT_START, start), 0);
		strftime(want, sizeof(want), "%Y-%m-%dT%H:%M:%S", gmtime(&moment));
		snprintf(text, sizeof(text), "%s.000Z", want);
		all = lines(p);
		assert_text(json_array_get(all, 0), "begin_utc", text);
		json_decref(all);
		profile_free(p);
	}
}

/* Time of threads is in nanoseconds; a wait has the state of its leaf. */
static void test_lines_of_waits(void **unused)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 42, "python3"), f = on(p, PROFILE_ROOT, "f", "app.py", 3);
	uint32_t wait = profile_add_wait(p, "network", "[network]", 0);
	json_t *all;

	(void)unused;
	assert_int_equal(profile_set_measure(p, &(struct profile_measure){"wall", PROFILE_UNIT_TIME, 0}), 0);
	assert_int_equal(profile_add_time(p, profile_add_stack(p, f, wait), owner, PROFILE_NONE, 2500, 2), 0);
	assert_int_equal(profile_add_time(p, f, owner, PROFILE_NONE, 1, 1), 0);
	all = lines(p);
	assert_text(json_array_get(all, 1), "state", "network");
	assert_number(json_array_get(all, 1), "time_ns", 2500000);
	assert_text(json_array_get(all, 2), "state", NULL);
	assert_number(json_array_get(all, 2), "time_ns", 1000);
	assert_text(json_array_get(all, 2), "begin_utc", NULL);
	assert_text(json_array_get(all, 2), "end_utc", NULL);
	assert_text(json_array_get(all, 2), "host", NULL);
	json_decref(all);
	profile_free(p);
}

static void test_empty(void **unused)
{
	struct profile *p = new_profile();
	json_t *got = document(p), *all = lines(p);

	(void)unused;
	assert_int_equal(json_array_size(json_object_get(got, "samples")), 0);
	assert_int_equal(json_array_size(json_object_get(got, "stacks")), 0);
	assert_null(json_object_get(got, "events"));
	assert_text(json_object_get(got, "measure"), "period_ns", NULL);
	assert_int_equal(json_array_size(all), 1);
	json_decref(got);
	json_decref(all);
	profile_free(p);
}

static void test_hostile_names(void **unused)
{
	struct profile *p = hostile_profile();
	char *text = written(p, output_json), *by_line = written(p, output_jsonl);
	json_int_t total = 0;
	size_t nr_lines = 0;
	json_t *got;

	(void)unused;
	/* Facts are the one place where names are keys: two that differ only in what is no UTF-8 become one. */
	got = json_loads(text, 0, NULL);
	assert_non_null(got);
	for (const char *c = text; *c; c++)
		assert_true(*c != '<' && *c != '>' && *c != '&' && (*c == '\n' || (unsigned char)*c >= 0x20));
	assert_null(strstr(text, "\xe2\x80"));
	assert_null(strstr(text, "\xc2\x85"));
	assert_int_equal(json_array_size(json_object_get(got, "samples")), NR_HOSTILE + 1);
	for (size_t i = 0; i <= NR_HOSTILE; i++)
		total += json_integer_value(json_object_get(at(got, "samples", i), "value"));
	assert_int_equal(total, (1 << (NR_HOSTILE + 1)) - 1);
	for (size_t i = 0; i < NR_HOSTILE; i++) {
		if (mbstowcs(NULL, hostile_names[i], 0) != (size_t)-1)
			assert_text(at(got, "frames", i), "name", hostile_names[i]);
	}
	json_decref(got);
	free(text);

	for (char *save = NULL, *line = strtok_r(by_line, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		got = json_loads(line, 0, NULL);
		assert_non_null(got);
		json_decref(got);
		nr_lines++;
	}
	assert_int_equal(nr_lines, NR_HOSTILE + 2);
	free(by_line);
	profile_free(p);
}

/* As CPython has them: from 0, the end behind the last byte; of a frame without columns none. */
static void test_columns(void **unused)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 42, "python3");
	json_t *made, *frame;

	(void)unused;
	take_in(p, on_expression(p, PROFILE_ROOT, "f", (struct profile_place){3, 1, 3, 4, 9}), owner, 5);
	take_in(p, on(p, PROFILE_ROOT, "f", "app.py", 3), owner, 6);
	made = document(p);
	frame = at(made, "frames", 0);
	assert_number(frame, "end_line", 3);
	assert_number(frame, "column", 4);
	assert_number(frame, "end_column", 9);
	assert_null(json_object_get(at(made, "frames", 1), "column"));
	json_decref(made);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_document), cmocka_unit_test(test_lines), cmocka_unit_test(test_lines_of_waits),
		cmocka_unit_test(test_dates),    cmocka_unit_test(test_empty), cmocka_unit_test(test_hostile_names),
		cmocka_unit_test(test_columns),
	};

	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

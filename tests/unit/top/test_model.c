// SPDX-License-Identifier: Apache-2.0
/* What intervals of a made profile become in the tables of top, and what a screen of them shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/text.h"
#include "top/model.h"
#include "top/view.h"

/* A profile whose process 7 has spent `self` samples in leaf(), called by main(), and `other` in main() itself. */
static struct profile *make(uint64_t self, uint64_t other, const char *leaf)
{
	struct profile *p = profile_new();
	const struct profile_process_info info = {.pid = 7, .name = "app", .container = "web"};
	uint32_t main_frame = profile_add_frame(p, PROFILE_PYTHON, "main", "app.py", 10, 1);
	uint32_t leaf_frame = profile_add_frame(p, PROFILE_PYTHON, leaf, "app.py", 20, 18);
	uint32_t process = profile_add_process(p, &info), thread = profile_add_thread(p, process, 8, "worker");
	uint32_t outer = profile_add_stack(p, PROFILE_ROOT, main_frame);
	/* leaf() calls itself: its total counts a sample once. */
	uint32_t inner = profile_add_stack(p, profile_add_stack(p, outer, leaf_frame), leaf_frame);

	if (self)
		assert_int_equal(profile_add_sample(p, inner, process, thread, self), 0);
	if (other)
		assert_int_equal(profile_add_sample(p, outer, process, thread, other), 0);
	return p;
}

static void interval(struct top_model *m, uint64_t self, uint64_t other, const char *leaf)
{
	const struct top_states states = {.ns = {[PYBPF_STATE_RUNNING] = 600000000,
						 [PYBPF_STATE_QUEUED] = 100000000,
						 [PYBPF_STATE_GIL] = 300000000}};
	struct profile *p = make(self, other, leaf);

	assert_int_equal(top_model_begin(m, 1), 0);
	top_model_count(m, self + other + 2, 2);
	assert_int_equal(top_model_add(m, p), 0);
	assert_int_equal(top_model_add_thread(m, 7, 8, "comm", &states), 0);
	assert_int_equal(top_model_end(m), 0);
	profile_free(p);
}

static const struct top_row *first(const struct top_model *m, enum top_table table, enum top_order order, size_t *count)
{
	const struct top_row **rows = top_model_rows(m, table, order, NULL, count), *row;

	assert_non_null(rows);
	assert_true(*count > 0);
	row = rows[0];
	free(rows);
	return row;
}

static void test_sums(void **unused)
{
	struct top_model *m = top_model_new();
	const struct top_row *row;
	size_t count;
	(void)unused;

	interval(m, 30, 10, "leaf");
	interval(m, 5, 1, "leaf");
	row = first(m, TOP_FUNCTIONS, TOP_BY_SELF, &count);
	assert_int_equal(count, 2);
	assert_string_equal(top_model_string(m, row->key.name), "leaf");
	assert_int_equal(row->self, 5);
	assert_int_equal(row->total, 5);
	assert_int_equal(row->all_self, 35);
	assert_int_equal(row->all_total, 35);
	row = first(m, TOP_FUNCTIONS, TOP_BY_ALL_TOTAL, &count);
	assert_string_equal(top_model_string(m, row->key.name), "main");
	assert_int_equal(row->all_self, 11);
	assert_int_equal(row->all_total, 46);
	row = first(m, TOP_THREADS, TOP_BY_SELF, &count);
	assert_string_equal(top_model_string(m, row->title), "worker");
	assert_int_equal(row->total, 6);
	assert_int_equal(row->states.ns[PYBPF_STATE_RUNNING], 600000000);
	assert_int_equal(row->strip[TOP_STRIP - 1], '#');
	row = first(m, TOP_CONTAINERS, TOP_BY_SELF, &count);
	assert_string_equal(top_model_string(m, row->title), "web");
	assert_int_equal(row->all_total, 46);
	assert_int_equal(top_model_last(m)->samples, 6);
	assert_int_equal(top_model_all(m)->samples, 46);
	assert_int_equal(top_model_all(m)->lost, 4);
	top_model_free(m);
}

/* Asserts that a line of the view has that text. */
static void assert_shown(const struct top_model *m, const struct top_facts *facts, struct top_choice *choice,
			 size_t line, const char *text)
{
	struct top_view view;

	assert_int_equal(top_view_draw(m, facts, choice, 80, 24, &view), 0);
	assert_non_null(strstr(view.lines[line].text, text));
	top_view_free(&view);
}

/* work(), line 5: a(u(), c()), u with an umlaut; it calls itself in both arguments. */
static struct profile *make_expressions(void)
{
	struct profile *p = profile_new();
	uint32_t process = profile_add_process(p, &(struct profile_process_info){.pid = 7, .name = "app"});
	const struct profile_place places[] = {
		{.line = 5, .first_line = 4, .end_line = 5, .column = 3, .end_column = 7},
		{.line = 5, .first_line = 4, .end_line = 5, .column = 9, .end_column = 12},
	};
	uint32_t one = profile_add_python(p, "work", "app.py", &places[0]);
	uint32_t other = profile_add_python(p, "work", "app.py", &places[1]);
	uint32_t outer = profile_add_stack(p, PROFILE_ROOT, one);

	assert_int_equal(profile_add_sample(p, profile_add_stack(p, outer, other), process, PROFILE_NONE, 30), 0);
	assert_int_equal(profile_add_sample(p, outer, process, PROFILE_NONE, 10), 0);
	return p;
}

static void test_expressions(void **unused)
{
	struct top_model *m = top_model_new(), *without = top_model_new();
	struct profile *p = make_expressions();
	const struct top_facts facts = {
		.target = "process 7", .freq = 10, .all = p, .source = "\n\n\n\n\ta(\xc3\xbc(), c())\n"};
	struct top_choice choice = {.table = TOP_EXPRESSIONS};
	const struct top_row *row;
	struct top_view view;
	size_t count;
	(void)unused;

	top_model_want_expressions(m);
	assert_int_equal(top_model_begin(m, 1) | top_model_begin(without, 1), 0);
	assert_int_equal(top_model_add(m, p) | top_model_add(without, p), 0);
	row = first(m, TOP_EXPRESSIONS, TOP_BY_SELF, &count);
	assert_int_equal(count, 2);
	assert_int_equal(row->key.place.column, 9);
	assert_int_equal(row->all_self, 30);
	row = first(m, TOP_LINES, TOP_BY_SELF, &count);
	assert_int_equal(count, 1);
	assert_int_equal(row->all_total, 40);
	free(top_model_rows(without, TOP_EXPRESSIONS, TOP_BY_SELF, NULL, &count));
	assert_int_equal(count, 0);
	assert_shown(m, &facts, &choice, 4, "work (app.py:5:10-12)");
	assert_true(top_view_choose(m, &choice));
	choice.page = TOP_PAGE_STACKS;
	assert_shown(m, &facts, &choice, 3, "with 5:10-12 in work");
	assert_shown(m, &facts, &choice, 4, "3.00 s, 100.0 %");
	assert_shown(m, &facts, &choice, 6, "work (app.py:5:10-12)");
	choice.page = TOP_PAGE_SOURCE;
	assert_int_equal(top_view_draw(m, &facts, &choice, 80, 24, &view), 0);
	/* 4.00 s: a sample with both expressions is one of the line. */
	assert_string_equal(view.lines[8].text, "     4.00      4.00 ########     5          a(\xc3\xbc(), c())");
	assert_int_equal(view.lines[8].nr_spans, 1);
	assert_int_equal(view.lines[8].spans[0].from, 36 + 15);
	assert_int_equal(view.lines[8].spans[0].columns, 3);
	top_view_free(&view);
	profile_free(p);
	top_model_free(without);
	top_model_free(m);
}

/* Rows with equal shares keep their order, whichever was met first, and had more before. */
static void test_equal_rows_are_sorted_by_name(void **unused)
{
	static const char *const names[] = {"worker-10", "worker-2", "worker-1", "main"};
	struct top_model *m = top_model_new();
	const struct top_row **rows;
	size_t count;
	(void)unused;

	for (uint64_t turn = 0; turn < 4; turn++) {
		struct profile *p = profile_new();
		uint32_t process = profile_add_process(p, &(struct profile_process_info){.pid = 7, .name = "app"});

		for (size_t i = 0; i < 4; i++) {
			uint32_t frame = profile_add_frame(p, PROFILE_PYTHON, names[i], "app.py", 10, 1);

			/* In the last turn all have 1; before, first one and then another has more. */
			assert_int_equal(profile_add_sample(p, profile_add_stack(p, PROFILE_ROOT, frame), process,
							    PROFILE_NONE, turn == i && turn < 3 ? 9 - turn : 1),
					 0);
		}
		assert_int_equal(top_model_begin(m, 1), 0);
		assert_int_equal(top_model_add(m, p), 0);
		profile_free(p);
	}
	rows = top_model_rows(m, TOP_FUNCTIONS, TOP_BY_SELF, NULL, &count);
	assert_int_equal(count, 4);
	assert_string_equal(top_model_string(m, rows[0]->title), "main");
	assert_string_equal(top_model_string(m, rows[1]->title), "worker-1");
	assert_string_equal(top_model_string(m, rows[2]->title), "worker-2");
	assert_string_equal(top_model_string(m, rows[3]->title), "worker-10");
	free(rows);
	top_model_free(m);
}

/* A thread that ended within an interval, and had samples in it: what it waited for before is not told anew. */
static void test_states_are_of_the_interval(void **unused)
{
	struct top_model *m = top_model_new();
	struct profile *p = make(3, 0, "leaf");
	const struct top_row *row;
	size_t count;
	(void)unused;

	interval(m, 30, 10, "leaf");
	assert_int_equal(top_model_begin(m, 1), 0);
	assert_int_equal(top_model_add(m, p), 0);
	assert_int_equal(top_model_end(m), 0);
	row = first(m, TOP_THREADS, TOP_BY_SELF, &count);
	assert_int_equal(row->total, 3);
	assert_int_equal(top_states_sum(&row->states), 0);
	profile_free(p);
	top_model_free(m);
}

/* Threads that are counted when they end are in the sums of the interval, and in those since the start. */
static void test_ended_threads(void **unused)
{
	const struct top_states states = {.ns = {[PYBPF_STATE_GIL] = 5}};
	struct top_model *m = top_model_new();
	(void)unused;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(top_model_begin(m, 1), 0);
		assert_int_equal(top_model_add_ended(m, &states), 0);
		assert_int_equal(top_model_end(m), 0);
	}
	assert_int_equal(top_model_last(m)->states.ns[PYBPF_STATE_GIL], 5);
	assert_int_equal(top_model_all(m)->states.ns[PYBPF_STATE_GIL], 10);
	top_model_free(m);
}

/* However many threads there were: one that lives is kept, though it sleeps all the time. */
static void test_sleepers_are_kept(void **unused)
{
	const struct top_states asleep = {.ns = {[TOP_ASLEEP] = 1}};
	struct top_model *m = top_model_new();
	const struct top_row **rows;
	size_t count;
	(void)unused;

	for (int32_t round = 0; round < 3; round++) {
		assert_int_equal(top_model_begin(m, 1), 0);
		assert_int_equal(top_model_add_thread(m, 1, 1, "sleeper", &asleep), 0);
		for (int32_t i = 0; i < TOP_ROWS_MAX; i++)
			assert_int_equal(top_model_add_thread(m, 1, 2 + round * TOP_ROWS_MAX + i, "brief", &asleep), 0);
		assert_int_equal(top_model_end(m), 0);
		rows = top_model_rows(m, TOP_THREADS, TOP_BY_SELF, "sleeper", &count);
		assert_int_equal(count, 1);
		free(rows);
	}
	assert_true(top_model_forgotten(m, TOP_THREADS) > 0);
	top_model_free(m);
}

/* The mark of a strip: of the state with the most time, but of sleepers that ran a tenth of it. */
static void test_marks(void **unused)
{
	static const struct {
		char mark;
		struct top_states states;
	} rows[] = {
		{'#', {{[PYBPF_STATE_RUNNING] = 5, [PYBPF_STATE_GIL] = 4}}},
		{'G', {{[PYBPF_STATE_RUNNING] = 4, [PYBPF_STATE_GIL] = 5}}},
		{'!', {{[PYBPF_STATE_QUEUED] = 4, [PYBPF_STATE_LOCK] = 3, [PYBPF_STATE_RUNNING] = 3}}},
		{'N', {{[PYBPF_STATE_NETWORK] = 100, [PYBPF_STATE_RUNNING] = 9}}},
		{'+', {{[PYBPF_STATE_NETWORK] = 90, [PYBPF_STATE_RUNNING] = 10}}},
		{'+', {{[TOP_ASLEEP] = 90, [PYBPF_STATE_QUEUED] = 10}}},
		{'L', {{[PYBPF_STATE_LOCK] = 60, [PYBPF_STATE_RUNNING] = 40}}},
		{'z', {{[PYBPF_STATE_SLEEP] = 1}}},
		{'.', {{[TOP_ASLEEP] = 1}}},
	};
	(void)unused;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct top_model *m = top_model_new();
		size_t count;

		assert_int_equal(top_model_begin(m, 1), 0);
		assert_int_equal(top_model_add_thread(m, 1, 1, "one", &rows[i].states), 0);
		assert_int_equal(top_model_end(m), 0);
		assert_int_equal(first(m, TOP_THREADS, TOP_BY_SELF, &count)->strip[TOP_STRIP - 1], rows[i].mark);
		top_model_free(m);
	}
}

static void test_filter(void **unused)
{
	struct top_model *m = top_model_new();
	const struct top_row **rows;
	size_t count;
	(void)unused;

	interval(m, 3, 3, "leaf");
	rows = top_model_rows(m, TOP_FUNCTIONS, TOP_BY_SELF, "LEA", &count);
	assert_int_equal(count, 1);
	free(rows);
	rows = top_model_rows(m, TOP_FUNCTIONS, TOP_BY_SELF, "app.py", &count);
	assert_int_equal(count, 2);
	free(rows);
	rows = top_model_rows(m, TOP_THREADS, TOP_BY_SELF, "Web", &count);
	assert_int_equal(count, 1);
	free(rows);
	rows = top_model_rows(m, TOP_FUNCTIONS, TOP_BY_SELF, "absent", &count);
	assert_int_equal(count, 0);
	free(rows);
	top_model_free(m);
}

/* dump of a library, called by the program's main, and by five others less often. */
static void test_libraries_have_their_own_callers(void **unused)
{
	const struct top_facts facts = {.target = "", .freq = 99};
	struct top_choice choice = {.table = TOP_FUNCTIONS};
	struct top_model *m = top_model_new();
	struct profile *p = profile_new();
	uint32_t owner = profile_add_process(p, &(struct profile_process_info){.pid = 7, .name = "app"});
	const struct top_row *row;
	struct top_view view;
	size_t count;
	(void)unused;

	assert_int_equal(profile_set_origin(p, "json.py", PROFILE_STDLIB), 0);
	for (int i = 0; i < 6; i++) {
		const char *names[] = {"one", "two", "three", "four", "main", "five"};
		uint32_t own = profile_add_frame(p, PROFILE_PYTHON, names[i], "app.py", 10 + i, i);
		uint32_t dump = profile_add_frame(p, PROFILE_PYTHON, "dump", "json.py", 5, 5);
		uint32_t stack = profile_add_stack(p, profile_add_stack(p, PROFILE_ROOT, own), dump);

		assert_int_equal(profile_add_sample(p, stack, owner, PROFILE_NONE, i == 4 ? 9 : 2), 0);
	}
	assert_int_equal(top_model_begin(m, 1), 0);
	assert_int_equal(top_model_add(m, p), 0);
	assert_int_equal(top_model_end(m), 0);
	row = first(m, TOP_FUNCTIONS, TOP_BY_SELF, &count);
	assert_string_equal(top_model_string(m, row->title), "dump");
	assert_string_equal(top_model_string(m, top_model_caller(row)->name), "main");
	row = first(m, TOP_LINES, TOP_BY_SELF, &count);
	assert_string_equal(top_model_string(m, top_model_caller(row)->file), "app.py");
	first(m, TOP_FUNCTIONS, TOP_BY_TOTAL, &count);
	assert_int_equal(count, 7);
	assert_int_equal(top_view_draw(m, &facts, &choice, 100, 24, &view), 0);
	assert_non_null(strstr(view.lines[4].text, " dump (json.py:5), from main (app.py)"));
	assert_non_null(strstr(view.lines[5].text, " main (app.py:4)"));
	assert_null(strstr(view.lines[5].text, "from"));
	top_view_free(&view);
	assert_int_equal(top_view_draw(m, &facts, &choice, 65, 24, &view), 0);
	assert_non_null(strstr(view.lines[4].text, " dump (json.py:5), from main"));
	assert_null(strstr(view.lines[4].text, "app.py"));
	top_view_free(&view);
	profile_free(p);
	top_model_free(m);
}

/* Threads of several processes have the name of theirs, or its PID alone while it has no sample. */
static void test_threads_name_their_process(void **unused)
{
	static const struct {
		bool one;
		const char *named, *unnamed;
	} cases[] = {{false, "worker 8 of app 7", "sleeper 10 of process 9"}, {true, "worker 8", "sleeper 10"}};
	const struct top_states asleep = {.ns = {[TOP_ASLEEP] = 1}};
	struct top_model *m = top_model_new();
	const struct top_row **rows;
	size_t count;
	(void)unused;

	interval(m, 3, 3, "leaf");
	assert_int_equal(top_model_add_thread(m, 9, 10, "sleeper", &asleep), 0);
	assert_int_equal(top_model_add_thread(m, 9, 9, "first", &asleep), 0);
	for (size_t i = 0; i < 2; i++) {
		const struct top_facts facts = {.target = "", .freq = 99, .one_process = cases[i].one};
		struct top_choice choice = {.table = TOP_THREADS};
		struct top_view view;
		const char *line;

		assert_int_equal(top_view_draw(m, &facts, &choice, 100, 24, &view), 0);
		line = view.lines[4].text;
		assert_string_equal(line + strlen(line) - strlen(cases[i].named), cases[i].named);
		line = view.lines[5].text;
		assert_string_equal(line + strlen(line) - strlen(" first 9"), " first 9");
		line = view.lines[6].text;
		assert_string_equal(line + strlen(line) - strlen(cases[i].unnamed), cases[i].unnamed);
		top_view_free(&view);
	}
	rows = top_model_rows(m, TOP_THREADS, TOP_BY_SELF, "app", &count);
	assert_int_equal(count, 1);
	free(rows);
	top_model_free(m);
}

/* 50 after 50 is chance, and so is 60; 200 is not. */
static void test_change(void **unused)
{
	static const struct {
		uint64_t before, now;
		int change;
	} cases[] = {{50, 50, 0},   {50, 60, 0}, {50, 80, 0}, {50, 200, 1},
		     {200, 50, -1}, {0, 9, 0},   {0, 30, 1},  {30, 0, -1}};
	(void)unused;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct top_model *m = top_model_new();
		size_t count;

		interval(m, cases[i].before, 0, "leaf");
		interval(m, cases[i].now, 0, "leaf");
		assert_int_equal(top_model_change(m, first(m, TOP_FUNCTIONS, TOP_BY_ALL_SELF, &count)),
				 cases[i].change);
		top_model_free(m);
	}
}

/* As many samples a second in an interval that was four times as long are no change. */
static void test_change_in_a_longer_interval(void **unused)
{
	static const struct {
		uint64_t before, now;
		int change;
	} cases[] = {{50, 200, 0}, {50, 50, -1}, {50, 400, 1}};
	(void)unused;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct top_model *m = top_model_new();
		struct profile *p = make(cases[i].now, 0, "leaf");
		size_t count;

		interval(m, cases[i].before, 0, "leaf");
		assert_int_equal(top_model_begin(m, 4), 0);
		assert_int_equal(top_model_add(m, p), 0);
		assert_int_equal(top_model_end(m), 0);
		assert_int_equal(top_model_change(m, first(m, TOP_FUNCTIONS, TOP_BY_ALL_SELF, &count)),
				 cases[i].change);
		profile_free(p);
		top_model_free(m);
	}
}

/* Samples of `count` functions that no other interval has. */
static void interval_of_many(struct top_model *m, unsigned from, unsigned count)
{
	struct profile *p = make(0, 5, "leaf");
	const struct profile_process_info info = {.pid = 7, .name = "app", .container = "web"};
	uint32_t process = profile_add_process(p, &info);

	for (unsigned i = from; i < from + count; i++) {
		char name[32];
		uint32_t frame;

		snprintf(name, sizeof(name), "made_%u", i);
		frame = profile_add_frame(p, PROFILE_PYTHON, name, "made.py", 1, 1);
		profile_add_sample(p, profile_add_stack(p, PROFILE_ROOT, frame), process, PROFILE_NONE, 1);
	}
	assert_int_equal(top_model_begin(m, 1), 0);
	assert_int_equal(top_model_add(m, p), 0);
	assert_int_equal(top_model_end(m), 0);
	profile_free(p);
}

/* Ever new functions: the hot one is kept, and cold ones are forgotten and counted. */
static void test_rows_are_bounded(void **unused)
{
	const unsigned count = TOP_ROWS_MAX / 4, intervals = 20;
	struct top_model *m = top_model_new();
	size_t rows;
	(void)unused;

	for (unsigned i = 0; i < intervals; i++) {
		interval_of_many(m, i * count, count);
		first(m, TOP_FUNCTIONS, TOP_BY_SELF, &rows);
		assert_true(rows <= TOP_ROWS_MAX);
		assert_int_equal(rows + top_model_forgotten(m, TOP_FUNCTIONS), (i + 1) * count + 1);
	}
	assert_true(top_model_forgotten(m, TOP_FUNCTIONS) > 0);
	assert_string_equal(top_model_string(m, first(m, TOP_FUNCTIONS, TOP_BY_ALL_TOTAL, &rows)->key.name), "main");
	assert_int_equal(first(m, TOP_FUNCTIONS, TOP_BY_ALL_TOTAL, &rows)->all_total, 5 * intervals);
	assert_int_equal(top_model_all(m)->samples, (5 + count) * intervals);
	top_model_free(m);
}

/* Those that had more samples are kept, wherever they are among the cold ones. */
static void test_the_coldest_are_forgotten(void **unused)
{
	const unsigned count = TOP_ROWS_MAX / 4, intervals = 8;
	struct top_model *m = top_model_new();
	const struct top_row **rows;
	size_t found;
	(void)unused;

	for (unsigned i = 0; i < intervals; i++) {
		char name[32];
		struct profile *p;

		snprintf(name, sizeof(name), "warm_%u", i);
		p = make(100, 0, name);
		interval_of_many(m, i * count, count);
		assert_int_equal(top_model_begin(m, 1), 0);
		assert_int_equal(top_model_add(m, p), 0);
		assert_int_equal(top_model_end(m), 0);
		profile_free(p);
	}
	assert_true(top_model_forgotten(m, TOP_FUNCTIONS) > 0);
	rows = top_model_rows(m, TOP_FUNCTIONS, TOP_BY_ALL_SELF, "warm_", &found);
	assert_int_equal(found, intervals);
	free(rows);
	top_model_free(m);
}

/* After too many names all begins anew: a page of a row that was forgotten gives way to the table. */
static void test_pages_of_forgotten_rows(void **unused)
{
	const unsigned count = TOP_ROWS_MAX / 4;
	unsigned intervals = 1;
	struct top_model *m = top_model_new();
	struct profile *all = make(3, 4, "leaf");
	const struct top_facts facts = {.target = "process 7", .freq = 99, .all = all};
	struct top_choice stacks = {.cursor = 4000}, source;
	struct top_view view;
	struct top_sums one;
	(void)unused;

	interval_of_many(m, 0, count);
	one = *top_model_last(m);
	assert_true(one.samples > 0);
	assert_true(top_view_choose(m, &stacks));
	source = stacks;
	stacks.page = TOP_PAGE_STACKS;
	source.page = TOP_PAGE_SOURCE;
	assert_int_equal(top_view_draw(m, &facts, &stacks, 80, 24, &view), 0);
	assert_int_equal(stacks.page, TOP_PAGE_STACKS);
	top_view_free(&view);
	for (; !top_model_begun_anew(m); intervals++)
		interval_of_many(m, intervals * count, count);
	assert_int_equal(top_model_intervals(m), intervals);
	/* The interval with which it begins is whole. */
	assert_int_equal(top_model_last(m)->samples, one.samples);
	assert_int_equal(top_model_all(m)->samples, one.samples);
	assert_int_equal(top_view_draw(m, &facts, &stacks, 80, 24, &view), 0);
	assert_int_equal(stacks.page, TOP_PAGE_TABLE);
	top_view_free(&view);
	assert_int_equal(top_view_draw(m, &facts, &source, 80, 24, &view), 0);
	assert_int_equal(source.page, TOP_PAGE_TABLE);
	top_view_free(&view);
	profile_free(all);
	top_model_free(m);
}

/* The stacks of the first row of each table: only its own, and those of several threads added up. */
static void test_stacks_of_rows(void **unused)
{
	static const char *const expected[TOP_TABLES][2] = {
		{"with leaf", "0.08 s, 100.0 %"},
		{"with line 20 of leaf", "0.08 s, 100.0 %"},
		{"of thread other 9", "0.05 s, 100.0 %"},
		{"of process app 7", "0.08 s, 66.7 %"},
		{"in web", "0.08 s, 66.7 %"},
	};
	struct top_model *m = top_model_new();
	struct profile *all = make(3, 4, "leaf");
	const struct profile_process_info elsewhere = {.pid = 6, .name = "app", .container = "db"};
	uint32_t other = profile_add_thread(all, 0, 9, "other"), process = profile_add_process(all, &elsewhere);
	size_t count;
	const struct profile_sample *samples = profile_samples(all, &count);
	uint32_t inner = samples[0].stack, outer = samples[1].stack;
	const struct top_facts facts = {.target = "process 7", .freq = 99, .all = all, .all_s = 1};
	(void)unused;

	assert_int_equal(profile_add_sample(all, inner, 0, other, 5), 0);
	assert_int_equal(profile_add_sample(all, outer, process, PROFILE_NONE, 1), 0);
	assert_int_equal(top_model_begin(m, 1), 0);
	assert_int_equal(top_model_add(m, all), 0);
	assert_int_equal(top_model_end(m), 0);
	for (int table = 0; table < TOP_EXPRESSIONS; table++) {
		struct top_choice choice = {.table = (enum top_table)table};
		struct top_view view;

		/* The thread with 5 samples comes after that with 7. */
		choice.cursor = table == TOP_THREADS;
		assert_true(top_view_choose(m, &choice));
		choice.page = TOP_PAGE_STACKS;
		assert_int_equal(top_view_draw(m, &facts, &choice, 100, 24, &view), 0);
		assert_non_null(strstr(view.lines[3].text, expected[table][0]));
		assert_string_equal(view.lines[4].text, expected[table][1]);
		top_view_free(&view);
	}
	profile_free(all);
	top_model_free(m);
}

/* The last line has whole keys, and some columns are left for names, down to the least width. */
static void test_narrow_screens(void **unused)
{
	struct top_model *m = top_model_new();
	struct profile *all = make(3, 4, "leaf_function");
	const struct top_facts facts = {.target = "process 7", .freq = 99, .all = all};
	(void)unused;

	interval(m, 3, 4, "leaf_function");
	for (size_t columns = TOP_LEAST_COLUMNS; columns < 130; columns++) {
		for (int table = 0; table < TOP_EXPRESSIONS; table++) {
			for (int order = 0; order < TOP_ORDERS; order++) {
				struct top_choice choice = {.table = (enum top_table)table,
							    .order = (enum top_order)order};
				static const char *const names[] = {"n (app.py:18)", "n (app.py:20)", "worker", "app",
								    "web"};
				struct top_view view;
				const char *foot;
				bool found = false;

				assert_int_equal(top_view_draw(m, &facts, &choice, columns, 24, &view), 0);
				for (size_t i = 4; i < view.count; i++)
					found |= strstr(view.lines[i].text, names[table]) != NULL;
				assert_true(found);
				foot = view.lines[view.count - 1].text;
				assert_non_null(strstr(foot, "? help  q quit"));
				assert_true(strstr(foot, "  space freeze") || foot[strlen(foot) - 1] == ' ');
				top_view_free(&view);
			}
		}
	}
	profile_free(all);
	top_model_free(m);
}

/* Every page at every size, with names that would write on the terminal: lines fit, and are printable. */
static void test_screens(void **unused)
{
	struct top_model *m = top_model_new();
	struct profile *all = make(3, 4, "\x1b[2Jleaf\n\xff\xc2\x9b");
	const struct top_facts facts = {
		.target = "process 7\x1b]0;title\a", .freq = 99, .uptime_s = 3, .all = all, .all_s = 3};
	(void)unused;

	interval(m, 3, 4, "\x1b[2Jleaf\n\xff\xc2\x9b");
	for (size_t columns = 1; columns < 320; columns += 13) {
		for (size_t lines = 1; lines < 60; lines += 7) {
			for (int page = 0; page < (TOP_PAGE_HELP + 1) * TOP_TABLES; page++) {
				struct top_choice choice = {.page = (enum top_page)(page / TOP_TABLES),
							    .table = (enum top_table)(page % TOP_TABLES),
							    .cursor = 1000,
							    .scroll = 2};
				struct top_view view;

				choice.cursor = 0;
				top_view_choose(m, &choice);
				choice.cursor = 1000;
				assert_int_equal(top_view_draw(m, &facts, &choice, columns, lines, &view), 0);
				assert_true(view.count <= lines);
				for (size_t i = 0; i < view.count; i++) {
					char *printable = text_printable(view.lines[i].text);

					assert_string_equal(printable, view.lines[i].text);
					assert_true(text_width(view.lines[i].text) <= columns);
					free(printable);
				}
				top_view_free(&view);
			}
		}
	}
	profile_free(all);
	top_model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_expressions),
		cmocka_unit_test(test_equal_rows_are_sorted_by_name),
		cmocka_unit_test(test_states_are_of_the_interval),
		cmocka_unit_test(test_ended_threads),
		cmocka_unit_test(test_sleepers_are_kept),
		cmocka_unit_test(test_marks),
		cmocka_unit_test(test_filter),
		cmocka_unit_test(test_threads_name_their_process),
		cmocka_unit_test(test_libraries_have_their_own_callers),
		cmocka_unit_test(test_change),
		cmocka_unit_test(test_change_in_a_longer_interval),
		cmocka_unit_test(test_rows_are_bounded),
		cmocka_unit_test(test_the_coldest_are_forgotten),
		cmocka_unit_test(test_pages_of_forgotten_rows),
		cmocka_unit_test(test_stacks_of_rows),
		cmocka_unit_test(test_narrow_screens),
		cmocka_unit_test(test_screens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

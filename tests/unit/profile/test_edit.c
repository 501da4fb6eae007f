// SPDX-License-Identifier: Apache-2.0
/* Profiles added to profiles: everything, what belongs to what passes, and several runs. */
#include <errno.h>

#include "edited_profile.h"
#include "profile/parents.h"

static void test_all(void **unused)
{
	(void)unused;
	for (uint64_t seed = 20; seed < 23; seed++) {
		struct profile *p = rich_profile(seed), *to = edited(p, NULL);
		char *want = written(p, output_folded), *got = written(to, output_folded);
		size_t n, m;

		assert_string_equal(got, want);
		profile_set_roots(p, PROFILE_ROOT_CONTAINER | PROFILE_ROOT_PROCESS | PROFILE_ROOT_THREAD);
		profile_set_roots(to, PROFILE_ROOT_CONTAINER | PROFILE_ROOT_PROCESS | PROFILE_ROOT_THREAD);
		free(want);
		free(got);
		want = written(p, output_folded);
		got = written(to, output_folded);
		assert_string_equal(got, want);
		profile_events(p, &n);
		profile_events(to, &m);
		assert_int_equal(n, m);
		profile_account_entries(p, &n);
		profile_account_entries(to, &m);
		assert_int_equal(n, m);
		free(want);
		free(got);
		profile_free(to);
		profile_free(p);
	}
}

static uint64_t told(const struct profile *p, const char *group, const char *key)
{
	size_t count;
	const struct profile_account *account = profile_account_entries(p, &count);

	for (size_t i = 0; i < count; i++) {
		if (strcmp(profile_string(p, account[i].group), group) == 0 &&
		    strcmp(profile_string(p, account[i].key), key) == 0)
			return account[i].value;
	}
	return 0;
}

/* Returns the source of app.py in a profile of all of these, whose sources of app.py are given; NULL: none. */
static char *merged_source(const char *const texts[], size_t count)
{
	struct profile_edit edit = {.under = NULL};
	const struct profile_source *sources;
	struct profile *to = new_profile();
	struct error error;
	char *found = NULL;
	size_t kept;

	for (size_t i = 0; i < count; i++) {
		struct profile *p = service();

		if (texts[i])
			assert_int_equal(profile_set_source(p, "app.py", texts[i]), 0);
		assert_int_equal(profile_edit_add(to, p, &edit, &error), 0);
		profile_free(p);
	}
	sources = profile_sources(to, &kept);
	for (size_t i = 0; i < kept; i++) {
		if (strcmp(profile_string(to, sources[i].file), "app.py") == 0)
			found = strdup(profile_string(to, sources[i].text));
	}
	profile_free(to);
	return found;
}

/* Samples of one release are not shown at the lines of another. */
static void test_sources_of_two_releases(void **unused)
{
	static const struct {
		const char *texts[3];
		size_t count;
		const char *expected;
	} cases[] = {
		{{"a"}, 1, "a"},          {{"a", "a"}, 2, "a"}, {{"a", "b"}, 2, ""},  {{"a", "b", "a"}, 3, ""},
		{{"a", "b", "b"}, 3, ""}, {{NULL, "b"}, 2, ""}, {{"a", NULL}, 2, ""}, {{NULL}, 1, ""},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *found = merged_source(cases[i].texts, cases[i].count);

		assert_string_equal(found, cases[i].expected);
		free(found);
	}
}

/* Nothing of what is left out comes along, and how much it was is told. */
static void test_nothing_stays(void **unused)
{
	struct profile *p = service(), *to;
	struct profile_edit edit = {.under = NULL};
	size_t count;

	(void)unused;
	assert_int_equal(profile_set_source(p, "app.py", "def run"), 0);
	assert_int_equal(profile_set_source(p, "lib/a.py", "def work"), 0);
	assert_int_equal(profile_add_account(p, "lost", "ring", "x", 3), 0);
	profile_edit_add_pid(&edit.pids, 43);
	to = edited(p, &edit);
	for (uint32_t i = 0; i < profile_string_count(to); i++) {
		assert_null(strstr(profile_string(to, i), "work"));
		assert_null(strstr(profile_string(to, i), "front"));
	}
	assert_int_equal(profile_process_count(to), 1);
	assert_int_equal(profile_thread_count(to), 1);
	assert_int_equal(profile_stack_count(to), 2);
	profile_sources(to, &count);
	assert_int_equal(count, 1);
	assert_int_equal(told(to, "lost", "ring"), 3);
	assert_int_equal(told(to, "left out", "filters"), profile_total(p) - profile_total(to));
	profile_free(to);
	edit.no_sources = true;
	to = edited(p, &edit);
	profile_sources(to, &count);
	assert_int_equal(count, 0);
	profile_free(to);
	edit.no_account = true;
	assert_int_equal(profile_set_fact(p, PROFILE_FACT_HOST, "here"), 0);
	to = edited(p, &edit);
	assert_int_equal(told(to, "lost", "ring"), 0);
	assert_int_equal(told(to, "left out", "filters"), 0);
	assert_null(profile_find_fact(to, PROFILE_FACT_HOST));
	assert_true(profile_total(to) > 0);
	profile_free(to);
	profile_edit_free(&edit);
	profile_free(p);
}

static void test_merge_processes(void **unused)
{
	struct profile *p = service();
	struct profile_edit edit = {.merge_processes = true};
	struct profile *to = edited(p, &edit);

	(void)unused;
	profile_set_roots(to, PROFILE_ROOT_PROCESS);
	assert_int_equal(profile_process_count(to), 3); /* "web" in a container is another one */
	profile_free(to);
	to = new_profile();
	take_in(to, on(to, PROFILE_ROOT, "f", "a.py", 1), process(to, 1, "same"), 1);
	take_in(to, on(to, PROFILE_ROOT, "f", "a.py", 1), process(to, 2, "same"), 2);
	profile_set_roots(to, PROFILE_ROOT_PROCESS);
	assert_edited(to, &edit, "same;f (a.py:1) 3\n");
	profile_free(to);
	profile_free(p);
}

/* A run of one sample at some time after its start. */
static struct profile *run(const char *start, const char *duration, const char *host, uint64_t time)
{
	struct profile *p = new_profile();

	take_in(p, on(p, PROFILE_ROOT, "f", "a.py", 1), process(p, 1, "x"), 5);
	assert_int_equal(profile_add_event(p, time, 0, 1), 0);
	if (start)
		assert_int_equal(profile_set_fact(p, PROFILE_FACT_START, start), 0);
	assert_int_equal(profile_set_fact(p, PROFILE_FACT_DURATION, duration), 0);
	assert_int_equal(profile_set_fact(p, PROFILE_FACT_OTHERS, duration), 0);
	assert_int_equal(profile_set_fact(p, PROFILE_FACT_HOST, host), 0);
	assert_int_equal(profile_add_account(p, "lost", "ring", "x", 3), 0);
	assert_int_equal(profile_set_measure(p, &(struct profile_measure){"samples", "count", 1000}), 0);
	return p;
}

static void assert_merged(struct profile *a, struct profile *b, const char *start, uint64_t first, uint64_t second)
{
	struct profile *to = new_profile();
	const struct profile_event *events;
	struct error error;
	size_t count;

	assert_int_equal(profile_edit_add(to, a, NULL, &error), 0);
	assert_int_equal(profile_edit_add(to, b, NULL, &error), 0);
	assert_folded(to, "f (a.py:1) 10\n");
	events = profile_events(to, &count);
	assert_int_equal(count, 2);
	assert_int_equal(events[0].time_ns, first);
	assert_int_equal(events[1].time_ns, second);
	assert_int_equal(profile_get_measure(to).period_ns, 1000);
	assert_int_equal(told(to, "lost", "ring"), 6);
	if (start)
		assert_string_equal(profile_find_fact(to, PROFILE_FACT_START), start);
	assert_string_equal(profile_find_fact(to, PROFILE_FACT_DURATION), "3.750");
	assert_string_equal(profile_find_fact(to, PROFILE_FACT_OTHERS), "3.750");
	assert_string_equal(profile_find_fact(to, PROFILE_FACT_HOST), "one, two");
	profile_free(to);
}

static void test_several(void **unused)
{
	struct profile *a = run("1000", "1.5", "one", 10), *b = run("1100", "2.25", "two", 20);
	struct profile *c = run(NULL, "2.25", "two", 20), *d = run("900", "2.25", "two", 20);

	(void)unused;
	assert_merged(a, b, "1000", 10, 120);
	assert_merged(a, d, "900", 20, 110);
	assert_merged(a, c, "1000", 10, 20);
	profile_free(a);
	profile_free(b);
	profile_free(c);
	profile_free(d);
}

static void assert_not_merged(const struct profile *a, const struct profile *b, int want, const char *words)
{
	struct profile *to = edited(a, NULL);
	struct error error;

	assert_int_equal(profile_edit_add(to, b, NULL, &error), want);
	assert_non_null(strstr(error.text, words));
	profile_free(to);
}

static void test_not_to_be_merged(void **unused)
{
	struct profile *a = run("1000", "1", "one", 10), *b = run("1100", "1", "one", 20);
	struct profile *empty = new_profile();

	(void)unused;
	profile_set_measure(b, &(struct profile_measure){"samples", "count", 2000});
	assert_not_merged(a, b, -EINVAL, "0.001 ms of CPU time in one, for 0.002 ms in the other");
	profile_set_measure(b, &(struct profile_measure){"asleep", "nanoseconds", 0});
	assert_not_merged(a, b, -EINVAL, "one has samples in count, the other asleep in nanoseconds");
	profile_set_measure(b, &(struct profile_measure){"samples", "count", 1000});
	take_in(b, 1, 0, INT64_MAX / 1000 - 5);
	assert_not_merged(a, b, -EOVERFLOW, "too large");
	/* One in which nothing is yet takes any measure; one with nothing in it fits only its own. */
	assert_not_merged(a, empty, -EINVAL, "");
	profile_free(a);
	profile_free(b);
	profile_free(empty);
}

static uint32_t waiting(struct profile *p, uint32_t stack, const char *state, const char *name)
{
	return profile_add_stack(p, stack, profile_add_wait(p, state, name, 0));
}

/* Counts and states go with their samples; the time by state is that of the samples that pass. */
static void test_waits(void **unused)
{
	struct profile *p = new_profile(), *to;
	struct profile_edit edit = {.anonymize = true};
	uint32_t owner = process(p, 1, "x"), f = on(p, PROFILE_ROOT, "f", "a.py", 1);
	uint32_t g = on(p, PROFILE_ROOT, "g", "a.py", 2);
	const struct profile_sample *samples;
	struct error error;
	size_t count;

	(void)unused;
	assert_int_equal(profile_set_measure(p, &(struct profile_measure){"wall", "microseconds", 0}), 0);
	assert_int_equal(profile_add_time(p, waiting(p, f, "lock", "[lock]"), owner, PROFILE_NONE, 500, 7), 0);
	assert_int_equal(profile_add_time(p, waiting(p, g, "sleep", "[sleep]"), owner, PROFILE_NONE, 300, 2), 0);
	assert_int_equal(profile_add_time(p, f, owner, PROFILE_NONE, 200, 3), 0);
	assert_int_equal(profile_add_account(p, PROFILE_ACCOUNT_STATES, "lock", "lock", 500499), 0);
	assert_int_equal(profile_add_account(p, PROFILE_ACCOUNT_STATES, "sleep", "sleep", 300000), 0);
	assert_int_equal(profile_add_account(p, PROFILE_ACCOUNT_STATES, "on CPU", "on CPU", 200000), 0);
	to = edited(p, NULL);
	assert_int_equal(told(to, PROFILE_ACCOUNT_STATES, "lock"), 500499);
	assert_int_equal(profile_edit_add(to, p, NULL, &error), 0);
	samples = profile_samples(to, &count);
	assert_int_equal(count, 3);
	assert_int_equal(samples[0].value, 1000);
	assert_int_equal(samples[0].count, 14);
	assert_string_equal(profile_string(to, profile_state_of(to, samples[0].stack)), "lock");
	assert_int_equal(told(to, PROFILE_ACCOUNT_STATES, "lock"), 1000998);
	profile_free(to);
	assert_int_equal(profile_edit_add_text(&edit.focus, "^f "), 0);
	assert_int_equal(profile_edit_check(&edit, &error), 0);
	to = edited(p, &edit);
	samples = profile_samples(to, &count);
	assert_int_equal(count, 2);
	assert_string_equal(profile_string(to, profile_state_of(to, samples[0].stack)), "lock");
	assert_int_equal(told(to, PROFILE_ACCOUNT_STATES, "lock"), 500000);
	assert_int_equal(told(to, PROFILE_ACCOUNT_STATES, "on CPU"), 200000);
	assert_int_equal(told(to, PROFILE_ACCOUNT_STATES, "sleep"), 0);
	profile_free(to);
	profile_edit_free(&edit);
	profile_free(p);
}

static void test_parents(void **unused)
{
	struct profile *p = new_profile(), *to;
	struct profile_edit edit = {0};
	const struct profile_process_info infos[] = {{.pid = 6, .name = "gone"}, {.pid = 7, .name = "secret"}};
	uint32_t worker = process(p, 8, "worker"), chain[PROFILE_PARENTS_MAX], above;
	const struct profile_parents *parents;

	(void)unused;
	above = profile_add_parent(p, PROFILE_NONE, &infos[0], true);
	assert_int_equal(profile_set_parent(p, worker, profile_add_parent(p, above, &infos[1], false)), 0);
	process(p, 5, "without samples");
	take_in(p, on(p, PROFILE_ROOT, "f", "a.py", 1), worker, 1);
	to = edited(p, &edit);
	parents = profile_get_parents(to);
	assert_int_equal(profile_parents_chain(parents, 0, chain), 2);
	assert_int_equal(profile_parents_at(parents, chain[0])->process.pid, 6);
	assert_true(profile_parents_at(parents, chain[0])->ended);
	assert_int_equal(profile_parents_at(parents, chain[1])->process.pid, 7);
	assert_string_equal(profile_string(to, profile_parents_at(parents, chain[1])->process.name), "secret");
	profile_free(to);

	edit.merge_processes = true;
	to = edited(p, &edit);
	assert_int_equal(profile_parents_chain(profile_get_parents(to), 0, chain), 0);
	profile_free(to);

	edit = (struct profile_edit){.anonymize = true};
	to = edited(p, &edit);
	assert_int_equal(profile_parents_chain(profile_get_parents(to), 0, chain), 2);
	for (uint32_t i = 0; i < profile_string_count(to); i++)
		assert_null(strstr(profile_string(to, i), "secret"));
	profile_free(to);
	profile_edit_free(&edit);
	profile_free(p);
}

static void test_without_columns(void **unused)
{
	struct profile *p = new_profile(), *to;
	uint32_t owner = process(p, 42, "python3");

	(void)unused;
	take_in(p, on_expression(p, PROFILE_ROOT, "f", (struct profile_place){3, 1, 3, 4, 9}), owner, 5);
	take_in(p, on_expression(p, PROFILE_ROOT, "f", (struct profile_place){3, 1, 4, 4, 2}), owner, 6);
	assert_edited(p, NULL, "f (app.py:3:5-9) 5\nf (app.py:3:5-4:2) 6\n");
	to = edited(p, &(struct profile_edit){.no_columns = true});
	assert_folded(to, "f (app.py:3) 11\n");
	assert_int_equal(profile_frame_at(to, 0)->first_line, 1);
	profile_free(to);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_sources_of_two_releases),
		cmocka_unit_test(test_nothing_stays),
		cmocka_unit_test(test_merge_processes),
		cmocka_unit_test(test_several),
		cmocka_unit_test(test_not_to_be_merged),
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_parents),
		cmocka_unit_test(test_without_columns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

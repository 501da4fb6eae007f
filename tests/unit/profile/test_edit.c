// SPDX-License-Identifier: Apache-2.0
/* Profiles added to profiles: everything, some of it, of several, with names hidden. */
#include <errno.h>

#include "rich_profile.h"
#include "profile/parents.h"
#include "profile/edit.h"

/* What passes; the caller frees. */
static struct profile *edited(const struct profile *from, const struct profile_edit *edit)
{
	struct profile *to = new_profile();
	struct error error;

	assert_int_equal(profile_edit_add(to, from, edit, &error), 0);
	assert_string_equal(error.text, "");
	return to;
}

static void assert_edited(const struct profile *from, const struct profile_edit *edit, const char *folded)
{
	struct profile *to = edited(from, edit);

	assert_folded(to, folded);
	profile_free(to);
}

static void add(struct profile *p, uint32_t stack, uint32_t owner, uint32_t thread, uint64_t value)
{
	assert_int_equal(profile_add_sample(p, stack, owner, thread, value), 0);
}

static uint32_t contained(struct profile *p, int pid, const char *name, const char *container)
{
	return profile_add_process(p, &(struct profile_process_info){.pid = pid, .name = name, .container = container});
}

static struct profile *service(void)
{
	struct profile *p = new_profile();
	uint32_t web = contained(p, 42, "web", "shop/front"), job = contained(p, 43, "job", "4f797c539e6c");
	uint32_t host = process(p, 44, "web");
	uint32_t main = profile_add_thread(p, web, 42, "web"), worker = profile_add_thread(p, web, 50, "worker-1");
	uint32_t other = profile_add_thread(p, job, 43, "job");
	uint32_t module = on(p, PROFILE_ROOT, "<module>", "app.py", 9), run = on(p, module, "Server.run", "app.py", 3);
	uint32_t again = on(p, run, "Server.run", "app.py", 4), leaf = on(p, again, "work", "lib/a.py", 7);

	add(p, leaf, web, main, 1);
	add(p, leaf, web, worker, 2);
	add(p, run, web, worker, 4);
	add(p, module, job, other, 8);
	add(p, leaf, host, PROFILE_NONE, 16);
	add(p, PROFILE_ROOT, host, PROFILE_NONE, 1000);
	profile_set_roots(p, 0);
	return p;
}

#define STACK_LEAF "<module> (app.py:9);Server.run (app.py:3);Server.run (app.py:4);work (lib/a.py:7)"
#define STACK_RUN  "<module> (app.py:9);Server.run (app.py:3)"

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

static void test_pids(void **unused)
{
	struct profile *p = service();
	struct profile_edit edit = {.under = NULL};

	(void)unused;
	profile_edit_add_pid(&edit.pids, 44);
	assert_edited(p, &edit, STACK_LEAF " 16\n");
	profile_edit_add_pid(&edit.pids, 43);
	assert_edited(p, &edit, "<module> (app.py:9) 8\n" STACK_LEAF " 16\n");
	profile_edit_free(&edit);
	profile_edit_add_pid(&edit.pids, 4);
	assert_edited(p, &edit, "");
	profile_edit_free(&edit);
	profile_free(p);
}

static void test_chosen_processes(void **unused)
{
	static const bool chosen[] = {false, true, true}, none[] = {false, false, false};
	struct profile *p = service();

	(void)unused;
	assert_edited(p, &(struct profile_edit){.processes = chosen}, "<module> (app.py:9) 8\n" STACK_LEAF " 16\n");
	assert_edited(p, &(struct profile_edit){.processes = none}, "");
	profile_free(p);
}

static void test_threads(void **unused)
{
	struct profile *p = service();
	struct profile_edit edit = {.under = NULL};

	(void)unused;
	profile_edit_add_text(&edit.threads, "work*");
	assert_edited(p, &edit, STACK_LEAF " 2\n" STACK_RUN " 4\n");
	profile_edit_add_text(&edit.threads, "43");
	assert_edited(p, &edit, STACK_LEAF " 2\n" STACK_RUN " 4\n<module> (app.py:9) 8\n");
	profile_edit_free(&edit);
	profile_edit_add_text(&edit.threads, "work");
	assert_edited(p, &edit, "");
	profile_edit_free(&edit);
	profile_free(p);
}

static void assert_container(const struct profile *p, const char *query, uint64_t total)
{
	struct profile_edit edit = {.under = NULL};
	struct profile *to;

	profile_edit_add_text(&edit.containers, query);
	to = edited(p, &edit);
	assert_int_equal(profile_total(to), total);
	profile_free(to);
	profile_edit_free(&edit);
}

static void test_containers(void **unused)
{
	struct profile *p = service();

	(void)unused;
	assert_container(p, "shop/front", 7);
	assert_container(p, "front", 7);
	assert_container(p, "shop", 0);
	assert_container(p, "fron", 0);
	assert_container(p, "4f79", 8);
	assert_container(p, "4f7", 0);
	assert_container(p, "4f797c539e6c745d4f797c539e6c745d", 8);
	assert_container(p, "4f797c539e6d", 0);
	profile_free(p);
}

static void test_under(void **unused)
{
	struct profile *p = service();
	struct profile_edit edit = {.under = "Server.run"};

	(void)unused;
	assert_edited(p, &edit,
		      "Server.run (app.py:3);Server.run (app.py:4);work (lib/a.py:7) 19\nServer.run (app.py:3) 4\n");
	edit.under = "*ork";
	assert_edited(p, &edit, "work (lib/a.py:7) 19\n");
	/* The last part of a qualified name, not the end of one. */
	edit.under = "run";
	assert_edited(p, &edit,
		      "Server.run (app.py:3);Server.run (app.py:4);work (lib/a.py:7) 19\nServer.run (app.py:3) 4\n");
	edit.under = "r?n";
	assert_edited(p, &edit,
		      "Server.run (app.py:3);Server.run (app.py:4);work (lib/a.py:7) 19\nServer.run (app.py:3) 4\n");
	edit.under = "un";
	assert_edited(p, &edit, "");
	edit.under = "Server";
	assert_edited(p, &edit, "");
	profile_free(p);
}

static void test_under_names_only_functions_by_their_last_part(void **unused)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 1, "x"), outer = on(p, PROFILE_ROOT, "make.<locals>.Server.run", "app.py", 1);
	struct profile_edit edit = {.under = "Server.run"};

	(void)unused;
	profile_set_roots(p, 0);
	add(p, profile_add_stack(p, outer, profile_add_wait(p, "network", "[network: tcp a.run]", 0)), owner,
	    PROFILE_NONE, 5);
	assert_edited(p, &edit, "make.<locals>.Server.run (app.py:1);[network: tcp a.run] 5\n");
	edit.under = "run]";
	assert_edited(p, &edit, "");
	profile_free(p);
}

/* Frames that are hidden give their values to their callers; what a thread waits for stays. */
static void test_hide(void **unused)
{
	struct profile *p = service();
	uint32_t owner = process(p, 44, "web"), get = on(p, PROFILE_ROOT, "get", "socket.py", 1);
	struct profile_edit edit = {.under = NULL};
	struct error error;

	(void)unused;
	add(p, profile_add_stack(p, get, profile_add_wait(p, "lock", "[lock]", 0)), owner, PROFILE_NONE, 32);
	add(p, get, owner, PROFILE_NONE, 64);
	profile_edit_add_text(&edit.hide, "^Server\\.run ");
	profile_edit_add_text(&edit.hide, "lock|^get");
	assert_edited(p, &edit,
		      "<module> (app.py:9);work (lib/a.py:7) 19\n<module> (app.py:9) 12\n[lock] 32\n[hidden] 64\n");
	/* As the root, too. */
	edit.under = "run";
	assert_edited(p, &edit, "work (lib/a.py:7) 19\n[hidden] 4\n");
	profile_edit_add_text(&edit.hide, "a(b");
	assert_int_equal(profile_edit_check(&edit, &error), -EINVAL);
	assert_non_null(strstr(error.text, "--hide a(b: not a POSIX extended regular expression"));
	profile_edit_free(&edit);
	profile_free(p);
}

static void test_own_only(void **unused)
{
	struct profile *p = service();
	uint32_t owner = process(p, 44, "web"), idle = on(p, PROFILE_ROOT, "run", "threading.py", 1);
	uint32_t main = on(p, idle, "main", "app.py", 5), get = on(p, main, "get", "requests/api.py", 1);
	uint32_t read = on(p, get, "read", "socket.py", 1), back = on(p, read, "on_read", "app.py", 8);
	uint32_t kernel = profile_add_stack(
		p, get, profile_add_frame(p, PROFILE_KERNEL, "do_read", "", PROFILE_NO_LINE, PROFILE_NO_LINE));
	struct profile_edit edit = {.own_only = true};

	(void)unused;
	assert_int_equal(profile_set_origin(p, "lib/a.py", PROFILE_THIRD_PARTY), 0);
	assert_int_equal(profile_set_origin(p, "requests/api.py", PROFILE_THIRD_PARTY), 0);
	assert_int_equal(profile_set_origin(p, "socket.py", PROFILE_STDLIB), 0);
	assert_int_equal(profile_set_origin(p, "threading.py", PROFILE_STDLIB), 0);
	add(p, profile_add_stack(p, read, profile_add_wait(p, "network", "[network]", 0)), owner, PROFILE_NONE, 32);
	add(p, back, owner, PROFILE_NONE, 64);
	add(p, idle, owner, PROFILE_NONE, 128);
	add(p, profile_add_stack(p, kernel, profile_add_wait(p, "disk", "[disk]", 0)), owner, PROFILE_NONE, 256);
	assert_edited(p, &edit,
		      "<module> (app.py:9);Server.run (app.py:3);Server.run (app.py:4) 19\n" STACK_RUN " 4\n"
		      "<module> (app.py:9) 8\nmain (app.py:5);[network] 32\n"
		      "main (app.py:5);on_read (app.py:8) 64\n[libraries] 128\nmain (app.py:5);[disk] 256\n");
	profile_free(p);
}

static void test_patterns(void **unused)
{
	struct profile *p = service();
	struct profile_edit edit = {.under = NULL};
	struct error error;

	(void)unused;
	profile_edit_add_text(&edit.focus, "lib/a\\.py:7\\)$");
	assert_edited(p, &edit, STACK_LEAF " 19\n");
	profile_edit_add_text(&edit.focus, "^(Server|Client)\\.run ");
	assert_edited(p, &edit, STACK_LEAF " 19\n");
	profile_edit_add_text(&edit.focus, "nothing");
	assert_edited(p, &edit, "");
	profile_edit_free(&edit);
	profile_edit_add_text(&edit.ignore, "work");
	assert_edited(p, &edit, STACK_RUN " 4\n<module> (app.py:9) 8\n");
	profile_edit_add_text(&edit.ignore, "Server");
	assert_edited(p, &edit, "<module> (app.py:9) 8\n");
	profile_edit_free(&edit);
	/* They see what is cut off, too. */
	edit.under = "work";
	profile_edit_add_text(&edit.focus, "app.py:4");
	assert_edited(p, &edit, "work (lib/a.py:7) 19\n");
	profile_edit_add_text(&edit.ignore, "a(b");
	assert_int_equal(profile_edit_check(&edit, &error), -EINVAL);
	assert_non_null(strstr(error.text, "--ignore a(b: not a POSIX extended regular expression"));
	profile_edit_free(&edit);
	for (int i = 0; i <= PROFILE_EDIT_FOCUS_MAX; i++)
		profile_edit_add_text(&edit.focus, "work");
	assert_int_equal(profile_edit_check(&edit, &error), -EINVAL);
	edit.focus.count--;
	assert_int_equal(profile_edit_check(&edit, &error), 0);
	assert_edited(p, &edit, STACK_LEAF " 19\n");
	profile_edit_free(&edit);
	profile_free(p);
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

static void test_anonymized(void **unused)
{
	static const char *const names[] = {"web",    "shop",   "front", "job",   "4f797c539e6c", "worker",
					    "Server", "run",    "work",  "app",   "lib",          "secret",
					    "there",  "python", "print", "frozen"};
	struct profile *p = service(), *to, *other;
	struct profile_edit edit = {.anonymize = true}, later = {.anonymize = true};
	uint32_t odd = on(p, PROFILE_ROOT, "Server.run.<locals>.<lambda>", "<frozen lib.web>", 3);
	const struct profile_stack *stack;
	struct error error;
	size_t count;

	(void)unused;
	take_in(p, odd, 0, 3);
	take_in(p, profile_add_stack(p, odd, profile_add_frame(p, PROFILE_NOTE, "[3 frames cut]", "", -1, -1)), 0, 3);
	take_in(p, profile_add_stack(p, odd, profile_add_frame(p, PROFILE_THREAD, "[thread secret]", "", -1, -1)), 0,
		3);
	assert_int_equal(profile_set_source(p, "app.py", "print(1)"), 0);
	assert_int_equal(profile_set_fact(p, PROFILE_FACT_HOST, "there"), 0);
	assert_int_equal(profile_set_fact(p, "command", "secret"), 0);
	assert_int_equal(profile_set_fact(p, PROFILE_FACT_CPUS, "2"), 0);
	assert_int_equal(profile_edit_check(&edit, &error), 0);
	assert_int_equal(profile_edit_check(&later, &error), 0);
	to = edited(p, &edit);
	for (uint32_t i = 0; i < profile_string_count(to); i++) {
		for (size_t n = 0; n < sizeof(names) / sizeof(*names); n++) {
			if (strstr(profile_string(to, i), names[n]))
				print_error("%s is in %s\n", names[n], profile_string(to, i));
			assert_null(strstr(profile_string(to, i), names[n]));
		}
	}
	profile_sources(to, &count);
	assert_int_equal(count, 0);
	assert_string_equal(profile_find_fact(to, PROFILE_FACT_CPUS), "2");
	/* The structure stays: as many of each, and the same on every stack. */
	assert_int_equal(profile_stack_count(to), profile_stack_count(p));
	assert_int_equal(profile_frame_count(to), profile_frame_count(p));
	assert_int_equal(profile_thread_count(to), profile_thread_count(p));
	assert_int_equal(profile_total(to), profile_total(p));
	stack = profile_stack_at(to, 2);
	assert_int_equal(profile_frame_at(to, stack->frame)->name,
			 profile_frame_at(to, profile_stack_at(to, 3)->frame)->name);
	assert_int_equal(profile_frame_at(to, stack->frame)->line, 3);
	assert_string_equal(profile_string(to, profile_frame_at(to, profile_stack_at(to, 1)->frame)->name), "<module>");
	/* Equal in what is added with the same salt, and in nothing else. */
	other = edited(p, &edit);
	assert_same_profile(to, other);
	profile_free(other);
	other = edited(p, &later);
	assert_string_not_equal(profile_string(other, profile_frame_at(other, 1)->name),
				profile_string(to, profile_frame_at(to, 1)->name));
	profile_free(other);
	profile_free(to);
	profile_free(p);
}

/* Compiled code stays where it is; with hidden names nothing says which file it was. */
static void test_places_of_compiled_code(void **unused)
{
	const struct profile_mapping_info info = {"libz.so.1", "c0ffee", "/usr/lib/libz.so.1", 0x2000, 0x9000, 0x1000};
	struct profile *p = new_profile(), *to, *twice = new_profile();
	struct profile_edit edit = {.no_sources = false};
	struct profile_code code = {.address = 0x2345, .line = PROFILE_NO_LINE};
	const struct profile_frame *frame;
	struct error error;

	(void)unused;
	code.mapping = profile_add_mapping(p, &info);
	take_in(p, profile_add_stack(p, PROFILE_ROOT, profile_add_code(p, "deflate", "libz.so.1", &code)),
		process(p, 1, "x"), 1);
	code.line = 30;
	code.marks = PROFILE_CODE_INLINED;
	take_in(p, profile_add_stack(p, PROFILE_ROOT, profile_add_code(p, "longest_match", "deflate.c", &code)), 0, 2);
	assert_int_equal(profile_edit_check(&edit, &error), 0);
	to = edited(p, &edit);
	assert_same_rows(p, to);
	profile_free(to);
	for (int i = 0; i < 2; i++)
		assert_int_equal(profile_edit_add(twice, p, &edit, &error), 0);
	assert_int_equal(profile_frame_count(twice), 2);
	assert_int_equal(profile_frame_at(twice, 1)->address, 0x2345);
	assert_int_equal(profile_mapping_count(twice), 1);
	assert_string_equal(profile_string(twice, profile_mapping_at(twice, 0)->build_id), "c0ffee");
	profile_free(twice);
	edit = (struct profile_edit){.anonymize = true};
	assert_int_equal(profile_edit_check(&edit, &error), 0);
	to = edited(p, &edit);
	frame = profile_frame_at(to, 0);
	assert_true(!frame->mapping && !frame->address);
	frame = profile_frame_at(to, 1);
	assert_true(frame->mapping && !frame->address && frame->marks == PROFILE_CODE_INLINED);
	assert_int_equal(profile_library_of(to, frame), profile_frame_at(to, 0)->file);
	for (uint32_t i = 0; i < profile_string_count(to); i++)
		assert_null(strstr(profile_string(to, i), "libz") ?: strstr(profile_string(to, i), "c0ffee"));
	profile_free(to);
	profile_free(p);
}

/* The parts of names and paths that tell nothing stay. */
static void test_hidden_names(void **unused)
{
	struct profile *p = new_profile(), *to;
	struct profile_edit edit = {.anonymize = true};
	struct error error;
	char *text;

	(void)unused;
	take_in(p, on(p, PROFILE_ROOT, "A.f.<locals>.<lambda>", "pkg/A.py", 3), process(p, 1, "x"), 1);
	take_in(p, on(p, PROFILE_ROOT, "A", "/A/f", -1), process(p, 1, "x"), 2);
	take_in(p, on(p, PROFILE_ROOT, "", "<string>", 1), process(p, 1, "x"), 4);
	take_in(p, on(p, PROFILE_ROOT, "...", "//.py", 1), process(p, 1, "x"), 8);
	assert_int_equal(profile_edit_check(&edit, &error), 0);
	to = edited(p, &edit);
	text = written(to, output_folded);
	/* The hashes of one salt are 12 digits each, whatever they are. */
	for (char *c = text; *c; c++) {
		if (strchr("0123456789abcdef", *c) && c > text && strchr("fm", c[-1]) &&
		    strspn(c, "0123456789abcdef") >= 12) {
			memset(c, '#', 12);
			c += 11;
		}
	}
	assert_string_equal(text, "f############.f############.<locals>.<lambda> (m############/m############.py:3) 1\n"
				  "f############ (/m############/m############) 2\n"
				  " (<string>:1) 4\n"
				  "... (//m############:1) 8\n");
	free(text);
	profile_free(to);
	profile_free(p);
}

static uint32_t noted(struct profile *p, const char *note)
{
	uint32_t frame = profile_add_frame(p, PROFILE_NOTE, note, "", PROFILE_NO_LINE, PROFILE_NO_LINE);

	return profile_add_stack(p, PROFILE_ROOT, frame);
}

/* A remark stays, but for the address or file that a wait is for. */
static void test_hidden_notes(void **unused)
{
	struct profile *p = new_profile(), *to;
	struct profile_edit edit = {.anonymize = true};
	struct error error;
	char *text, *held, *function;

	(void)unused;
	take_in(p, noted(p, "[7 frames cut]"), process(p, 1, "x"), 1);
	take_in(p, noted(p, "[network: tcp 10.0.0.5:5432]"), process(p, 1, "x"), 2);
	take_in(p, noted(p, "[other: read [eventfd]]"), process(p, 1, "x"), 4);
	take_in(p, noted(p, "[GIL: held in secret.<lambda>]"), process(p, 1, "x"), 5);
	take_in(p, on(p, PROFILE_ROOT, "secret", "a.py", 1), process(p, 1, "x"), 6);
	assert_int_equal(profile_edit_check(&edit, &error), 0);
	to = edited(p, &edit);
	text = written(to, output_folded);
	assert_ptr_equal(strstr(text, "[7 frames cut] 1\n[network: w"), text);
	assert_null(strstr(text, "10.0.0.5"));
	assert_null(strstr(text, "eventfd"));
	assert_non_null(strstr(text, "\n[other: w"));
	assert_null(strstr(text, "secret"));
	/* The holder has the hash that it has as a frame. */
	held = strstr(text, "\n[GIL: held in f");
	assert_non_null(held);
	held += strlen("\n[GIL: held in ");
	assert_ptr_equal(strstr(held, ".<lambda>] 5"), held + 13);
	function = strndup(held, 13);
	assert_non_null(strstr(strchr(held, '\n'), function));
	free(function);
	free(text);
	profile_free(to);
	profile_free(p);
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
		cmocka_unit_test(test_pids),
		cmocka_unit_test(test_chosen_processes),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_containers),
		cmocka_unit_test(test_under),
		cmocka_unit_test(test_under_names_only_functions_by_their_last_part),
		cmocka_unit_test(test_hide),
		cmocka_unit_test(test_own_only),
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_nothing_stays),
		cmocka_unit_test(test_sources_of_two_releases),
		cmocka_unit_test(test_merge_processes),
		cmocka_unit_test(test_several),
		cmocka_unit_test(test_not_to_be_merged),
		cmocka_unit_test(test_anonymized),
		cmocka_unit_test(test_places_of_compiled_code),
		cmocka_unit_test(test_hidden_names),
		cmocka_unit_test(test_hidden_notes),
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_parents),
		cmocka_unit_test(test_without_columns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

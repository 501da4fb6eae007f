// SPDX-License-Identifier: Apache-2.0
/* Which samples and frames of a profile pass: by process, thread, container, function and pattern. */
#include <errno.h>

#include "edited_profile.h"

#define STACK_LEAF "<module> (app.py:9);Server.run (app.py:3);Server.run (app.py:4);work (lib/a.py:7)"
#define STACK_RUN  "<module> (app.py:9);Server.run (app.py:3)"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pids),     cmocka_unit_test(test_chosen_processes),
		cmocka_unit_test(test_threads),  cmocka_unit_test(test_containers),
		cmocka_unit_test(test_under),    cmocka_unit_test(test_under_names_only_functions_by_their_last_part),
		cmocka_unit_test(test_hide),     cmocka_unit_test(test_own_only),
		cmocka_unit_test(test_patterns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* What filters match in the functions of tasks that await another one. */
#include "profiles.h"
#include "profile/edit.h"

static void assert_edited(const struct profile *from, const struct profile_edit *edit, const char *folded)
{
	struct profile *to = new_profile();
	struct error error;

	assert_int_equal(profile_edit_add(to, from, edit, &error), 0);
	assert_folded(to, folded);
	profile_free(to);
}

static uint32_t note_on(struct profile *p, uint32_t stack, const char *name)
{
	return profile_add_stack(p, stack,
				 profile_add_frame(p, PROFILE_NOTE, name, "", PROFILE_NO_LINE, PROFILE_NO_LINE));
}

static uint32_t awaits(struct profile *p, uint32_t stack, const char *what)
{
	return profile_add_stack(p, stack, profile_add_wait(p, PROFILE_STATE_SUSPENDED, what, 0));
}

/*
 * The tasks "a" and "b" await tasks of one function, "a" in handle. It also does without, in half: then nobody knows
 * when it awaits. Returns the profile of which the folded stacks are in the test.
 */
static struct profile *tasks(bool half)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 42, "web"), run = on(p, PROFILE_ROOT, "run", "loop.py", 1);
	uint32_t suspended = note_on(p, PROFILE_ROOT, "[suspended tasks]");
	uint32_t a = note_on(p, suspended, "[task: a]"), b = note_on(p, suspended, "[task: b]");
	uint32_t fetch = on(p, note_on(p, note_on(p, run, "[task: a]"), "[task: x]"), "fetch", "app.py", 3);
	uint32_t other = on(p, note_on(p, note_on(p, run, "[task: b]"), "[task: x]"), "fetch", "app.py", 3);
	uint32_t deep = on(p, note_on(p, note_on(p, a, "[task: x]"), "[task: y]"), "read", "app.py", 4);

	take_in(p, awaits(p, on(p, a, "handle", "app.py", 1), "[awaits: Future]"), owner, 1);
	take_in(p, awaits(p, on(p, b, "page", "app.py", 2), "[awaits: Future]"), owner, 2);
	take_in(p, fetch, owner, 4);
	take_in(p, other, owner, 8);
	take_in(p, awaits(p, deep, "[awaits: Future]"), owner, 16);
	/* Where it does not await. */
	take_in(p, awaits(p, on(p, a, "start", "app.py", 5), "[awaits: first step]"), owner, 64);
	take_in(p, on(p, note_on(p, run, "[task: a]"), "start", "app.py", 5), owner, 128);
	if (half)
		take_in(p, awaits(p, on(p, a, "tidy", "app.py", 9), "[awaits: Future]"), owner, 32);
	return p;
}

#define STACK_HANDLE "[suspended tasks];[task: a];handle (app.py:1);[awaits: Future] 1\n"
#define STACK_FETCH  "run (loop.py:1);[task: a];[task: x];fetch (app.py:3) 4\n"
#define STACK_READ   "[suspended tasks];[task: a];[task: x];[task: y];read (app.py:4);[awaits: Future] 16\n"
#define STACK_PAGE   "[suspended tasks];[task: b];page (app.py:2);[awaits: Future] 2\n"
#define STACK_OTHER  "run (loop.py:1);[task: b];[task: x];fetch (app.py:3) 8\n"
#define STACK_TIDY   "[suspended tasks];[task: a];tidy (app.py:9);[awaits: Future] 32\n"

#define STACK_START                                                                                                    \
	"[suspended tasks];[task: a];start (app.py:5);[awaits: first step] 64\nrun (loop.py:1);[task: a];start "       \
	"(app.py:5) 128\n"

static void test_tasks_that_await(void **unused)
{
	struct profile *p = tasks(false), *half = tasks(true);
	struct profile_edit edit = {.under = NULL};

	(void)unused;
	profile_edit_add_text(&edit.focus, "^handle ");
	assert_edited(p, &edit, STACK_HANDLE STACK_FETCH STACK_READ);
	assert_edited(half, &edit, STACK_HANDLE);
	profile_edit_free(&edit);
	profile_edit_add_text(&edit.ignore, "^handle ");
	assert_edited(p, &edit, STACK_PAGE STACK_OTHER STACK_START);
	assert_edited(half, &edit, STACK_PAGE STACK_FETCH STACK_OTHER STACK_READ STACK_START STACK_TIDY);
	profile_edit_free(&edit);
	/* It is not known where tasks await that were only seen running. */
	profile_edit_add_text(&edit.focus, "^fetch ");
	assert_edited(p, &edit, STACK_FETCH STACK_OTHER);
	profile_edit_free(&edit);
	profile_free(half);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tasks_that_await),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

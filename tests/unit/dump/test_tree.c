// SPDX-License-Identifier: Apache-2.0
/* Ways through tasks that await each other in any way: each is visited once, and cycles end. */
#include "dump/tasks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MOST 40000

struct reported {
	char text[4096];
	size_t tasks, again, cycles;
	uint8_t seen[MOST];
};

static void take(struct reported *reported, uint32_t task)
{
	assert_int_equal(reported->seen[task]++, 0);
	reported->tasks++;
}

/* Writes the steps as "0 -1 --2 =1": tasks by their depth, those that were seen before, and cycles. */
static void tell(const struct dump_step *step, void *arg)
{
	struct reported *reported = arg;
	size_t used = strlen(reported->text);

	if (used + 64 < sizeof(reported->text))
		snprintf(reported->text + used, sizeof(reported->text) - used, "%s%.*s%s%u", used ? " " : "",
			 step->depth > 9 ? 9 : (int)step->depth, "---------",
			 step->kind == DUMP_STEP_TASK    ? ""
			 : step->kind == DUMP_STEP_AGAIN ? "^"
							 : "=",
			 step->task);
	if (step->kind == DUMP_STEP_TASK) {
		take(reported, step->task);
		for (size_t i = 0; i < step->nr_alike; i++) {
			take(reported, step->alike[i]);
			used = strlen(reported->text);
			if (used + 64 < sizeof(reported->text))
				snprintf(reported->text + used, sizeof(reported->text) - used, "+%u", step->alike[i]);
		}
	}
	reported->again += step->kind == DUMP_STEP_AGAIN;
	if (step->kind != DUMP_STEP_CYCLE)
		return;
	reported->cycles++;
	assert_true(step->begin < step->depth);
	assert_int_equal(step->path[step->begin], step->task);
}

struct made {
	struct dump_tasks tasks;
	struct reported reported;
};

static struct made *make(size_t count)
{
	struct made *made = calloc(1, sizeof(*made));

	made->tasks.items = calloc(count, sizeof(*made->tasks.items));
	made->tasks.count = count;
	for (size_t i = 0; i < count; i++) {
		char awaits[24];

		snprintf(awaits, sizeof(awaits), "%zu", i);
		made->tasks.items[i] = (struct dump_task){.id = i, .awaits = strdup(awaits)};
	}
	return made;
}

static void link_tasks(struct made *made, uint32_t awaiter, uint32_t task)
{
	struct dump_task *of = &made->tasks.items[task];

	of->awaiters = realloc(of->awaiters, (of->nr_awaiters + 1) * sizeof(*of->awaiters));
	of->awaiters[of->nr_awaiters++] = awaiter;
}

static void visit(struct made *made)
{
	assert_int_equal(dump_visit_tasks(&made->tasks, tell, &made->reported), 0);
	assert_int_equal(made->reported.tasks, made->tasks.count);
}

static void drop(struct made *made)
{
	dump_tasks_free(&made->tasks);
	free(made);
}

static void no_tasks(void **unused)
{
	struct made *made = make(0);

	(void)unused;
	visit(made);
	assert_string_equal(made->reported.text, "");
	drop(made);
}

static void awaited_by_several(void **unused)
{
	struct made *made = make(5);

	(void)unused;
	link_tasks(made, 1, 0);
	link_tasks(made, 3, 0);
	link_tasks(made, 0, 2);
	link_tasks(made, 3, 4);
	visit(made);
	assert_string_equal(made->reported.text, "1 -0 --2 3 -^0 -4");
	drop(made);
}

/* One that is awaited from outside, one that is not, and a task that awaits itself. */
static void cycles(void **unused)
{
	struct made *made = make(8);

	(void)unused;
	link_tasks(made, 1, 2);
	link_tasks(made, 2, 3);
	link_tasks(made, 3, 1);
	link_tasks(made, 0, 1);
	link_tasks(made, 3, 4);
	link_tasks(made, 5, 6);
	link_tasks(made, 6, 5);
	link_tasks(made, 7, 7);
	visit(made);
	assert_string_equal(made->reported.text, "0 -1 --2 ---3 ----=1 ----4 5 -6 --=5 7 -=7");
	drop(made);
}

/* Tasks that hang on a cycle, and come before it, are below it. */
static void behind_a_cycle(void **unused)
{
	struct made *made = make(4);

	(void)unused;
	link_tasks(made, 1, 0);
	link_tasks(made, 2, 1);
	link_tasks(made, 3, 2);
	link_tasks(made, 2, 3);
	visit(made);
	assert_int_equal(made->reported.cycles, 1);
	assert_true(!strcmp(made->reported.text, "2 -1 --0 -3 --=2") ||
		    !strcmp(made->reported.text, "3 -2 --1 ---0 --=3"));
	drop(made);
}

static void tasks_that_are_alike(void **unused)
{
	struct made *made = make(7);

	(void)unused;
	for (uint32_t i = 1; i < 7; i++) {
		free(made->tasks.items[i].awaits);
		made->tasks.items[i].awaits = strdup(i % 2 ? "one" : "other");
		link_tasks(made, 0, i);
	}
	made->tasks.items[5].stack = 3;
	made->tasks.items[6].is_moving = true;
	visit(made);
	assert_string_equal(made->reported.text, "0 -1+3 -2+4 -5 -6");
	drop(made);
}

/* Those of another thread's loop are told apart. */
static void alike_in_other_loops(void **unused)
{
	struct made *made = make(5);

	(void)unused;
	for (uint32_t i = 1; i < 5; i++) {
		free(made->tasks.items[i].awaits);
		made->tasks.items[i].awaits = strdup("one");
		made->tasks.items[i].tstate = i % 2 ? 0x1000 : 0x2000;
	}
	visit(made);
	assert_string_equal(made->reported.text, "0 1+3 2+4");
	drop(made);
}

static void a_long_way(void **unused)
{
	struct made *made = make(MOST);

	(void)unused;
	for (uint32_t i = 0; i + 1 < MOST; i++)
		link_tasks(made, i + 1, i);
	visit(made);
	/* A circle that is too long to be told. */
	link_tasks(made, 0, MOST - 1);
	made->reported = (struct reported){.tasks = 0};
	visit(made);
	assert_int_equal(made->reported.cycles, 0);
	assert_int_equal(made->reported.again, 1);
	drop(made);
}

/* All tasks await each other: no end of cycles. */
static void everything_awaits_everything(void **unused)
{
	struct made *made = make(400);

	(void)unused;
	for (uint32_t i = 0; i < 400; i++) {
		for (uint32_t j = 0; j < 400; j++)
			link_tasks(made, i, j);
	}
	visit(made);
	assert_int_equal(made->reported.cycles, 1000);
	drop(made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_tasks),
		cmocka_unit_test(awaited_by_several),
		cmocka_unit_test(cycles),
		cmocka_unit_test(behind_a_cycle),
		cmocka_unit_test(a_long_way),
		cmocka_unit_test(tasks_that_are_alike),
		cmocka_unit_test(alike_in_other_loops),
		cmocka_unit_test(everything_awaits_everything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

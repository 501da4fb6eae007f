// SPDX-License-Identifier: Apache-2.0
/* Goes through tasks as a tree, although tasks may await each other in any way. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "dump/tasks.h"

/* Most cycles that are printed, and tasks of one of them: a process may have all tasks await each other. */
#define MAX_CYCLES 1000
#define MAX_CYCLE  1000

enum mark {
	NOT_VISITED,
	ON_PATH,
	VISITED,
};

/* What tasks that are printed together have in common; the key is all but the last member. */
struct group {
	uint64_t tstate;
	uint32_t awaiter; /* index; UINT32_MAX: none */
	uint32_t stack;
	uint32_t awaits; /* index of the text */
	uint32_t flags;
	uint32_t last; /* of them, so far */
	uint32_t pad;
};

/* Tasks with one awaiter, and the next of them to be visited. */
struct level {
	const uint32_t *items;
	size_t count, at;
};

struct tree {
	const struct dump_tasks *tasks;
	size_t *first;      /* of a task's awaited ones in `awaited`; one more, for the end */
	uint32_t *awaited;  /* indexes of tasks */
	uint8_t *marks;     /* enum mark */
	uint32_t *path;     /* the tasks on it */
	uint32_t *places;   /* of each task on the path */
	struct level *open; /* what is awaited by those */
	size_t depth, cycles;
	uint32_t *next_alike; /* the next task of its group; 0: none */
	bool *follows;        /* it is printed with an earlier one of its group */
	uint32_t *alike;
	void (*visit)(const struct dump_step *step, void *arg);
	void *arg;
};

static void free_tree(struct tree *t)
{
	free(t->first);
	free(t->awaited);
	free(t->marks);
	free(t->path);
	free(t->places);
	free(t->open);
	free(t->next_alike);
	free(t->follows);
	free(t->alike);
}

/* Turns "is awaited by" around. */
static int make_tree(struct tree *t)
{
	const struct dump_tasks *tasks = t->tasks;
	size_t links = 0, n = tasks->count;

	for (size_t i = 0; i < n; i++)
		links += tasks->items[i].nr_awaiters;
	t->first = calloc(n + 2, sizeof(*t->first));
	t->awaited = calloc(links + 1, sizeof(*t->awaited));
	t->marks = calloc(n + 1, sizeof(*t->marks));
	t->path = calloc(n + 1, sizeof(*t->path));
	t->places = calloc(n + 1, sizeof(*t->places));
	t->open = calloc(n + 1, sizeof(*t->open));
	t->next_alike = calloc(n + 1, sizeof(*t->next_alike));
	t->follows = calloc(n + 1, sizeof(*t->follows));
	t->alike = calloc(n + 1, sizeof(*t->alike));
	if (!t->first || !t->awaited || !t->marks || !t->path || !t->places || !t->open || !t->next_alike ||
	    !t->follows || !t->alike)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < tasks->items[i].nr_awaiters; j++)
			t->first[tasks->items[i].awaiters[j] + 2]++;
	}
	for (size_t i = 2; i < n + 2; i++)
		t->first[i] += t->first[i - 1];
	/* Each is the end of those so far, and with all of them the start of the next one's. */
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < tasks->items[i].nr_awaiters; j++)
			t->awaited[t->first[tasks->items[i].awaiters[j] + 1]++] = (uint32_t)i;
	}
	return 0;
}

/* Returns whether the task may be printed with others: it is suspended, awaits no task, and at most one awaits it. */
static bool may_be_alike(const struct tree *t, uint32_t i)
{
	const struct dump_task *task = &t->tasks->items[i];

	return task->awaits && t->first[i] == t->first[i + 1] && task->nr_awaiters <= 1;
}

static int join_group(struct tree *t, struct intern *groups, struct intern *texts, uint32_t i)
{
	const struct dump_task *task = &t->tasks->items[i];
	bool fresh;
	struct group group = {
		.tstate = task->tstate,
		.awaiter = task->nr_awaiters ? task->awaiters[0] : UINT32_MAX,
		.stack = task->stack,
		.awaits = intern_add(texts, &task->awaits, &fresh),
		.flags = (task->is_moving ? 1 : 0) | (task->has_others ? 2 : 0),
		.last = i,
	};
	uint32_t at = intern_add(groups, &group, &fresh);
	struct group *of;

	if (group.awaits == INTERN_NONE || at == INTERN_NONE)
		return -ENOMEM;
	if (fresh)
		return 0;
	of = intern_item(groups, at);
	t->next_alike[of->last] = i;
	t->follows[i] = true;
	of->last = i;
	return 0;
}

static int find_alike(struct tree *t)
{
	struct intern groups = INTERN_INIT(sizeof(struct group), offsetof(struct group, last));
	struct intern texts = INTERN_INIT(sizeof(char *), INTERN_TEXT);
	int err = 0;

	for (uint32_t i = 0; i < t->tasks->count && !err; i++)
		err = may_be_alike(t, i) ? join_group(t, &groups, &texts, i) : 0;
	intern_free(&groups);
	intern_free(&texts);
	return err;
}

/* Puts the others of the task's group into `alike`. Returns their number. */
static size_t list_alike(struct tree *t, uint32_t task)
{
	size_t count = 0;

	for (uint32_t i = t->next_alike[task]; i; i = t->next_alike[i])
		t->alike[count++] = i;
	return count;
}

/* Returns whether the task, which is on the path, is reported as the end of a cycle. */
static bool closes_cycle(struct tree *t, uint32_t task, struct dump_step *step)
{
	step->begin = t->places[task];
	return t->depth - step->begin <= MAX_CYCLE && t->cycles++ < MAX_CYCLES;
}

static void visit_one(struct tree *t, uint32_t task)
{
	struct dump_step step = {.task = task, .path = t->path, .depth = t->depth, .alike = t->alike};
	enum mark mark = t->marks[task];

	if (t->follows[task])
		return;
	if (mark != NOT_VISITED) {
		step.kind = mark == ON_PATH && closes_cycle(t, task, &step) ? DUMP_STEP_CYCLE : DUMP_STEP_AGAIN;
		t->visit(&step, t->arg);
		return;
	}
	t->marks[task] = ON_PATH;
	step.nr_alike = list_alike(t, task);
	t->visit(&step, t->arg);
	t->open[t->depth] = (struct level){t->awaited + t->first[task], t->first[task + 1] - t->first[task], 0};
	t->places[task] = (uint32_t)t->depth;
	t->path[t->depth++] = task;
}

/* Visits the tasks of a level, and all that they await. */
static void visit_below(struct tree *t, struct level *roots)
{
	while (roots->at < roots->count || t->depth) {
		struct level *level = t->depth ? &t->open[t->depth - 1] : roots;

		if (level->at < level->count) {
			visit_one(t, level->items[level->at++]);
		} else {
			t->marks[t->path[--t->depth]] = VISITED;
		}
	}
}

static uint32_t first_awaiter(const struct tree *t, uint32_t task)
{
	return t->tasks->items[task].awaiters[0];
}

/* Returns a task of a cycle that leads to this one. Both were not visited, so that each on the way has an awaiter. */
static uint32_t find_on_cycle(const struct tree *t, uint32_t task)
{
	uint32_t slow = first_awaiter(t, task), fast = first_awaiter(t, slow);

	while (slow != fast) { /* Floyd's */
		slow = first_awaiter(t, slow);
		fast = first_awaiter(t, first_awaiter(t, fast));
	}
	return slow;
}

int dump_visit_tasks(const struct dump_tasks *tasks, void (*visit)(const struct dump_step *step, void *arg), void *arg)
{
	struct tree t = {.tasks = tasks, .visit = visit, .arg = arg};
	uint32_t *roots = calloc(tasks->count + 1, sizeof(*roots));
	struct level level = {.items = roots};
	int err = roots ? make_tree(&t) ?: find_alike(&t) : -ENOMEM;

	for (uint32_t i = 0; i < tasks->count && !err; i++) {
		if (!tasks->items[i].nr_awaiters)
			roots[level.count++] = i;
	}
	if (!err)
		visit_below(&t, &level);
	for (uint32_t i = 0; i < tasks->count && !err; i++) {
		if (t.marks[i] == NOT_VISITED && !t.follows[i]) {
			roots[0] = find_on_cycle(&t, i);
			level = (struct level){roots, 1, 0};
			visit_below(&t, &level);
		}
	}
	free_tree(&t);
	free(roots);
	return err;
}

// SPDX-License-Identifier: Apache-2.0
/* Finds the tasks that await a task: directly, or by way of futures such as gather()'s. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "symbols/tasks/task_reader.h"

/* Most places of a set that are looked at. */
#define SET_ENTRIES 4096

/* What awaits a task: tasks, and futures between. */
struct awaiters {
	uint64_t objects[2 * TASK_READ_AWAITERS];
	uint32_t count;
	bool more;
};

static void add_awaiter(struct awaiters *awaiters, uint64_t object)
{
	for (uint32_t i = 0; i < awaiters->count; i++) {
		if (awaiters->objects[i] == object)
			return;
	}
	if (awaiters->count == sizeof(awaiters->objects) / sizeof(*awaiters->objects))
		awaiters->more = true;
	else
		awaiters->objects[awaiters->count++] = object;
}

static int add_key(struct task_reader *r, uint64_t key, void *arg)
{
	(void)r;
	add_awaiter(arg, key);
	return 0;
}

/* Returns 0, or -EAGAIN if it is no set (any more). */
static int add_set(struct task_reader *r, uint64_t set, struct awaiters *awaiters)
{
	int err = task_read_set(r, set, SET_ENTRIES, add_key, awaiters);

	awaiters->more = awaiters->more || err == -E2BIG;
	return err == -E2BIG ? 0 : err;
}

/*
 * In Python 3.7 to 3.13 a future does not point to what awaits it. One of its callbacks does, which wakes the task that
 * awaits it or is gather()'s; as in bpf/awaiter.bpf.h, which looks at the first one only.
 */

/* Most callbacks of a future that are looked at. */
#define CALLBACKS 256

/* Returns whether a callback is the function that gather() makes (in 3.9 _gather()), by its qualified name. */
static bool is_of_gather(struct task_reader *r, uint64_t callback)
{
	static const char name[] = "gather.<locals>._done_callback";
	const struct pybpf_layout *l = &r->place->layout;
	uint32_t at = task_head_size(r) + l->function_qualname;
	uint64_t string = task_pointer_at(r, callback + at) + l->str_ascii_data;
	char text[sizeof(name)];

	if (task_read_at(r, string, text, 1))
		return false;
	return !task_read_at(r, string + (text[0] == '_'), text, sizeof(text)) && !memcmp(text, name, sizeof(name));
}

/* Returns the future of the gather() that a callback is of: a variable of the callback's outer function; or 0. */
static uint64_t gathering_future(struct task_reader *r, uint64_t callback)
{
	uint32_t head = task_head_size(r);
	uint64_t cells = task_pointer_at(r, callback + head + r->place->layout.function_closure),
		 count = cells ? task_pointer_at(r, cells + head + PYBPF_VAR_SIZE) : 0;

	if (!count || count > PYBPF_GATHER_CELLS || !is_of_gather(r, callback))
		return 0;
	/* The first field of a PyCellObject is ob_ref. */
	for (uint64_t i = 0; i < count; i++) {
		uint64_t object = task_pointer_at(
			r, task_pointer_at(r, cells + head + r->place->layout.tuple_items + 8 * i) + head);
		const struct task_type *type = object ? task_type_of(r, object) : NULL;

		if (type && type->kind == TASK_KIND_FUTURE && !strcmp(type->name, "_GatheringFuture"))
			return object;
	}
	return 0;
}

static void add_callback(struct task_reader *r, uint64_t callback, uint64_t object, struct awaiters *awaiters)
{
	uint32_t at = task_head_size(r) + r->place->layout.wakeup_task;
	uint64_t task = task_pointer_at(r, callback + at), waiter = 0;
	const struct task_type *type = task ? task_type_of(r, task) : NULL;

	if (type && type->kind == TASK_KIND_TASK)
		waiter = task_pointer_at(r, task + r->place->runtime.asyncio.task_coro - PYBPF_WAITER_BEFORE_CORO);
	if (waiter != object)
		task = gathering_future(r, callback);
	if (task)
		add_awaiter(awaiters, task);
}

/* Adds what the callbacks of a task or future, which was read ahead, wake. Returns 0. */
static int add_old_awaiters_of(struct task_reader *r, uint64_t object, struct awaiters *awaiters)
{
	uint32_t head = task_head_size(r);
	uint64_t first = task_pointer_at(r, object + head + PYBPF_FUTURE_CALLBACK0),
		 list = task_pointer_at(r, object + head + PYBPF_FUTURE_CALLBACKS), count, items;

	if (first)
		add_callback(r, first, object, awaiters);
	/* Its items are tuples whose first item is the callback. */
	count = list ? task_pointer_at(r, list + head + PYBPF_VAR_SIZE) : 0;
	items = list ? task_pointer_at(r, list + head + PYBPF_LIST_ITEMS) : 0;
	for (uint64_t i = 0; items && i < count; i++) {
		uint64_t tuple = task_pointer_at(r, items + 8 * i);

		if (i == CALLBACKS) {
			awaiters->more = true;
			break;
		}
		if (tuple)
			add_callback(r, task_pointer_at(r, tuple + head + r->place->layout.tuple_items), object,
				     awaiters);
	}
	return 0;
}

/* Adds what awaits a task or a future, which was read ahead. Returns as add_set() does. */
static int add_awaiters_of(struct task_reader *r, uint64_t object, struct awaiters *awaiters)
{
	const struct pybpf_asyncio *asyncio = &r->place->runtime.asyncio;
	uint64_t by;
	uint8_t is_set = 0;

	if (task_is_old(r))
		return add_old_awaiters_of(r, object, awaiters);
	by = task_pointer_at(r, object + asyncio->awaited_by);
	if (task_read_at(r, object + asyncio->awaited_by_is_set, &is_set, sizeof(is_set)))
		return -EAGAIN;
	if (by && is_set)
		return add_set(r, by, awaiters);
	if (by)
		add_awaiter(awaiters, by);
	return 0;
}

void task_read_old_chain(struct task_reader *r, uint64_t object, struct task_read *out)
{
	for (int i = 0; i < PYBPF_TASK_STEPS && object; i++) {
		struct awaiters awaiters = {.count = 0};

		out->objects = task_mix(out->objects, object);
		if (task_look_at(r, object) == TASK_KIND_TASK) {
			if (out->nr_tasks == PYBPF_TASKS)
				break;
			task_take_name(r, object, &out->tasks[out->nr_tasks++]);
			task_look_ahead(r, object);
		}
		add_old_awaiters_of(r, object, &awaiters);
		if (awaiters.count > 1 || awaiters.more) {
			out->flags |= PYBPF_TASKS_SEVERAL;
			return;
		}
		object = awaiters.count ? awaiters.objects[0] : 0;
	}
	if (object)
		out->flags |= PYBPF_TASKS_MORE;
}

/* Takes the name of a task that was read ahead. Returns its identity. */
static uint64_t identify(struct task_reader *r, uint64_t task, struct pybpf_task_name *name)
{
	/* Tasks and their coroutines lie in rows of equal distances: their addresses are mixed one after the other. */
	uint64_t hash = task_mix(task_mix(0, task), task_pointer_at(r, task + r->place->runtime.asyncio.task_coro)),
		 word;

	task_take_name(r, task, name);
	hash = task_mix(hash, (uint64_t)name->form << 32 | name->size);
	for (size_t i = 0; i < sizeof(name->text); i += sizeof(word)) {
		memcpy(&word, name->text + i, sizeof(word));
		hash = task_mix(hash, word);
	}
	return hash;
}

static void keep_awaiter(struct task_reader *r, uint64_t task, struct task_read *out)
{
	struct pybpf_task_name name;

	if (out->nr_awaiters == TASK_READ_AWAITERS)
		out->tree |= TASK_TREE_MORE;
	else
		out->awaiters[out->nr_awaiters++] =
			(struct task_read_awaiter){.address = task, .identity = identify(r, task, &name)};
}

int task_read_node(struct task_reader *r, uint64_t task, struct task_read *out)
{
	struct awaiters awaiters = {.count = 0};
	int err = add_awaiters_of(r, task, &awaiters);

	task_look_ahead(r, task);
	out->identity = identify(r, task, &out->tasks[0]);
	out->nr_tasks = 1;
	for (uint32_t i = 0; i < awaiters.count && !err; i++) {
		uint64_t object = awaiters.objects[i];
		enum task_kind kind = task_look_at(r, object);

		out->objects = task_mix(out->objects, object);
		if (kind == TASK_KIND_TASK)
			keep_awaiter(r, object, out);
		else if (kind == TASK_KIND_FUTURE)
			err = add_awaiters_of(r, object, &awaiters);
		else
			out->tree |= TASK_TREE_OTHERS;
	}
	out->tree |= awaiters.more ? TASK_TREE_MORE : 0;
	return err;
}

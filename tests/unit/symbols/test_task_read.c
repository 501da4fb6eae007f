// SPDX-License-Identifier: Apache-2.0
/* Tasks in memory that the test makes: functions, what they await, lists that change, and memory that lies. */
#include "walk_world.h"

#include "symbols/tasks/task_read.h"

#define THREAD_NODE 32
#define TASK_ROOM   256

struct loop {
	struct world *w;
	uint64_t interp, tstate, thread_list;
	uint64_t task_type, future_type, iter_type, coro_type, gen_type, agen_type, asend_type, str_type, int_type;
	struct task_reader *reader;
	struct walk_memory memory;
	struct task_read_place place;
	struct task_read_counts counts;
	const struct task_read *task;
	bool whole_tree;
};

static uint32_t head_size(const struct world *w)
{
	return w->l.code_type + 8u;
}

static uint64_t make_bytes(struct world *w, const char *text)
{
	uint64_t addr = make(w, strlen(text) + 1 + BEHIND);

	memcpy(bytes_at(w, addr, strlen(text) + 1), text, strlen(text) + 1);
	return addr;
}

static uint64_t make_type(struct world *w, const char *name, uint64_t flags, uint64_t base)
{
	uint64_t type = make(w, head_size(w) + 400);

	put_ptr(w, type + head_size(w), PYBPF_TYPE_NAME, make_bytes(w, name));
	put_ptr(w, type + head_size(w), PYBPF_TYPE_FLAGS, flags);
	put_ptr(w, type + head_size(w), PYBPF_TYPE_BASE, base);
	return type;
}

static uint64_t make_object(struct world *w, uint64_t type, size_t size)
{
	uint64_t object = make(w, head_size(w) + size);

	put_ptr(w, object, w->l.code_type, type);
	return object;
}

static void link_first(struct loop *loop, uint64_t list, uint64_t node)
{
	struct world *w = loop->w;
	uint64_t last;

	memcpy(&last, bytes_at(w, list + 8, 8), 8);
	put_ptr(w, node, 0, list);
	put_ptr(w, node, 8, last);
	put_ptr(w, last, 0, node);
	put_ptr(w, list, 8, node);
}

static uint64_t make_list(struct world *w)
{
	uint64_t list = make(w, THREAD_NODE);

	put_ptr(w, list, 0, list);
	put_ptr(w, list, 8, list);
	return list;
}

static void begin(struct loop *loop, struct world *w)
{
	*loop = (struct loop){.w = w, .reader = task_reader_new()};
	assert_non_null(loop->reader);
	w->proc.asyncio = (struct pybpf_asyncio){
		.running_task = 64,
		.task_name = (uint8_t)(head_size(w) + 8),
		.task_coro = (uint8_t)(head_size(w) + 16),
		.awaited_by = (uint8_t)(head_size(w) + 24),
		.awaited_by_is_set = (uint8_t)(head_size(w) + 32),
		.task_node = (uint8_t)(head_size(w) + 40),
	};
	loop->interp = make_interp(w);
	w->proc.asyncio.interp_tasks = (uint32_t)(make_list(w) - loop->interp);
	loop->tstate = make_thread(w, loop->interp, THREAD, 0);
	loop->thread_list = make_list(w);
	w->proc.asyncio.thread_tasks = (uint16_t)(loop->thread_list - loop->tstate);
	/* Where nothing else of the thread state is. */
	w->proc.asyncio.running_task = (uint16_t)(w->proc.asyncio.thread_tasks + 16);
	put_ptr(w, loop->tstate, w->proc.asyncio.running_task, 0);
	loop->future_type = make_type(w, "_asyncio.Future", PYBPF_TPFLAGS_HEAPTYPE, 0);
	loop->task_type = make_type(w, "_asyncio.Task", PYBPF_TPFLAGS_HEAPTYPE, 0);
	loop->iter_type = make_type(w, "_asyncio.FutureIter", PYBPF_TPFLAGS_HEAPTYPE, 0);
	loop->coro_type = make_type(w, "coroutine", 0, 0);
	loop->gen_type = make_type(w, "generator", 0, 0);
	loop->agen_type = make_type(w, "async_generator", 0, 0);
	loop->asend_type = make_type(w, "async_generator_asend", 0, 0);
	loop->str_type = make_type(w, "str", PYBPF_TPFLAGS_UNICODE_SUBCLASS, 0);
	loop->int_type = make_type(w, "int", PYBPF_TPFLAGS_LONG_SUBCLASS, 0);
}

static void end(struct loop *loop)
{
	task_reader_free(loop->reader);
}

static uint64_t make_task(struct loop *loop, uint64_t coro)
{
	struct world *w = loop->w;
	const struct pybpf_asyncio *a = &w->proc.asyncio;
	uint64_t task = make_object(w, loop->task_type, TASK_ROOM), name = make_text(w, 4);

	put_ptr(w, name, w->l.code_type, loop->str_type);
	put_ptr(w, task, a->task_name, name);
	put_ptr(w, task, a->task_coro, coro);
	put_ptr(w, task, a->awaited_by, 0);
	put(w, task, a->awaited_by_is_set, 0, 1);
	link_first(loop, loop->thread_list, task + a->task_node);
	return task;
}

/* The states of the version. */
enum state {
	CREATED,
	YIELDED,
	AWAITS,
	RUNS,
	ENDED,
};

static void set_state(struct world *w, uint64_t gen, enum state state)
{
	static const int8_t of_314[] = {-3, -2, -1, 0, 4}, of_315[] = {0, 1, 2, 4, 5};

	put(w, gen, w->l.gen_state, (uint8_t)(w->l.minor >= 15 ? of_315 : of_314)[state], 1);
}

static uint64_t make_gen(struct loop *loop, uint64_t type, uint64_t code, enum state state, uint64_t awaited)
{
	struct world *w = loop->w;
	uint64_t gen = make(w, w->l.gen_frame + w->l.frame_window + 64 + BEHIND), frame = gen + w->l.gen_frame, end;

	put_ptr(w, gen, w->l.code_type, type);
	set_state(w, gen, state);
	put_ptr(w, frame, w->l.frame_code, code);
	put_ptr(w, frame, w->l.frame_previous, 0);
	put_ptr(w, frame, w->l.frame_position, code + 300);
	put_ptr(w, frame, w->l.frame_mark, 0x1000);
	put(w, frame, w->l.frame_owner, 1, 1);
	put(w, frame, w->l.frame_tlbc_index, 0, 4);
	end = frame + w->l.frame_window + 32;
	put_ptr(w, frame, w->l.frame_stack, end);
	put_ptr(w, end - (w->l.minor >= 15 ? 16 : 8), 0, awaited ? awaited | 1 : 0); /* a borrowed reference */
	return gen;
}

static uint64_t make_holder(struct loop *loop, uint64_t type, uint64_t held)
{
	uint64_t object = make_object(loop->w, type, 32);

	put_ptr(loop->w, object + head_size(loop->w), 0, held);
	return object;
}

static uint64_t make_future(struct loop *loop, uint64_t type)
{
	struct world *w = loop->w;
	uint64_t future = make_object(w, type, TASK_ROOM);

	put_ptr(w, future, w->proc.asyncio.awaited_by, 0);
	put(w, future, w->proc.asyncio.awaited_by_is_set, 0, 1);
	return make_holder(loop, loop->iter_type, future);
}

static void find_with(struct loop *loop, const struct walk_memory *memory)
{
	loop->counts = (struct task_read_counts){0};
	loop->place = (struct task_read_place){
		.layout = loop->w->l, .runtime = loop->w->proc, .proc_id = 7, .whole_tree = loop->whole_tree};
	assert_int_equal(task_reader_find(loop->reader, memory, &loop->place, &loop->counts), 0);
}

/* Finds the tasks and reads the first one. Returns as task_reader_next() does. */
static int read_first(struct loop *loop)
{
	loop->memory = (struct walk_memory){.read = world_read, .source = loop->w};
	find_with(loop, &loop->memory);
	return task_reader_next(loop->reader, &loop->task, &loop->counts);
}

static bool has_tasks(const struct world *w)
{
	return w->l.gen_frame != 0;
}

static void functions_and_future(struct world *w)
{
	uint64_t outer, inner, coro;
	struct loop loop;

	if (!has_tasks(w))
		return;
	begin(&loop, w);
	outer = make_code(w, 10);
	inner = make_code(w, 20);
	coro = make_gen(&loop, loop.coro_type, inner, AWAITS, make_future(&loop, loop.future_type));
	make_task(&loop, make_gen(&loop, loop.coro_type, outer, AWAITS, coro));
	assert_int_equal(read_first(&loop), 1);
	assert_int_equal(loop.task->nr_frames, 2);
	assert_int_equal(loop.task->frames[0].code, outer);
	assert_int_equal(loop.task->frames[0].position, 300);
	assert_int_equal(loop.task->frames[1].code, inner);
	assert_int_equal(loop.task->awaits, TASK_AWAITS_OBJECT);
	assert_string_equal(loop.task->type, "_asyncio.Future");
	assert_int_equal(loop.task->nr_tasks, 1);
	assert_int_equal(loop.task->tasks[0].form, PYBPF_TASK_ASCII);
	assert_memory_equal(loop.task->tasks[0].text, "aaaa", 5);
	assert_int_equal(task_reader_next(loop.reader, &loop.task, &loop.counts), -ENOENT);
	end(&loop);
}
LAYOUT_TEST(functions_and_future)

/* An asynchronous generator behind its asend(), a generator's bare yield, an object of a type that is not known. */
static void other_awaitables(struct world *w)
{
	uint64_t code, agen, other;
	struct loop loop;

	if (!has_tasks(w))
		return;
	begin(&loop, w);
	code = make_code(w, 10);
	agen = make_gen(&loop, loop.agen_type, code, AWAITS, make_gen(&loop, loop.gen_type, code, YIELDED, 0));
	make_task(&loop, make_gen(&loop, loop.coro_type, code, AWAITS, make_holder(&loop, loop.asend_type, agen)));
	assert_int_equal(read_first(&loop), 1);
	assert_int_equal(loop.task->nr_frames, 3);
	assert_int_equal(loop.task->awaits, TASK_AWAITS_YIELD);
	/* A class of the program that has the name of one of the interpreter's is not taken for it. */
	world_clear(w);
	end(&loop);
	begin(&loop, w);
	code = make_code(w, 10);
	other = make_object(w, make_type(w, "coroutine", PYBPF_TPFLAGS_HEAPTYPE, 0), 64);
	make_task(&loop, make_gen(&loop, loop.coro_type, code, AWAITS, other));
	assert_int_equal(read_first(&loop), 1);
	assert_int_equal(loop.task->nr_frames, 1);
	assert_int_equal(loop.task->awaits, TASK_AWAITS_OBJECT);
	assert_string_equal(loop.task->type, "coroutine");
	/* A coroutine of a foreign type. */
	world_clear(w);
	end(&loop);
	begin(&loop, w);
	make_task(&loop, make_object(w, make_type(w, "_cython_3_1.coroutine", 0, 0), 64));
	assert_int_equal(read_first(&loop), 1);
	assert_int_equal(loop.task->nr_frames, 0);
	assert_int_equal(loop.task->awaits, TASK_AWAITS_INSIDE);
	assert_string_equal(loop.task->type, "_cython_3_1.coroutine");
	end(&loop);
}
LAYOUT_TEST(other_awaitables)

/* A task of a class of the program's own awaits another one; its name is a number yet. */
static void tasks_that_await(struct world *w)
{
	uint64_t code, inner, outer, mine, name;
	struct loop loop;

	if (!has_tasks(w))
		return;
	begin(&loop, w);
	code = make_code(w, 10);
	mine = make_type(w, "Mine", PYBPF_TPFLAGS_HEAPTYPE, loop.task_type);
	inner = make_task(&loop, make_gen(&loop, loop.coro_type, code, CREATED, 0));
	outer = make_task(&loop,
			  make_gen(&loop, loop.coro_type, code, AWAITS, make_holder(&loop, loop.iter_type, inner)));
	name = make_object(w, loop.int_type, 32);
	put_ptr(w, name + head_size(w), PYBPF_LONG_TAG, 1 << 3);
	put(w, name + head_size(w), PYBPF_LONG_DIGITS, 42, 4);
	put_ptr(w, outer, w->proc.asyncio.task_name, name);
	put_ptr(w, outer, w->l.code_type, mine);
	put_ptr(w, inner, w->proc.asyncio.awaited_by, outer);
	assert_int_equal(read_first(&loop), 1);
	assert_int_equal(loop.task->awaits, TASK_AWAITS_FIRST_STEP);
	assert_int_equal(loop.task->nr_tasks, 2);
	assert_int_equal(loop.task->tasks[1].form, PYBPF_TASK_NUMBER);
	assert_int_equal(loop.task->tasks[1].text[0], 42);
	assert_int_equal(task_reader_next(loop.reader, &loop.task, &loop.counts), 1);
	assert_int_equal(loop.task->awaits, TASK_AWAITS_TASK);
	assert_memory_equal(loop.task->awaited.text, "aaaa", 5);
	put(w, inner, w->proc.asyncio.awaited_by_is_set, 1, 1);
	assert_int_equal(read_first(&loop), 1);
	assert_int_equal(loop.task->nr_tasks, 1);
	assert_int_equal(loop.task->flags, PYBPF_TASKS_SEVERAL);
	/* Tasks that await each other in a circle. */
	put(w, inner, w->proc.asyncio.awaited_by_is_set, 0, 1);
	put_ptr(w, outer, w->proc.asyncio.awaited_by, inner);
	assert_int_equal(read_first(&loop), 1);
	assert_int_equal(loop.task->nr_tasks, PYBPF_TASKS);
	assert_int_equal(loop.task->flags, PYBPF_TASKS_MORE);
	end(&loop);
}
LAYOUT_TEST(tasks_that_await)

static void tasks_that_are_not_suspended(struct world *w)
{
	uint64_t code, task, gen, inner;
	struct loop loop;

	if (!has_tasks(w))
		return;
	begin(&loop, w);
	code = make_code(w, 10);
	inner = make_gen(&loop, loop.coro_type, code, AWAITS, make_future(&loop, loop.future_type));
	gen = make_gen(&loop, loop.coro_type, code, AWAITS, inner);
	task = make_task(&loop, gen);
	put_ptr(w, loop.tstate, w->proc.asyncio.running_task, task);
	assert_int_equal(read_first(&loop), 0);
	assert_int_equal(loop.counts.running, 1);
	put_ptr(w, loop.tstate, w->proc.asyncio.running_task, 0);
	set_state(w, gen, RUNS);
	assert_int_equal(read_first(&loop), 0);
	assert_int_equal(loop.counts.running, 1);
	set_state(w, gen, ENDED);
	assert_int_equal(read_first(&loop), 0);
	assert_int_equal(loop.counts.ended, 1);
	/* A suspended function cannot await one that runs or has ended: it was read while it moved. */
	set_state(w, gen, AWAITS);
	set_state(w, inner, RUNS);
	assert_int_equal(read_first(&loop), 0);
	assert_int_equal(loop.counts.moving, 1);
	set_state(w, inner, ENDED);
	assert_int_equal(read_first(&loop), 0);
	assert_int_equal(loop.counts.moving, 1);
	/* No task any more at its place in the list. */
	put_ptr(w, task, w->l.code_type, loop.future_type);
	assert_int_equal(read_first(&loop), 0);
	assert_int_equal(loop.counts.ended, 1);
	end(&loop);
}
LAYOUT_TEST(tasks_that_are_not_suspended)

/* Memory that changes while it is read. */
struct moving {
	struct loop *loop;
	uint64_t code[2], gen;
	uint64_t reads, until;
};

static int read_moving(void *source, uint64_t addr, void *dst, size_t size)
{
	struct moving *m = source;
	struct world *w = m->loop->w;

	m->reads++;
	if (m->reads < m->until) {
		put_ptr(w, m->gen + w->l.gen_frame, w->l.frame_code, m->code[m->reads % 2]);
		put_ptr(w, m->gen + w->l.gen_frame, w->l.frame_position, m->code[m->reads % 2] + m->reads);
		put_ptr(w, m->loop->tstate, w->l.tstate_datastack_top - 24, m->reads);
	}
	return world_read(w, addr, dst, size);
}

static void a_task_that_moves(struct world *w)
{
	const uint64_t whole[] = {0, 30, UINT64_MAX};
	struct loop loop;

	if (!has_tasks(w))
		return;
	begin(&loop, w);
	for (size_t i = 0; i < ARRAY_SIZE(whole); i++) {
		struct moving moving = {.loop = &loop, .until = whole[i]};
		const struct walk_memory memory = {.read = read_moving, .source = &moving};
		int got;

		moving.code[0] = make_code(w, 10);
		moving.code[1] = make_code(w, 20);
		moving.gen = make_gen(&loop, loop.coro_type, moving.code[0], YIELDED, 0);
		if (!i)
			make_task(&loop, moving.gen);
		else
			put_ptr(w, loop.task->address, w->proc.asyncio.task_coro, moving.gen);
		find_with(&loop, &memory);
		moving.reads = 0;
		got = task_reader_next(loop.reader, &loop.task, &loop.counts);
		assert_int_equal(got, whole[i] != UINT64_MAX);
		assert_int_equal(loop.counts.moving, whole[i] == UINT64_MAX);
	}
	end(&loop);
}
LAYOUT_TEST(a_task_that_moves)

static void lists_that_lie(struct world *w)
{
	uint64_t code, node, other;
	struct loop loop;

	if (!has_tasks(w))
		return;
	begin(&loop, w);
	code = make_code(w, 10);
	make_task(&loop, make_gen(&loop, loop.coro_type, code, YIELDED, 0));
	other = make_task(&loop, make_gen(&loop, loop.coro_type, code, YIELDED, 0));
	node = other + w->proc.asyncio.task_node;
	for (size_t i = 0; i < ARRAY_SIZE(wild_pointers); i++) {
		put_ptr(w, node, 0, wild_pointers[i]);
		assert_int_equal(read_first(&loop), 1);
		assert_int_equal(loop.counts.torn, 1);
	}
	/* A circle that does not come to the list's head. */
	put_ptr(w, node, 0, node);
	put_ptr(w, node, 8, node);
	assert_int_equal(read_first(&loop), 1);
	/* A list that was never set up. */
	put_ptr(w, loop.thread_list, 0, 0);
	assert_int_equal(read_first(&loop), -ENOENT);
	assert_int_equal(loop.counts.torn, 0);
	end(&loop);
}
LAYOUT_TEST(lists_that_lie)

static void chains_that_lie(struct world *w)
{
	uint64_t code, gen, end_of_stack;
	struct loop loop;

	if (!has_tasks(w))
		return;
	begin(&loop, w);
	code = make_code(w, 10);
	gen = make_gen(&loop, loop.coro_type, code, AWAITS, 0);
	end_of_stack = gen + w->l.gen_frame + w->l.frame_window + 32;
	make_task(&loop, gen);
	/* It awaits itself. */
	put_ptr(w, end_of_stack - (w->l.minor >= 15 ? 16 : 8), 0, gen);
	assert_int_equal(read_first(&loop), 1);
	assert_int_equal(loop.task->nr_frames, TASK_READ_FRAMES);
	assert_int_equal(loop.task->awaits, TASK_AWAITS_MORE);
	for (size_t i = 0; i < ARRAY_SIZE(wild_pointers); i++) {
		put_ptr(w, end_of_stack - (w->l.minor >= 15 ? 16 : 8), 0, wild_pointers[i] & ~3ULL);
		read_first(&loop);
		put_ptr(w, gen + w->l.gen_frame, w->l.frame_stack, wild_pointers[i]);
		read_first(&loop);
		put_ptr(w, gen + w->l.gen_frame, w->l.frame_stack, end_of_stack);
		put_ptr(w, gen + w->l.gen_frame, w->l.frame_code, wild_pointers[i]);
		assert_int_equal(read_first(&loop), 0);
		put_ptr(w, gen + w->l.gen_frame, w->l.frame_code, code);
		put_ptr(w, gen, w->l.code_type, wild_pointers[i]);
		read_first(&loop);
		put_ptr(w, gen, w->l.code_type, loop.coro_type);
	}
	end(&loop);
}
LAYOUT_TEST(chains_that_lie)

/* Debug offsets that say that characters are far behind the beginning of a string, as no Python has them. */
static void names_that_are_far_away(struct world *w)
{
	struct loop loop;

	if (!has_tasks(w))
		return;
	for (uint16_t at = w->l.str_ascii_data; at < 256; at += 8) {
		world_clear(w);
		w->l.str_ascii_data = at;
		begin(&loop, w);
		make_task(&loop, make_gen(&loop, loop.coro_type, make_code(w, 10), YIELDED, 0));
		assert_int_equal(read_first(&loop), 1);
		assert_memory_equal(loop.task->tasks[0].text, "aaaa", 5);
		end(&loop);
	}
}
LAYOUT_TEST(names_that_are_far_away)

static uint64_t make_set(struct loop *loop, const uint64_t *keys, size_t count)
{
	struct world *w = loop->w;
	uint64_t set = make_object(w, make_type(w, "set", 0, 0), 200), table = make(w, 8 * 16),
		 fields = set + head_size(w);

	put_ptr(w, fields, 16, 7);
	put_ptr(w, fields, 24, table);
	for (size_t i = 0; i < 8; i++) {
		put_ptr(w, table + 16 * i, 0, i < count ? keys[i] : 0);
		put_ptr(w, table + 16 * i, 8, i < count ? i + 1 : 0);
	}
	/* One that was removed. */
	put_ptr(w, table + 16 * 7, 0, loop->task_type);
	put_ptr(w, table + 16 * 7, 8, UINT64_MAX);
	return set;
}

/* Finds the tasks and reads the last one of them, which is awaited. */
static void read_tree(struct loop *loop)
{
	int got = read_first(loop);

	assert_int_equal(got, 1);
	while (task_reader_next(loop->reader, &loop->task, &loop->counts) == 1)
		;
}

/* A task that is awaited by another one, by a future that a third one awaits, and by something else. */
static void trees(struct world *w)
{
	uint64_t code, task[3], future, set;
	struct loop loop;

	if (!has_tasks(w))
		return;
	begin(&loop, w);
	loop.whole_tree = true;
	code = make_code(w, 10);
	for (size_t i = 0; i < ARRAY_SIZE(task); i++)
		task[i] = make_task(&loop, make_gen(&loop, loop.coro_type, code, YIELDED, 0));
	future = make_object(w, loop.future_type, TASK_ROOM);
	put_ptr(w, future, w->proc.asyncio.awaited_by, task[1]);
	put(w, future, w->proc.asyncio.awaited_by_is_set, 0, 1);
	read_tree(&loop);
	assert_int_equal(loop.task->address, task[2]);
	assert_int_equal(loop.task->nr_awaiters, 0);
	assert_int_equal(loop.task->nr_tasks, 1);
	assert_int_equal(loop.task->tstate, loop.tstate);
	assert_true(loop.task->tree == 0 || loop.task->tree == TASK_TREE_STEADY);
	put_ptr(w, task[2], w->proc.asyncio.awaited_by, future);
	read_tree(&loop);
	assert_int_equal(loop.task->nr_awaiters, 1);
	assert_int_equal(loop.task->awaiters[0].address, task[1]);
	set = make_set(&loop, (uint64_t[]){task[0], future, loop.coro_type, future}, 4);
	put_ptr(w, task[2], w->proc.asyncio.awaited_by, set);
	put(w, task[2], w->proc.asyncio.awaited_by_is_set, 1, 1);
	read_tree(&loop);
	assert_int_equal(loop.task->nr_awaiters, 2);
	assert_int_equal(loop.task->awaiters[0].address, task[0]);
	assert_int_equal(loop.task->awaiters[1].address, task[1]);
	assert_true(loop.task->tree & TASK_TREE_OTHERS);
	/* A future that awaits itself. */
	put_ptr(w, future, w->proc.asyncio.awaited_by, future);
	read_tree(&loop);
	assert_int_equal(loop.task->nr_awaiters, 1);
	/* No set any more, and lies. */
	for (size_t i = 0; i < ARRAY_SIZE(wild_pointers); i++) {
		put_ptr(w, task[2], w->proc.asyncio.awaited_by, wild_pointers[i]);
		read_first(&loop);
		put_ptr(w, task[2], w->proc.asyncio.awaited_by, set);
		put_ptr(w, set + head_size(w), 24, wild_pointers[i]);
		read_first(&loop);
		put_ptr(w, set + head_size(w), 16, UINT64_MAX - i);
		read_first(&loop);
	}
	end(&loop);
}
LAYOUT_TEST(trees)

/* A running task is in the tree, also if no list has it, and its identity tells it from a later one at its place. */
static void trees_with_a_task_that_runs(struct world *w)
{
	uint64_t code, task, gen, first;
	struct loop loop;

	if (!has_tasks(w))
		return;
	begin(&loop, w);
	loop.whole_tree = true;
	code = make_code(w, 10);
	gen = make_gen(&loop, loop.coro_type, code, RUNS, 0);
	task = make_task(&loop, gen);
	put_ptr(w, loop.tstate, w->proc.asyncio.running_task, task);
	assert_int_equal(read_first(&loop), 1);
	assert_int_equal(loop.task->awaits, TASK_AWAITS_RUNS);
	assert_int_equal(loop.task->nr_frames, 0);
	assert_int_equal(loop.counts.running, 1);
	first = loop.task->identity;
	assert_int_equal(task_reader_next(loop.reader, &loop.task, &loop.counts), -ENOENT);
	put_ptr(w, loop.thread_list, 0, loop.thread_list);
	put_ptr(w, loop.thread_list, 8, loop.thread_list);
	assert_int_equal(read_first(&loop), 1);
	assert_int_equal(loop.task->address, task);
	assert_int_equal(loop.task->identity, first);
	put_ptr(w, task, w->proc.asyncio.task_coro, make_gen(&loop, loop.coro_type, code, RUNS, 0));
	assert_int_equal(read_first(&loop), 1);
	assert_true(loop.task->identity != first);
	end(&loop);
}
LAYOUT_TEST(trees_with_a_task_that_runs)

static void packed(void **unused)
{
	static struct task_read task, back;
	static char bytes[sizeof(task)];
	size_t size;

	(void)unused;
	task = (struct task_read){
		.address = 5, .nr_tasks = 2, .nr_frames = 3, .nr_awaiters = 1, .awaits = TASK_AWAITS_TASK};
	task.tasks[1].size = 9;
	task.awaiters[0].identity = 13;
	task.frames[2].sig = 11;
	size = task_read_packed_size(&task);
	assert_true(size < 600);
	task_read_pack(&task, bytes);
	assert_int_equal(task_read_unpack(bytes, size, &back), size);
	assert_int_equal(back.tasks[1].size, 9);
	assert_int_equal(back.awaiters[0].identity, 13);
	assert_int_equal(back.frames[2].sig, 11);
	for (size_t i = 0; i < size; i++)
		assert_int_equal(task_read_unpack(bytes, i, &back), 0);
	task.nr_frames = TASK_READ_FRAMES + 1;
	memcpy(bytes, &task, offsetof(struct task_read, tasks));
	assert_int_equal(task_read_unpack(bytes, sizeof(bytes), &back), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_functions_and_future),
		cmocka_unit_test(test_other_awaitables),
		cmocka_unit_test(test_tasks_that_await),
		cmocka_unit_test(test_tasks_that_are_not_suspended),
		cmocka_unit_test(test_a_task_that_moves),
		cmocka_unit_test(test_lists_that_lie),
		cmocka_unit_test(test_chains_that_lie),
		cmocka_unit_test(test_names_that_are_far_away),
		cmocka_unit_test(packed),
		cmocka_unit_test(test_trees),
		cmocka_unit_test(test_trees_with_a_task_that_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

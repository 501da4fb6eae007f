// SPDX-License-Identifier: Apache-2.0
/* Many threads of one process: what is read for each does not grow with their number, and is what a search finds. */
#include "dump/threads.h"

#include "walk_world.h"

#define FEW  20
#define MANY 400

static const struct walk_memory *memory_of(struct world *w)
{
	static struct walk_memory memory;

	memory = (struct walk_memory){.read = world_read, .source = w};
	w->reads = 0;
	return &memory;
}

static uint64_t id_of(unsigned i)
{
	return THREAD + 0x1000ull * i;
}

static struct walk_known_states list(struct world *w, uint64_t thread_id, bool exact)
{
	struct walk_known_states states = {.count = 0};
	struct dump_known_list known;

	dump_known_init(&known);
	assert_int_equal(dump_list_threads(memory_of(w), &w->l, &w->proc, 0, &known), 0);
	for (uint32_t i = 0; i < known.threads.count; i++) {
		if (dump_known_at(&known, i)->thread_id == thread_id)
			states = dump_known_at(&known, i)->states;
	}
	dump_known_free(&known);
	states.exact = exact;
	return states;
}

/* Walks a thread by its known states, and asserts that a search says the same. Returns the reads of the former. */
static uint64_t assert_same(struct world *w, uint64_t thread_id, const struct walk_known_states *states)
{
	struct walk_stack stack, searched;
	uint64_t reads;
	int err;

	err = walk_known_thread(memory_of(w), &w->l, &w->proc, thread_id, states, 0, 0, &stack);
	reads = w->reads;
	assert_int_equal(walk(w, thread_id, &searched), err);
	assert_int_equal(stack.depth, searched.depth);
	assert_int_equal(stack.flags, searched.flags);
	assert_int_equal(stack.tstate, searched.tstate);
	for (uint32_t i = 0; i < stack.depth; i++)
		assert_memory_equal(&stack.frames[i], &searched.frames[i], sizeof(stack.frames[i]));
	free(stack.frames);
	free(searched.frames);
	return reads;
}

static uint64_t reads_among(struct world *w, unsigned count)
{
	struct walk_known_states states;
	uint64_t interp, code;

	world_clear(w);
	interp = make_interp(w);
	code = make_code(w, 1);
	for (unsigned i = 0; i < count; i++)
		make_thread(w, interp, id_of(i), make_chain(w, code, 3));
	states = list(w, id_of(0), false);
	assert_int_equal(states.count, 1);
	/* The list itself is read once: a few words of each. */
	assert_true(w->reads <= 3 * count + 10);
	/* The thread is the last one of the list. */
	return assert_same(w, id_of(0), &states);
}

static void reads_of_a_thread(struct world *w)
{
	assert_int_equal(reads_among(w, FEW), reads_among(w, MANY));
}
LAYOUT_TEST(reads_of_a_thread)

/* A thread that has states of two interpreters; and one that has got its second one since the list was read. */
static void several_states(struct world *w)
{
	uint64_t first = make_interp(w), second = make_interp(w), code = make_code(w, 1), state;
	struct walk_known_states states, before;

	state = make_thread(w, first, THREAD, make_chain(w, code, 2));
	make_thread(w, second, THREAD_2, make_chain(w, code, 5));
	before = list(w, THREAD, false);
	assert_int_equal(before.count, 1);
	assert_same(w, THREAD, &before);
	set_status(w, state, STATUS_BEFORE);
	make_thread(w, second, THREAD, make_chain(w, code, 3));
	states = list(w, THREAD, true);
	assert_int_equal(states.count, 2);
	assert_same(w, THREAD, &states);
	assert_same(w, THREAD, &before);
	/* More than are kept: they are searched for. */
	for (unsigned i = 0; i < WALK_STATES; i++)
		set_status(w, make_thread(w, second, THREAD, make_chain(w, code, 1)), STATUS_BEFORE);
	states = list(w, THREAD, true);
	assert_int_equal(states.count, WALK_STATES + 2);
	assert_same(w, THREAD, &states);
}
LAYOUT_TEST(several_states)

/* A thread that runs code of newer interpreters is the oldest one's: that one has its name. */
static void own_interpreter(struct world *w)
{
	uint64_t oldest = make_interp(w), code = make_code(w, 1);
	struct dump_known_list known;

	make_thread(w, oldest, THREAD, make_chain(w, code, 2));
	for (int i = 0; i < 2; i++)
		make_thread(w, make_interp(w), THREAD, make_chain(w, code, 1));
	dump_known_init(&known);
	assert_int_equal(dump_list_threads(memory_of(w), &w->l, &w->proc, 0, &known), 0);
	assert_int_equal(known.nr_interps, 3);
	assert_int_equal(known.threads.count, 1);
	assert_int_equal(dump_known_at(&known, 0)->interp, oldest);
	dump_known_free(&known);
}
LAYOUT_TEST(own_interpreter)

/* The thread has ended, and its state is another one's. */
static void gone(struct world *w)
{
	uint64_t interp = make_interp(w), code = make_code(w, 1);
	uint64_t state = make_thread(w, interp, THREAD, make_chain(w, code, 2));
	struct walk_known_states states = list(w, THREAD, false);

	put_ptr(w, state, w->l.tstate_thread_id, THREAD_2);
	assert_same(w, THREAD, &states);
	assert_same(w, THREAD_2, &states);
}
LAYOUT_TEST(gone)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads_of_a_thread),
		cmocka_unit_test(test_several_states),
		cmocka_unit_test(test_own_interpreter),
		cmocka_unit_test(test_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

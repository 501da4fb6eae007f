// SPDX-License-Identifier: Apache-2.0
/* Every way in which memory can be wrong: nothing false is told, and every walk ends. */
#include "proved_world.h"

/* Unmapped memory */

static void unreadable_frames(struct world *w)
{
	uint64_t a = make_code(w, 1), b = make_code(w, 2), c = make_code(w, 3);
	uint64_t root = make_frame(w, c, 0, 0), middle = make_frame(w, b, 0, root), leaf = make_frame(w, a, 0, middle);
	uint64_t tstate = make_thread(w, make_interp(w), THREAD, leaf);

	for (size_t i = 0; i < ARRAY_SIZE(wild_pointers); i++) {
		uint64_t wild = wild_pointers[i];

		put_ptr(w, middle, w->l.frame_previous, wild);
		if (w->l.cframe_frame == NO)
			assert_codes(w, THREAD, (const uint64_t[]){a, b}, 2, PYBPF_STACK_FAULT);
		else
			assert_codes(w, THREAD, NULL, 0, PYBPF_STACK_FAULT);
		put_ptr(w, middle, w->l.frame_previous, root);

		/* (Tag bits do not belong to the pointer.) */
		put_ptr(w, middle, w->l.frame_code, wild);
		assert_codes(w, THREAD, (const uint64_t[]){a, c}, 2, PYBPF_STACK_FAULT);
		put_ptr(w, middle, w->l.frame_code, b);

		set_frame(w, tstate, wild);
		assert_codes(w, THREAD, NULL, 0, PYBPF_STACK_FAULT);
		put_ptr(w, tstate, w->l.tstate_frame, wild);
		assert_codes(w, THREAD, NULL, 0, PYBPF_STACK_FAULT);
		set_frame(w, tstate, leaf);
	}
	put_ptr(w, middle, w->l.frame_code, 0);
	assert_codes(w, THREAD, (const uint64_t[]){a, c}, 2, PYBPF_STACK_FAULT);
	put_ptr(w, middle, w->l.frame_code, b);
	assert_codes(w, THREAD, (const uint64_t[]){a, b, c}, 3, 0);

	/* The last bytes of a frame lie beyond the end of what is mapped. */
	root = make_frame(w, c, 0, 0);
	put_ptr(w, leaf, w->l.frame_previous, root);
	assert_codes(w, THREAD, (const uint64_t[]){a, c}, 2, 0);
	w->used = root - ARENA_BASE + w->l.frame_window - 1u;
	if (w->l.cframe_frame == NO)
		assert_codes(w, THREAD, (const uint64_t[]){a}, 1, PYBPF_STACK_FAULT);
	else
		assert_codes(w, THREAD, NULL, 0, PYBPF_STACK_FAULT);
}
LAYOUT_TEST(unreadable_frames)

static void wild_lists(struct world *w)
{
	uint64_t code = make_code(w, 1), oldest = make_interp(w), interp, tstate, other;

	make_thread(w, oldest, THREAD_2, make_frame(w, code, 0, 0));
	interp = make_interp(w);
	tstate = make_thread(w, interp, THREAD, make_frame(w, code, 0, 0));
	other = make_thread(w, interp, 5, 0);
	for (size_t i = 0; i < ARRAY_SIZE(wild_pointers); i++) {
		/* A torn list of threads ends there; the next interpreter is looked at all the same. */
		put_ptr(w, other, w->l.tstate_next, wild_pointers[i]);
		assert_unreadable(w, THREAD);
		assert_one_code(w, THREAD_2, code);
		put_ptr(w, other, w->l.tstate_next, tstate);
		assert_one_code(w, THREAD, code);

		put_ptr(w, interp, w->l.interp_threads_head, wild_pointers[i]);
		assert_unreadable(w, THREAD);
		assert_one_code(w, THREAD_2, code);
		put_ptr(w, interp, w->l.interp_threads_head, other);

		put_ptr(w, interp, w->l.interp_next, wild_pointers[i]);
		assert_unreadable(w, THREAD_2);
		assert_one_code(w, THREAD, code);
		put_ptr(w, interp, w->l.interp_next, oldest);

		put_ptr(w, w->proc.interp_head, 0, wild_pointers[i]);
		assert_unreadable(w, THREAD);
		put_ptr(w, w->proc.interp_head, 0, interp);
	}
}
LAYOUT_TEST(wild_lists)

/* Unaligned addresses of readable memory are nothing that CPython has, and nothing to fall over. */
static void unaligned(struct world *w)
{
	uint64_t code = make_code(w, 1), interp = make_interp(w), frame = make_chain(w, code, 5), tstate;
	struct walk_stack stack;
	int err;

	tstate = make_thread(w, interp, THREAD, frame);
	make(w, 8192);
	for (uint64_t shift = 1; shift < 8; shift++) {
		put_ptr(w, frame, w->l.frame_previous, frame + shift);
		if (walk(w, THREAD, &stack) == 0)
			free(stack.frames);
		set_frame(w, tstate, frame + shift);
		if (walk(w, THREAD, &stack) == 0)
			free(stack.frames);
		set_frame(w, tstate, frame);
		put_ptr(w, frame, w->l.frame_code, code + shift);
		assert_walk(w, THREAD, &stack);
		free(stack.frames);
		put_ptr(w, frame, w->l.frame_code, code);
		put_ptr(w, interp, w->l.interp_threads_head, tstate + shift);
		/* What is no thread state leads to another one, or to unmapped memory. */
		err = walk(w, THREAD, &stack);
		assert_true(err == -ENOENT || err == -EFAULT);
		put_ptr(w, interp, w->l.interp_threads_head, tstate);
		set_frame(w, tstate, make_frame(w, code, 0, 0));
		assert_one_code(w, THREAD, code);
		set_frame(w, tstate, frame);
	}
}
LAYOUT_TEST(unaligned)

/* A layout that asks for more than the buffer holds gets nothing. */
static void oversized_windows(struct world *w)
{
	struct pybpf_layout good = w->l;
	const struct walk_memory memory = {.read = world_read, .source = w};
	uint64_t code = make_code(w, 1);
	struct walk_code read;

	make_thread(w, make_interp(w), THREAD, make_frame(w, code, 0, 0));
	make(w, UINT16_MAX);
	w->l.frame_window = PYBPF_FRAME_WINDOW + 1;
	assert_codes(w, THREAD, NULL, 0, PYBPF_STACK_FAULT);
	w->l.frame_window = UINT16_MAX;
	assert_codes(w, THREAD, NULL, 0, PYBPF_STACK_FAULT);
	w->l = good;
	w->l.code_window = UINT16_MAX;
	assert_codes(w, THREAD, NULL, 0, PYBPF_STACK_FAULT);
	assert_int_equal(walk_read_code(&memory, &w->l, code, false, &read), -EFAULT);
	w->l = good;
	w->l.tstate_window = UINT16_MAX;
	assert_unreadable(w, THREAD);
	w->l = good;
	assert_one_code(w, THREAD, code);
}
LAYOUT_TEST(oversized_windows)

/* A frame that begins in the one before, in what was read of it, and ends beyond that. */
static void overlapping_frames(struct world *w)
{
	uint64_t a = make_code(w, 1), b = make_code(w, 2), c = make_code(w, 3);
	uint64_t root = make_frame(w, c, 0, 0), middle = make_frame(w, b, 0, root), leaf, overlapping;

	/* Where the code's address is the first word of a frame, its last byte is the owner of the frame before: 0. */
	if (w->l.frame_code || w->l.frame_owner == NO || w->l.cframe_frame != NO)
		return;
	leaf = make_frame(w, a, 0, 0);
	make(w, 2048);
	overlapping = leaf + w->l.frame_window - 8u;
	memcpy(bytes_at(w, overlapping, w->l.frame_window), bytes_at(w, middle, w->l.frame_window), w->l.frame_window);
	put_ptr(w, leaf, w->l.frame_previous, overlapping);
	make_thread(w, make_interp(w), THREAD, leaf);
	assert_codes(w, THREAD, (const uint64_t[]){a, b, c}, 3, 0);
}
LAYOUT_TEST(overlapping_frames)

/* Circles */

static void frame_circles(struct world *w)
{
	static const int lengths[] = {1, 2, 7, 1000}, leads[] = {0, 1, 5, 100};

	for (size_t i = 0; i < ARRAY_SIZE(lengths) * ARRAY_SIZE(leads); i++) {
		int length = lengths[i / ARRAY_SIZE(leads)], lead = leads[i % ARRAY_SIZE(leads)];
		struct walk_stack stack;
		uint64_t code, first, last;

		world_clear(w);
		code = make_code(w, 1);
		last = first = make_frame(w, code, 0, 0);
		for (int n = 1; n < length; n++)
			first = make_frame(w, code, 0, first);
		put_ptr(w, last, w->l.frame_previous, first);
		for (int n = 0; n < lead; n++)
			first = make_frame(w, code, 0, first);
		make_thread(w, make_interp(w), THREAD, first);
		assert_walk(w, THREAD, &stack);
		if (w->l.cframe_frame != NO) {
			/* Nothing proves a circle to be a stack. */
			assert_int_equal(stack.depth, 0);
			free(stack.frames);
			continue;
		}
		assert_int_equal(stack.flags, PYBPF_STACK_CYCLE);
		/* Every frame was met, and few were met often. */
		assert_true(stack.depth >= (uint32_t)(lead + length));
		assert_true(stack.depth <= (uint32_t)(4 * (lead + length)));
		assert_true(w->reads <= 16u + 3u * 4u * (uint32_t)(lead + length));
		free(stack.frames);
	}
	if (w->l.frame_owner != NO) {
		uint64_t shim;

		world_clear(w);
		shim = make_frame(w, 0, 0, 0);
		put_ptr(w, shim, w->l.frame_previous, shim);
		put(w, shim, w->l.frame_owner, w->l.owner_not_python, 1);
		make_thread(w, make_interp(w), THREAD, shim);
		assert_codes(w, THREAD, NULL, 0, w->l.cframe_frame == NO ? PYBPF_STACK_CYCLE : PYBPF_STACK_FAULT);
	}
}
LAYOUT_TEST(frame_circles)

static void list_circles(struct world *w)
{
	uint64_t interp = make_interp(w), tstate = make_thread(w, interp, THREAD_2, 0);

	put_ptr(w, tstate, w->l.tstate_next, tstate);
	assert_no_thread(w, THREAD);
	assert_true(w->reads < 4 * PYBPF_MAX_THREADS);
	put_ptr(w, tstate, w->l.tstate_next, 0);
	put_ptr(w, interp, w->l.interp_next, interp);
	assert_no_thread(w, THREAD);
	assert_true(w->reads < 4 * PYBPF_MAX_THREADS);
}
LAYOUT_TEST(list_circles)

/* Depth */

static void assert_depth(struct world *w, uint32_t depth)
{
	struct walk_stack stack;
	uint32_t walked_frames = depth < PYBPF_MAX_WALK ? depth : PYBPF_MAX_WALK, flags = 0;
	uint32_t kept = depth < PYBPF_MAX_FRAMES ? depth : PYBPF_MAX_FRAMES;

	world_clear(w);
	make_thread(w, make_interp(w), THREAD, make_chain(w, make_code(w, 1), (int)depth));
	assert_walk(w, THREAD, &stack);
	if (depth > PYBPF_MAX_FRAMES)
		flags |= PYBPF_STACK_CUT;
	if (depth > PYBPF_MAX_WALK)
		flags |= PYBPF_STACK_NO_ROOT;
	assert_int_equal(stack.depth, walked_frames);
	assert_int_equal(stack.flags, flags);
	for (uint32_t i = 0; i < (depth > PYBPF_MAX_FRAMES ? PYBPF_HALF_FRAMES : kept); i++)
		assert_int_equal(stack.frames[i].position, i);
	if (depth > PYBPF_MAX_FRAMES) {
		for (uint32_t i = walked_frames - PYBPF_HALF_FRAMES; i < walked_frames; i++) {
			uint32_t slot = PYBPF_HALF_FRAMES + (i - PYBPF_HALF_FRAMES) % PYBPF_HALF_FRAMES;

			assert_int_equal(stack.frames[slot].position, i);
		}
	}
	free(stack.frames);
}

static void depths(struct world *w)
{
	static const uint32_t all[] = {1, 2, 4096, 4097, 8191, 8192, 8193, 12000, 12288, 12289};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		assert_depth(w, all[i]);
}
LAYOUT_TEST(depths)

static void depths_beyond_the_walk(struct world *w)
{
	/* (An entry frame is a step as well.) */
	assert_depth(w, PYBPF_MAX_WALK - 1);
	assert_depth(w, PYBPF_MAX_WALK + 1);
	assert_depth(w, 70000);
}
LAYOUT_TEST(depths_beyond_the_walk)

/* Corruption */

static uint64_t random_state;

static uint64_t random_u64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void corrupt(struct world *w)
{
	uint64_t where = random_u64() % (w->used - 8), value = random_u64();

	switch (random_u64() % 5) {
	case 0:
		w->bytes[where] ^= 1u << value % 8;
		return;
	case 1:
		value = wild_pointers[value % ARRAY_SIZE(wild_pointers)];
		break;
	case 2: /* a place in the arena, as a pointer of CPython's would be */
		value = ARENA_BASE + (value % w->used & ~7ULL);
		break;
	case 3:
		value = ARENA_BASE + value % w->used;
		break;
	}
	memcpy(w->bytes + (where & ~7ULL), &value, 8);
}

static void corruption(struct world *w)
{
	enum {
		ROUNDS = 150,
		SAME = 8
	};
	/* A thread state or interpreter costs at most 3 reads, a frame with code, hash and its own bytecode
	 * at most 6. */
	const uint64_t most = 3ULL * (PYBPF_MAX_THREADS + 2) + 6ULL * (PYBPF_MAX_WALK + 2);

	random_state = 0x9e3779b97f4a7c15ULL;
	for (int round = 0; round < ROUNDS; round++) {
		struct walk_stack stack;

		world_clear(w);
		for (int i = 0; i < 3; i++) {
			uint64_t interp = make_interp(w), code = make_code(w, i + 1);

			for (int t = 0; t < 3; t++)
				make_thread(w, interp, THREAD + (uint64_t)(t * 0x1000), make_chain(w, code, 6));
		}
		w->proc.tstate_current = round % 2 ? make(w, 8) : 0;
		for (int i = 0; i < SAME; i++) {
			for (int n = round % 16; n >= 0; n--)
				corrupt(w);
			for (int t = 0; t < 4; t++) {
				int err = walk(w, THREAD + (uint64_t)(t * 0x1000), &stack);

				assert_true(err == 0 || err == -ENOENT || err == -EFAULT);
				assert_true(w->reads <= most);
				assert_true(stack.depth <= PYBPF_MAX_WALK);
				assert_int_equal(!err, stack.frames != NULL);
				free(stack.frames);
			}
		}
	}
}
LAYOUT_TEST(corruption)

/*
 * Proposals for versions to come, which have 3.15's debug offsets all the same: the walk would pass over functions, or
 * take numbers for addresses. Such a version is refused by its first frames, before anything is sampled.
 */

static void assert_proved(struct world *w)
{
	struct error error;

	if (proved_validate(w, &error))
		fail_msg("%s: %s", w->origin, error.text);
}

static void assert_refused(struct world *w, const char *why)
{
	struct error error = {0};

	if (proved_validate(w, &error) != -EINVAL || !strstr(error.text, why))
		fail_msg("%s: expected a refusal that says \"%s\": \"%s\"", w->origin, why, error.text);
}

/* Owners that are flags: 3, 4 and 8 are some of them, or the sum of two. */
static void owners_that_are_flags(struct world *w)
{
	static const uint8_t flags[] = {3, 4, 5, 8, 12};
	uint64_t interp = proved_interp(w), id = proved_thread_id(w);
	uint64_t a = proved_code(w, 1), b = proved_code(w, 2), c = proved_code(w, 3);
	uint64_t root = proved_frame(w, c, 0, 0), middle = proved_frame(w, b, 1, root);
	uint64_t leaf = proved_frame(w, a, PROVED_UNITS - 1, middle), entry;
	const uint64_t functions[] = {root, middle, leaf};

	proved_thread(w, interp, id, leaf);
	memcpy(&entry, bytes_at(w, root + w->l.frame_previous, 8), 8);
	assert_proved(w);
	assert_codes(w, id, (const uint64_t[]){a, b, c}, 3, 0);
	/* A generator's frame, and one that outlives its function. */
	put(w, middle, w->l.frame_owner, 1, 1);
	put(w, root, w->l.frame_owner, 2, 1);
	assert_proved(w);
	assert_codes(w, id, (const uint64_t[]){a, b, c}, 3, 0);
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		/* All functions have it, and one alone: the others would seem to have called each other. */
		for (size_t f = 0; f < ARRAY_SIZE(functions); f++)
			put(w, functions[f], w->l.frame_owner, flags[i], 1);
		assert_refused(w, "owner");
		for (size_t f = 0; f < ARRAY_SIZE(functions); f++) {
			for (size_t other = 0; other < ARRAY_SIZE(functions); other++)
				put(w, functions[other], w->l.frame_owner, other == f ? flags[i] : 0, 1);
			assert_refused(w, "owner");
			/* As the walk would have it. */
			if (functions[f] == middle)
				assert_codes(w, id, (const uint64_t[]){a, c}, 2, 0);
		}
		put(w, leaf, w->l.frame_owner, 0, 1);
		put(w, middle, w->l.frame_owner, 0, 1);
		put(w, root, w->l.frame_owner, 0, 1);
	}
	/* The entry frame's owner is a number that stood for functions before. */
	for (uint8_t owner = 0; owner < 3; owner++) {
		put(w, entry, w->l.frame_owner, owner, 1);
		assert_refused(w, "owner");
	}
	put(w, entry, w->l.frame_owner, 8, 1);
	assert_refused(w, "owner");
	put(w, entry, w->l.frame_owner, 4, 1);
	assert_proved(w);
	assert_codes(w, id, (const uint64_t[]){a, b, c}, 3, 0);
}
NEWER_TEST(owners_that_are_flags)

/* The offset of an instruction, in code units or bytes, where its address was; the other bytes are anything. */
static void offsets_of_instructions(struct world *w)
{
	static const uint64_t others[] = {0, 0xa5a5a5a5a5a50000, 0x00040000, 0x7f1200040000};
	uint64_t interp = proved_interp(w), id = proved_thread_id(w);
	uint64_t a = proved_code(w, 1), b = proved_code(w, 2);
	uint64_t root = proved_frame(w, b, 3, 0), leaf = proved_frame(w, a, 5, root);

	proved_thread(w, interp, id, leaf);
	assert_proved(w);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		for (uint64_t offset = 0; offset < 0x10000; offset = 2 * offset + 1) {
			put_ptr(w, leaf, w->l.frame_position, others[i] | offset);
			put_ptr(w, root, w->l.frame_position, others[i] | offset);
			assert_refused(w, "position");
		}
	}
	/* An address in another code object, or behind the last instruction. */
	put_ptr(w, root, w->l.frame_position, b + w->l.code_adaptive);
	put_ptr(w, leaf, w->l.frame_position, b + w->l.code_adaptive);
	assert_refused(w, "position");
	put_ptr(w, leaf, w->l.frame_position, a + w->l.code_adaptive + 2 * PROVED_UNITS);
	assert_refused(w, "position");
	put_ptr(w, leaf, w->l.frame_position, a + w->l.code_adaptive + 2 * (PROVED_UNITS - 1));
	assert_proved(w);
}
NEWER_TEST(offsets_of_instructions)

/* Free-threaded: each thread has bytecode of its own. */
static void bytecode_of_threads(struct world *w)
{
	uint64_t interp = proved_interp(w), id = proved_thread_id(w), code = proved_code(w, 1), frame, array, own;

	if (!w->l.free_threaded)
		return;
	frame = proved_frame(w, code, 0, 0);
	own = make(w, 2 * PROVED_UNITS);
	array = make(w, 24);
	put_ptr(w, array, 0, 2);
	put_ptr(w, array, 8, code + w->l.code_adaptive);
	put_ptr(w, array, 16, own);
	put_ptr(w, code, w->l.code_tlbc, array);
	proved_thread(w, interp, id, frame);
	assert_proved(w);
	put(w, frame, w->l.frame_tlbc_index, 1, 4);
	assert_refused(w, "position");
	put_ptr(w, frame, w->l.frame_position, own + 4);
	assert_proved(w);
	put(w, frame, w->l.frame_tlbc_index, 2, 4);
	assert_refused(w, "position");
}
NEWER_TEST(bytecode_of_threads)

/* Without the frame of a function nothing is proved. A frame that cannot be read is not counted. */
static void frames_that_prove_nothing(struct world *w)
{
	uint64_t interp = proved_interp(w), id = proved_thread_id(w), code = proved_code(w, 1), frame, tstate;
	struct error error;

	frame = proved_frame(w, code, 0, 0);
	tstate = proved_thread(w, interp, id, 0);
	assert_int_equal(proved_validate(w, &error), -EAGAIN);
	assert_non_null(strstr(error.text, "no function"));
	put_ptr(w, tstate, w->l.tstate_frame, make_entry(w));
	assert_int_equal(proved_validate(w, &error), -EAGAIN);
	for (size_t i = 0; i < ARRAY_SIZE(wild_pointers); i++) {
		put_ptr(w, tstate, w->l.tstate_frame, wild_pointers[i]);
		assert_refused(w, "frame");
		put_ptr(w, frame, w->l.frame_previous, wild_pointers[i]);
		put_ptr(w, tstate, w->l.tstate_frame, frame);
		assert_refused(w, "frame");
	}
	/* A circle ends. */
	put_ptr(w, frame, w->l.frame_previous, frame);
	assert_proved(w);
}
NEWER_TEST(frames_that_prove_nothing)

/* A question to a helper is not trusted: no field is looked for behind what was read of the frame. */
static void fields_outside_of_a_frame(struct world *w)
{
	const struct pybpf_layout before = w->l;
	uint64_t interp = proved_interp(w), id = proved_thread_id(w);
	uint16_t *fields[] = {&w->l.frame_code, &w->l.frame_previous, &w->l.frame_position, &w->l.frame_owner};

	proved_thread(w, interp, id, proved_frame(w, proved_code(w, 1), 0, 0));
	assert_proved(w);
	w->l.frame_window = UINT16_MAX;
	assert_refused(w, "size");
	w->l = before;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		*fields[i] = UINT16_MAX - 1;
		assert_refused(w, "size");
		w->l = before;
	}
}
NEWER_TEST(fields_outside_of_a_frame)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unreadable_frames),
		cmocka_unit_test(test_wild_lists),
		cmocka_unit_test(test_unaligned),
		cmocka_unit_test(test_oversized_windows),
		cmocka_unit_test(test_overlapping_frames),
		cmocka_unit_test(test_frame_circles),
		cmocka_unit_test(test_list_circles),
		cmocka_unit_test(test_depths),
		cmocka_unit_test(test_depths_beyond_the_walk),
		cmocka_unit_test(test_corruption),
		cmocka_unit_test(test_owners_that_are_flags),
		cmocka_unit_test(test_offsets_of_instructions),
		cmocka_unit_test(test_bytecode_of_threads),
		cmocka_unit_test(test_frames_that_prove_nothing),
		cmocka_unit_test(test_fields_outside_of_a_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

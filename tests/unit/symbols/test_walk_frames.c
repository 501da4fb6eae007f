// SPDX-License-Identifier: Apache-2.0
/* Invalid frames, code objects that are told apart. */
#include "walk_world.h"

/* Invalid frames */

static void shim_frames(struct world *w)
{
	uint64_t a = make_code(w, 1), b = make_code(w, 2), frame = 0, plain;

	if (w->l.frame_owner == NO)
		return;
	/* Each run of 3.12's evaluation loop has a cframe as well: see test_walk_switch.c. */
	if (w->l.cframe_frame != NO)
		return;
	/* Shims at the root, twice in the middle and at the leaf; what they have for code is no pointer. */
	for (int i = 0; i < 4; i++) {
		uint64_t shim = make_frame(w, i % 2 ? UNMAPPED : 1, 0, frame);

		put(w, shim, w->l.frame_owner, (uint64_t)w->l.owner_not_python + (uint64_t)i % 2, 1);
		frame = i == 0 ? make_frame(w, b, 0, shim) : i == 2 ? make_frame(w, a, 0, shim) : shim;
	}
	make_thread(w, make_interp(w), THREAD, frame);
	assert_codes(w, THREAD, (const uint64_t[]){a, b}, 2, 0);

	/* A generator's frame and a frame object's are Python frames. */
	plain = make_frame(w, a, 0, make_frame(w, b, 0, 0));
	make_thread(w, make_interp(w), THREAD_2, plain);
	for (int owner = 0; owner < w->l.owner_not_python; owner++) {
		put(w, plain, w->l.frame_owner, (uint64_t)owner, 1);
		assert_codes(w, THREAD_2, (const uint64_t[]){a, b}, 2, 0);
	}
}
LAYOUT_TEST(shim_frames)

/* Where there are cframes, it is taken for an earlier call's. */
static uint32_t no_code_at_the_leaf(const struct world *w)
{
	return w->l.cframe_frame == NO ? PYBPF_STACK_NOT_CODE : PYBPF_STACK_FAULT;
}

static void tagged_code(struct world *w)
{
	uint64_t code = make_code(w, 1), frame = make_frame(w, code, 4, 0);
	struct walk_stack stack;

	make_thread(w, make_interp(w), THREAD, frame);
	for (uint64_t tag = 1; tag < 4; tag++) {
		put_ptr(w, frame, w->l.frame_code, code | tag);
		if ((w->l.code_tag_mask & tag) == tag) {
			assert_walk(w, THREAD, &stack);
			assert_int_equal(stack.depth, 1);
			assert_int_equal(stack.flags, 0);
			assert_int_equal(stack.frames[0].code, code);
			assert_int_equal(stack.frames[0].position, 4);
			free(stack.frames);
		} else {
			/* Where references carry no tags this is no code object. */
			assert_codes(w, THREAD, NULL, 0, no_code_at_the_leaf(w));
		}
	}
}
LAYOUT_TEST(tagged_code)

/* Free-threaded 3.14+: each thread runs its own copy of the bytecode. */
static void thread_local_bytecode(struct world *w)
{
	uint64_t code, copies, array, frame;
	static const struct {
		int32_t index;
		uint64_t copy_offset; /* of the instruction in the copy */
		bool known;
	} cases[] = {
		{0, 0, true},  {1, 0, true},   {1, 60, true},       {2, 6, true},          {3, 6, false},
		{4, 6, false}, {-1, 6, false}, {1 << 30, 6, false}, {INT32_MIN, 6, false}, {1, 1ULL << 40, false},
	};
	struct walk_stack stack;

	if (w->l.frame_tlbc_index == NO)
		return;
	code = make_code(w, 1);
	copies = make(w, 1024);
	array = make(w, 8 + 5 * 8);
	put_ptr(w, code, w->l.code_tlbc, array);
	put_ptr(w, array, 0, 4);
	put_ptr(w, array, 8, code + w->l.code_adaptive);
	put_ptr(w, array, 16, copies);
	put_ptr(w, array, 24, copies + 512);
	put_ptr(w, array, 32, 0);      /* not made yet */
	put_ptr(w, array, 40, copies); /* behind the array */
	frame = make_frame(w, code, 0, 0);
	make_thread(w, make_interp(w), THREAD, frame);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t base = cases[i].index == 0   ? code + w->l.code_adaptive
				: cases[i].index == 2 ? copies + 512
						      : copies;

		put(w, frame, w->l.frame_tlbc_index, (uint32_t)cases[i].index, 4);
		put_ptr(w, frame, w->l.frame_position, base + cases[i].copy_offset);
		assert_walk(w, THREAD, &stack);
		assert_int_equal(stack.depth, 1);
		assert_int_equal(stack.flags, 0);
		assert_int_equal(stack.frames[0].position,
				 cases[i].known ? w->l.code_adaptive + (int)cases[i].copy_offset : PYBPF_NO_POSITION);
		free(stack.frames);
	}
	put(w, frame, w->l.frame_tlbc_index, 1, 4);
	for (int i = 0; i < 3; i++) {
		put_ptr(w, code, w->l.code_tlbc, i == 0 ? UNMAPPED : i == 1 ? 0 : UINT64_MAX - 7);
		assert_walk(w, THREAD, &stack);
		assert_int_equal(stack.frames[0].position, PYBPF_NO_POSITION);
		free(stack.frames);
	}
}
LAYOUT_TEST(thread_local_bytecode)

static void not_code(struct world *w)
{
	uint64_t a = make_code(w, 1), b = make_code(w, 2), none = make_code(w, 3), frame;

	put_ptr(w, none, w->l.code_type, CODE_TYPE + 8);
	frame = make_frame(w, a, 0, make_frame(w, none, 0, make_frame(w, b, 0, 0)));
	make_thread(w, make_interp(w), THREAD, frame);
	assert_codes(w, THREAD, (const uint64_t[]){a, b}, 2, PYBPF_STACK_NOT_CODE);
	make_thread(w, make_interp(w), THREAD_2, make_frame(w, none, 0, 0));
	assert_codes(w, THREAD_2, NULL, 0, no_code_at_the_leaf(w));
	/* A stripped binary does not tell where the type is. */
	w->proc.code_type = 0;
	assert_codes(w, THREAD, (const uint64_t[]){a, none, b}, 3, 0);
}
LAYOUT_TEST(not_code)

/* Signatures */

static struct walk_code read_code(struct world *w, uint64_t code)
{
	const struct walk_memory memory = {.read = world_read, .source = w};
	struct walk_code read;

	assert_int_equal(walk_read_code(&memory, &w->l, code, false, &read), 0);
	return read;
}

static void code_fields(struct world *w)
{
	const struct walk_memory memory = {.read = world_read, .source = w};
	uint64_t code = make_code(w, 1234), want;
	struct walk_code read = read_code(w, code);
	struct walk_stack stack;

	assert_int_equal(read.first_line, 1234);
	memcpy(&want, bytes_at(w, code + w->l.code_filename, 8), 8);
	assert_int_equal(read.file, want);
	memcpy(&want, bytes_at(w, code + (w->l.code_qualname == NO ? w->l.code_name : w->l.code_qualname), 8), 8);
	assert_int_equal(read.name, want);
	memcpy(&want, bytes_at(w, code + w->l.code_linetable, 8), 8);
	assert_int_equal(read.lines, want);
	/* Both ways of reading agree on the signature: what the kernel announces is found again. */
	make_thread(w, make_interp(w), THREAD, make_frame(w, code, 0, 0));
	assert_walk(w, THREAD, &stack);
	assert_int_equal(stack.frames[0].sig, read.sig);
	free(stack.frames);
	for (size_t i = 0; i < ARRAY_SIZE(wild_pointers); i++)
		assert_int_equal(walk_read_code(&memory, &w->l, wild_pointers[i], false, &read), -EFAULT);
}
LAYOUT_TEST(code_fields)

static void signatures(struct world *w)
{
	uint64_t code = make_code(w, 1), other;
	uint32_t sig = read_code(w, code).sig;
	const uint16_t pointers[] = {w->l.code_filename, w->l.code_name, w->l.code_linetable};
	const uint16_t numbers[] = {w->l.code_firstlineno, w->l.code_version};

	assert_int_equal(read_code(w, code).sig, sig);
	for (size_t i = 0; i < ARRAY_SIZE(pointers); i++) {
		uint64_t old;

		memcpy(&old, bytes_at(w, code + pointers[i], 8), 8);
		put_ptr(w, code, pointers[i], make_text(w, 5));
		assert_int_not_equal(read_code(w, code).sig, sig);
		put_ptr(w, code, pointers[i], old);
		assert_int_equal(read_code(w, code).sig, sig);
	}
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		uint32_t old;

		if (numbers[i] == NO)
			continue;
		memcpy(&old, bytes_at(w, code + numbers[i], 4), 4);
		for (int bit = 0; bit < 32; bit++) {
			put(w, code, numbers[i], old ^ 1u << bit, 4);
			assert_int_not_equal(read_code(w, code).sig, sig);
		}
		put(w, code, numbers[i], old, 4);
	}
	assert_int_equal(read_code(w, code).sig, sig);
	other = make_code(w, 1);
	assert_int_not_equal(read_code(w, other).sig, sig);
	/* A name that can't be read is no obstacle. */
	put_ptr(w, code, w->l.code_name, UNMAPPED);
	sig = read_code(w, code).sig;
	assert_int_equal(read_code(w, code).sig, sig);
}
LAYOUT_TEST(signatures)

/* A text of a code object: an object at addr, its size and first byte at these offsets. */
struct text {
	const char *what;
	uint64_t addr, size;
	uint16_t size_at, data_at;
};

/* The distance from a byte that is tried to the next one: every byte at both ends, and of short texts. */
static uint64_t step_at(uint64_t i, uint64_t size)
{
	if (i < 16 || i + 16 >= size || size < 100)
		return 1;
	return size > 600 ? 53 : 3;
}

/* The bytes of the text, and none beside it. */
static void text_counts(struct world *w, uint64_t code, const struct text *text)
{
	uint64_t data = text->addr + text->data_at;
	uint32_t sig = read_code(w, code).sig;

	for (uint64_t i = 0; i < text->size; i += step_at(i, text->size)) {
		uint8_t *byte = bytes_at(w, data + i, 1);

		*byte ^= 1u << (i & 7);
		if (read_code(w, code).sig == sig)
			fail_msg("%s: byte %llu of the %s, %llu bytes at %#llx, is not in the signature", w->origin,
				 (unsigned long long)i, text->what, (unsigned long long)text->size,
				 (unsigned long long)data);
		*byte ^= 1u << (i & 7);
	}
	*bytes_at(w, data + text->size, 1) ^= 0xff;
	assert_int_equal(read_code(w, code).sig, sig);
	*bytes_at(w, data + text->size, 1) ^= 0xff;
	put_ptr(w, text->addr, text->size_at, text->size + 1);
	assert_int_not_equal(read_code(w, code).sig, sig);
	put_ptr(w, text->addr, text->size_at, text->size);
	assert_int_equal(read_code(w, code).sig, sig);
}

/*
 * Before co_version, and where its counter has run out: all that is printed of a code object is in its signature,
 * whatever its size and wherever pages end.
 */
static void whole_texts(struct world *w)
{
	static const uint64_t sizes[] = {0, 1, 7, 8, 9, 31, 64, 95, 96, 97, 200, 511, 512, 513, 1500, 5000};
	const uint16_t name_at = w->l.code_qualname == NO ? w->l.code_name : w->l.code_qualname;
	const uint16_t l = w->l.str_length, data = w->l.str_ascii_data;

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (uint64_t shift = 0; shift < 3; shift++) {
			uint64_t size = sizes[i], code, name, file, lines;
			struct walk_stack stack;

			world_clear(w);
			/* The arena begins with a page: so some objects begin just before the next one. */
			make(w, 4096 - 16 - 40 * shift);
			name = make_text(w, size);
			file = make_text(w, size);
			lines = make_lines(w, size);
			code = make_code(w, 1);
			put(w, code, w->l.code_version, 0, 4);
			put_ptr(w, code, name_at, name);
			put_ptr(w, code, w->l.code_filename, file);
			put_ptr(w, code, w->l.code_linetable, lines);
			text_counts(w, code, &(struct text){"name", name, size, l, data});
			text_counts(w, code, &(struct text){"path", file, size, l, data});
			text_counts(w, code,
				    &(struct text){"line table", lines, size, w->l.bytes_size, w->l.bytes_data});
			/* The walk, whose texts are read in many steps, agrees; the path of two frames is read once. */
			make_thread(w, make_interp(w), THREAD, make_frame(w, code, 0, make_frame(w, code, 4, 0)));
			assert_walk(w, THREAD, &stack);
			assert_int_equal(stack.depth, 2);
			assert_int_equal(stack.frames[0].sig, read_code(w, code).sig);
			assert_int_equal(stack.frames[1].sig, stack.frames[0].sig);
			free(stack.frames);
		}
	}
}
LAYOUT_TEST(whole_texts)

/* What may be set or made later is no part of a text: its hash, whether it is interned, its UTF-8. */
static void stable_text(struct world *w)
{
	uint64_t code = make_code(w, 1), text[2];
	uint32_t sig;

	put(w, code, w->l.code_version, 0, 4);
	sig = read_code(w, code).sig;
	memcpy(&text[0], bytes_at(w, code + w->l.code_filename, 8), 8);
	memcpy(&text[1], bytes_at(w, code + w->l.code_name, 8), 8);
	for (int i = 0; i < 2; i++) {
		for (uint16_t at = w->l.str_length + 8u; at < w->l.str_ascii_data; at++) {
			uint8_t kept = 0;

			if (w->l.string_kind == PYBPF_STR_UNICODE && at >= w->l.str_state && at < w->l.str_state + 4)
				kept = (uint8_t)((31u << w->l.str_kind_shift) >> (8 * (at - w->l.str_state)));
			*bytes_at(w, text[i] + at, 1) ^= (uint8_t)~kept;
			assert_int_equal(read_code(w, code).sig, sig);
		}
	}
}
LAYOUT_TEST(stable_text)

/* What changes while a code object lives (reference counts, counters, the bytecode as it specialises) is not
 * in it. */
static void stable_signature(struct world *w)
{
	const struct {
		uint16_t at, size;
	} identity[] = {{w->l.code_filename, 8},  {w->l.code_name, 8},
			{w->l.code_linetable, 8}, {w->l.code_firstlineno, 4},
			{w->l.code_qualname, 8},  {w->l.code_type - 8, 4}, /* the references of what is never freed */
			{w->l.code_version, 4}};
	uint64_t code = make_code(w, 1);
	uint32_t sig = read_code(w, code).sig;

	for (uint16_t i = 0; i < w->l.code_window; i++) {
		bool part = false;

		for (size_t j = 0; j < ARRAY_SIZE(identity); j++)
			part |= i >= identity[j].at && i < identity[j].at + identity[j].size;
		if (part)
			continue;
		*bytes_at(w, code + i, 1) ^= 0xff;
		assert_int_equal(read_code(w, code).sig, sig);
	}
}
LAYOUT_TEST(stable_signature)

/* 3.14+: a trace of the JIT stores the leaf's instruction now and then; its callers' are right. */
static void frames_of_the_jit(struct world *w)
{
	uint64_t code = make_code(w, 1), tstate;
	struct walk_stack stack;

	if (!w->l.tstate_executor)
		return;
	tstate = make_thread(w, make_interp(w), THREAD, make_frame(w, code, 6, make_frame(w, code, 8, 0)));
	put_ptr(w, tstate, w->l.tstate_executor, 0x7f1234567890);
	assert_walk(w, THREAD, &stack);
	assert_int_equal(stack.depth, 2);
	assert_int_equal(stack.frames[0].position, PYBPF_NO_POSITION);
	assert_int_equal(stack.frames[1].position, 8);
	free(stack.frames);
	/* Without the GIL it is in a function that the trace called, and has stored it. */
	set_status(w, tstate, STATUS_DETACHED);
	assert_walk(w, THREAD, &stack);
	assert_int_equal(stack.frames[0].position, 6);
	free(stack.frames);
}
LAYOUT_TEST(frames_of_the_jit)

/* Makes a frame one that code compiled to C pushed. */
static void set_compiled(struct world *w, uint64_t frame)
{
	if (w->l.position_kind == PYBPF_POS_LASTI) {
		put(w, frame, w->l.frame_position, (uint32_t)-1, 4);
		put_ptr(w, frame, w->l.frame_mark, 0x1000); /* None */
	} else if (w->l.cframe_frame != NO) {
		put_ptr(w, frame, w->l.frame_mark, frame - 72);
	} else {
		put(w, frame, w->l.frame_owner, 1, 1);
		put_ptr(w, frame, w->l.frame_mark, w->l.code_tag_mask & 1);
	}
}

/* Such frames have no line; those that they call have one. */
static void compiled_frames(struct world *w)
{
	uint64_t code = make_code(w, 1), root = make_frame(w, code, 8, 0), middle = make_frame(w, code, 4, root);
	struct walk_stack stack;

	set_compiled(w, middle);
	make_thread(w, make_interp(w), THREAD, make_frame(w, code, 6, middle));
	assert_walk(w, THREAD, &stack);
	assert_int_equal(stack.depth, 3);
	assert_int_equal(stack.flags, 0);
	assert_int_equal(stack.frames[0].position, 6);
	assert_int_equal(stack.frames[1].position, PYBPF_NO_POSITION);
	assert_int_equal(stack.frames[2].position, 8);
	free(stack.frames);
}
LAYOUT_TEST(compiled_frames)

/* A program of Nuitka's begins with one, without an entry frame before it. */
static void compiled_root(struct world *w)
{
	uint64_t code = make_code(w, 1), frame = make_frame(w, code, 4, 0);
	struct walk_stack stack;

	if (w->l.cframe_frame == NO)
		put_ptr(w, frame, w->l.frame_previous, 0);
	set_compiled(w, frame);
	make_thread(w, make_interp(w), THREAD, frame);
	assert_walk(w, THREAD, &stack);
	assert_int_equal(stack.depth, 1);
	assert_int_equal(stack.flags, 0);
	assert_int_equal(stack.frames[0].position, PYBPF_NO_POSITION);
	free(stack.frames);
}
LAYOUT_TEST(compiled_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shim_frames),       cmocka_unit_test(test_tagged_code),
		cmocka_unit_test(test_frames_of_the_jit), cmocka_unit_test(test_compiled_frames),
		cmocka_unit_test(test_compiled_root),     cmocka_unit_test(test_thread_local_bytecode),
		cmocka_unit_test(test_not_code),          cmocka_unit_test(test_code_fields),
		cmocka_unit_test(test_signatures),        cmocka_unit_test(test_stable_signature),
		cmocka_unit_test(test_whole_texts),       cmocka_unit_test(test_stable_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* The running frame by the data stack of 3.11 and 3.12, where the thread's cframe has something else. */
#include "walk_world.h"

#define CHUNK    4096
#define DATA     24
#define SPECIALS 72
#define WORDS    5 /* of each code object's locals and stack */

struct stack {
	uint64_t tstate, chunk, cframe;
};

static bool has_cframes(const struct world *w)
{
	return w->l.cframe_frame != NO;
}

static uint64_t make_sized_code(struct world *w, int line)
{
	uint64_t code = make_code(w, line);

	put(w, code, w->l.code_firstlineno - 4, WORDS - 2, 4);
	put(w, code, w->l.code_firstlineno + 4, 2, 4);
	return code;
}

static uint64_t make_chunk(struct world *w, uint64_t before)
{
	uint64_t chunk = make(w, CHUNK);

	put_ptr(w, chunk, 0, before);
	put_ptr(w, chunk, 8, CHUNK);
	return chunk;
}

static void set_top(struct world *w, struct stack *s, uint64_t top)
{
	set_data_stack(w, s->tstate, s->chunk, top, s->chunk ? s->chunk + CHUNK : 0);
}

static uint64_t get_top(struct world *w, const struct stack *s)
{
	uint64_t top;

	memcpy(&top, bytes_at(w, s->tstate + w->l.tstate_datastack_top, 8), 8);
	return top;
}

static void fill_frame(struct world *w, uint64_t frame, uint64_t code, uint64_t previous, bool begun, int owner)
{
	put_ptr(w, frame, w->l.frame_code, code);
	put_ptr(w, frame, w->l.frame_previous, previous);
	put_ptr(w, frame, w->l.frame_position, code + w->l.code_adaptive + (begun ? 4 : -2));
	put(w, frame, w->l.frame_entry, 0, 1);
	put(w, frame, w->l.frame_entry == NO ? w->l.frame_owner : w->l.frame_entry + 1, (uint64_t)owner, 1);
}

/* On the data stack, in the same run as the frame before. */
static uint64_t push(struct world *w, struct stack *s, uint64_t code, uint64_t previous)
{
	uint64_t frame = get_top(w, s);

	fill_frame(w, frame, code, previous, true, 0);
	set_top(w, s, frame + SPECIALS + WORDS * 8);
	return frame;
}

/* Makes a frame the first of its run, which `outer` called. */
static uint64_t begin_run(struct world *w, uint64_t frame, uint64_t outer)
{
	uint64_t entry = outer;

	if (w->l.frame_owner != NO) {
		make(w, 2048);
		entry = make_entry(w);
		put_ptr(w, entry, w->l.frame_previous, outer);
	}
	put_ptr(w, frame, w->l.frame_previous, entry);
	put(w, frame, w->l.frame_entry, 1, 1);
	return frame;
}

/* Links a cframe with this frame to the thread, below the ones before on the C stack. */
static void link_cframe(struct world *w, struct stack *s, uint64_t frame)
{
	uint64_t outer = s->cframe;

	s->cframe -= 64;
	put_ptr(w, s->cframe, w->l.cframe_frame, frame);
	put_ptr(w, s->cframe, w->l.cframe_frame + 8, outer);
	put_ptr(w, s->tstate, w->l.tstate_frame, s->cframe);
}

static struct stack make_stack(struct world *w)
{
	struct stack s = {.tstate = make_thread(w, make_interp(w), THREAD, 0)};

	make(w, 1024);
	put_ptr(w, s.tstate, w->l.tstate_exc_info, s.tstate + 8);
	s.cframe = make(w, 4096) + 4000;
	put_ptr(w, s.cframe, w->l.cframe_frame, 0);
	put_ptr(w, s.cframe, w->l.cframe_frame + 8, s.tstate + w->l.tstate_window);
	make(w, 2048);
	s.chunk = make_chunk(w, 0);
	set_top(w, &s, s.chunk + DATA + 8);
	return s;
}

/* a, whose run called b, which called c. */
struct three {
	struct stack s;
	uint64_t code_a, code_b, code_c, a, b, c;
};

static struct three make_three(struct world *w)
{
	struct three t = {.s = make_stack(w)};

	t.code_a = make_sized_code(w, 1);
	t.code_b = make_sized_code(w, 2);
	t.code_c = make_sized_code(w, 3);
	t.a = begin_run(w, push(w, &t.s, t.code_a, 0), 0);
	link_cframe(w, &t.s, t.a);
	t.b = begin_run(w, push(w, &t.s, t.code_b, 0), t.a);
	t.c = push(w, &t.s, t.code_c, t.b);
	link_cframe(w, &t.s, t.c);
	return t;
}

static void assert_three(struct world *w, const struct three *t)
{
	assert_codes(w, THREAD, (const uint64_t[]){t->code_c, t->code_b, t->code_a}, 3, 0);
}

/* A third run has linked its cframe, in which lies what an earlier call left there. */
static void run_begins(struct world *w)
{
	struct three t;
	uint64_t stale;

	if (!has_cframes(w))
		return;
	t = make_three(w);
	assert_three(w, &t);
	link_cframe(w, &t.s, 0);
	assert_three(w, &t);
	for (size_t i = 0; i < ARRAY_SIZE(wild_pointers); i++) {
		put_ptr(w, t.s.cframe, w->l.cframe_frame, wild_pointers[i]);
		assert_three(w, &t);
		put_ptr(w, t.s.cframe, w->l.cframe_frame + 8, wild_pointers[i]);
		assert_three(w, &t);
		put_ptr(w, t.s.cframe, w->l.cframe_frame + 8, t.s.cframe + 64);
	}
	/* A frame that was linked properly, and popped. */
	stale = begin_run(w, push(w, &t.s, t.code_b, 0), t.c);
	put_ptr(w, t.s.cframe, w->l.cframe_frame, stale);
	assert_codes(w, THREAD, (const uint64_t[]){t.code_b, t.code_c, t.code_b, t.code_a}, 4, 0);
	set_top(w, &t.s, stale);
	assert_three(w, &t);
	/* Or one of a chunk that was given back. */
	stale = make(w, 256);
	fill_frame(w, stale, t.code_b, 0, true, 0);
	put_ptr(w, t.s.cframe, w->l.cframe_frame, begin_run(w, stale, t.c));
	assert_three(w, &t);
	/* The frame that the run is about to begin with is there, and not linked. */
	stale = push(w, &t.s, t.code_b, t.a);
	fill_frame(w, stale, t.code_b, t.a, false, 0);
	assert_three(w, &t);
}
LAYOUT_TEST(run_begins)

/* greenlet switches: at the cframe's place lies the C stack of the next greenlet, which has a data stack of its own. */
static void greenlet_switches(struct world *w)
{
	struct three t;
	struct stack next;
	uint64_t outermost, own;

	if (!has_cframes(w))
		return;
	t = make_three(w);
	next = t.s;
	next.chunk = make_chunk(w, 0);
	set_top(w, &next, next.chunk + DATA + 8);
	outermost = begin_run(w, push(w, &next, make_sized_code(w, 4), 0), 0);
	set_top(w, &t.s, t.c + SPECIALS + WORDS * 8);
	assert_three(w, &t);
	/* The cframe of the first of its runs, of which it has more. */
	put_ptr(w, t.s.cframe, w->l.cframe_frame, outermost);
	put_ptr(w, t.s.cframe, w->l.cframe_frame + 8, t.s.tstate + w->l.tstate_window);
	assert_three(w, &t);
	/* In 3.12, no frame of either is linked to its entry frame any more. */
	if (w->l.frame_owner != NO) {
		own = make(w, 64);
		put_ptr(w, t.b, w->l.frame_previous, t.a);
		put_ptr(w, t.a, w->l.frame_previous, 0);
		put_ptr(w, outermost, w->l.frame_previous, 0);
		put_ptr(w, t.a, w->l.frame_position - 8, own);
		put_ptr(w, own, w->l.code_type + 16, t.a);
		assert_three(w, &t);
		put_ptr(w, own, w->l.code_type + 16, t.b);
		assert_codes(w, THREAD, NULL, 0, PYBPF_STACK_FAULT);
	}
}
LAYOUT_TEST(greenlet_switches)

/* greenlet 3.0.0 and 3.0.1 take the link away from the last frame alone, and know its frame object. */
static void greenlet_cuts(struct world *w)
{
	struct three t;
	uint64_t object;

	if (!has_cframes(w) || w->l.frame_owner == NO)
		return;
	t = make_three(w);
	object = make(w, 64);
	link_cframe(w, &t.s, 1);
	assert_three(w, &t);
	put_ptr(w, t.c, w->l.frame_previous, 0);
	put_ptr(w, t.c, w->l.frame_position - 8, object);
	put_ptr(w, object, w->l.code_type + 16, t.c);
	assert_codes(w, THREAD, NULL, 0, PYBPF_STACK_FAULT);
}
LAYOUT_TEST(greenlet_cuts)

/* A greenlet before its first function, and after it. */
static void greenlet_without_frames(struct world *w)
{
	struct stack s;

	if (!has_cframes(w))
		return;
	s = make_stack(w);
	link_cframe(w, &s, 0);
	assert_codes(w, THREAD, NULL, 0, 0);
	set_top(w, &s, 0);
	assert_codes(w, THREAD, NULL, 0, 0);
	s.chunk = 0;
	set_top(w, &s, 0);
	assert_codes(w, THREAD, NULL, 0, 0);
}
LAYOUT_TEST(greenlet_without_frames)

/* The frame of a generator that runs, behind its item of exc_info. */
static uint64_t make_generator(struct world *w, const struct stack *s, uint64_t code, uint64_t outer)
{
	uint64_t item = make(w, 256), before;

	make(w, 2048);
	memcpy(&before, bytes_at(w, s->tstate + w->l.tstate_exc_info, 8), 8);
	put_ptr(w, item, 8, before);
	put_ptr(w, s->tstate, w->l.tstate_exc_info, item);
	put(w, item, 27, 0, 1); /* it runs */
	fill_frame(w, item + 32, code, 0, true, 1);
	return begin_run(w, item + 32, outer);
}

/*
 * The cframe has a frame that has not begun, and whose link may not have been stored yet: it is believed if it leads to
 * the frame right below, and no generator runs.
 */
static void link_is_late(struct world *w)
{
	struct three t;
	uint64_t d;

	if (!has_cframes(w))
		return;
	t = make_three(w);
	d = push(w, &t.s, t.code_b, t.c);
	fill_frame(w, d, t.code_b, t.c, false, 0);
	put_ptr(w, t.s.cframe, w->l.cframe_frame, d);
	assert_codes(w, THREAD, (const uint64_t[]){t.code_b, t.code_c, t.code_b, t.code_a}, 4, 0);
	/* The link of an earlier frame there. */
	put_ptr(w, d, w->l.frame_previous, t.b);
	assert_three(w, &t);
	put_ptr(w, d, w->l.frame_previous, t.a);
	assert_three(w, &t);
	for (size_t i = 0; i < ARRAY_SIZE(wild_pointers); i++) {
		put_ptr(w, d, w->l.frame_previous, wild_pointers[i]);
		assert_three(w, &t);
	}
	/* It has begun: the link is its own. */
	fill_frame(w, d, t.code_b, t.c, true, 0);
	assert_codes(w, THREAD, (const uint64_t[]){t.code_b, t.code_c, t.code_b, t.code_a}, 4, 0);
}
LAYOUT_TEST(link_is_late)

/* The function that called the generator called the one before, whose link still lies where the generator's callee is.
 */
static void link_past_a_generator(struct world *w)
{
	struct three t;
	uint64_t d, code_g, g;

	if (!has_cframes(w))
		return;
	t = make_three(w);
	code_g = make_sized_code(w, 4);
	g = make_generator(w, &t.s, code_g, t.c);
	put_ptr(w, g, w->l.frame_previous, t.c);
	put(w, g, w->l.frame_entry, 0, 1);
	d = push(w, &t.s, t.code_b, t.c);
	fill_frame(w, d, t.code_b, t.c, false, 0);
	put_ptr(w, t.s.cframe, w->l.cframe_frame, d);
	assert_codes(w, THREAD, (const uint64_t[]){code_g, t.code_c, t.code_b, t.code_a}, 4, 0);
	fill_frame(w, d, t.code_b, g, true, 0);
	assert_codes(w, THREAD, (const uint64_t[]){t.code_b, code_g, t.code_c, t.code_b, t.code_a}, 5, 0);
}
LAYOUT_TEST(link_past_a_generator)

static void generators_run(struct world *w)
{
	uint64_t a, g, h, f, first, second, next, item, foreign, object;
	struct stack s;
	uint16_t at;

	if (!has_cframes(w))
		return;
	s = make_stack(w);
	a = make_sized_code(w, 1);
	g = make_sized_code(w, 2);
	h = make_sized_code(w, 3);
	first = make_generator(w, &s, g, begin_run(w, push(w, &s, a, 0), 0));
	link_cframe(w, &s, 1); /* no cframe tells anything here */
	assert_codes(w, THREAD, (const uint64_t[]){g, a}, 2, 0);
	second = make_generator(w, &s, h, first);
	assert_codes(w, THREAD, (const uint64_t[]){h, g, a}, 3, 0);

	/* A generator of Cython's is on the list, too, and has no frame. */
	foreign = make(w, 256);
	memcpy(&item, bytes_at(w, s.tstate + w->l.tstate_exc_info, 8), 8);
	put_ptr(w, foreign, 8, item);
	put_ptr(w, s.tstate, w->l.tstate_exc_info, foreign);
	assert_codes(w, THREAD, (const uint64_t[]){h, g, a}, 3, 0);
	put_ptr(w, s.tstate, w->l.tstate_exc_info, item);

	/* It calls a function. */
	f = begin_run(w, push(w, &s, a, 0), second);
	assert_codes(w, THREAD, (const uint64_t[]){a, h, g, a}, 4, 0);
	set_top(w, &s, f);
	/* It has yielded, and been unlinked. */
	put_ptr(w, second, w->l.frame_previous, 0);
	assert_codes(w, THREAD, (const uint64_t[]){g, a}, 2, 0);
	/* Or greenlet has done that, which knows its frame object. */
	object = make(w, 64);
	at = w->l.frame_entry == NO ? w->l.frame_position - 8 : w->l.frame_previous - 8;
	put_ptr(w, second, at, object);
	put_ptr(w, object, w->l.code_type + 16, second);
	put_ptr(w, s.cframe, w->l.cframe_frame, second);
	assert_codes(w, THREAD, NULL, 0, PYBPF_STACK_FAULT);
	/* And it has stored the cframe of the next greenlet, whose frame it has made an object for. */
	next = make(w, 256);
	put_ptr(w, s.cframe, w->l.cframe_frame, next);
	put_ptr(w, next, w->l.frame_previous, 0);
	put_ptr(w, next, at, object = make(w, 64));
	put_ptr(w, object, w->l.code_type + 16, next);
	assert_codes(w, THREAD, NULL, 0, PYBPF_STACK_FAULT);
	/* Or a traceback has been made of it, and it is about to run again. */
	put_ptr(w, object, w->l.code_type + 16, 0);
	assert_codes(w, THREAD, (const uint64_t[]){g, a}, 2, 0);
	put_ptr(w, s.cframe, w->l.cframe_frame, 1);
	assert_codes(w, THREAD, (const uint64_t[]){g, a}, 2, 0);
	put_ptr(w, second, w->l.frame_previous, s.cframe + 64);
	assert_codes(w, THREAD, (const uint64_t[]){g, a}, 2, 0);
	/* Or it runs, and not every link can be read. */
	put_ptr(w, second, w->l.frame_previous, UNMAPPED);
	assert_codes(w, THREAD, NULL, 0, PYBPF_STACK_FAULT);
	put_ptr(w, second, w->l.frame_previous, 0);
	/* It has yielded, and has one. */
	put(w, item, 27, 0xff, 1);
	assert_codes(w, THREAD, (const uint64_t[]){g, a}, 2, 0);
	put_ptr(w, first, w->l.frame_previous, 0);
	assert_one_code(w, THREAD, a);

	/* The list is not to be read to its end, or has none. */
	put_ptr(w, item, 8, UNMAPPED);
	assert_codes(w, THREAD, NULL, 0, PYBPF_STACK_FAULT);
	put_ptr(w, item, 8, item);
	assert_codes(w, THREAD, NULL, 0, PYBPF_STACK_FAULT);
}
LAYOUT_TEST(generators_run)

/* A generator is all that a greenlet runs: the data stack is empty. */
static void generator_alone(struct world *w)
{
	struct stack s;
	uint64_t g;

	if (!has_cframes(w))
		return;
	s = make_stack(w);
	g = make_sized_code(w, 1);
	make_generator(w, &s, g, 0);
	link_cframe(w, &s, 1);
	assert_one_code(w, THREAD, g);
	s.chunk = 0;
	set_top(w, &s, 0);
	assert_one_code(w, THREAD, g);
}
LAYOUT_TEST(generator_alone)

/* Chunk, top and limit are stored one by one. */
static void chunks(struct world *w)
{
	struct three t;
	uint64_t old, top, frame;

	if (!has_cframes(w))
		return;
	t = make_three(w);
	old = t.s.chunk;
	top = get_top(w, &t.s);
	put_ptr(w, old, 16, (top - old - DATA) / 8);
	t.s.chunk = make_chunk(w, old);
	/* A frame in a new chunk, and not linked. */
	set_top(w, &t.s, t.s.chunk + DATA);
	frame = push(w, &t.s, t.code_b, 0);
	fill_frame(w, frame, t.code_b, t.a, false, 0);
	assert_three(w, &t);
	/* The top is still the old chunk's. */
	set_data_stack(w, t.s.tstate, t.s.chunk, top, t.s.chunk + CHUNK);
	assert_three(w, &t);
	/* It is neither. */
	link_cframe(w, &t.s, 0);
	assert_three(w, &t);
	set_data_stack(w, t.s.tstate, t.s.chunk, top + 8, t.s.chunk + CHUNK);
	assert_codes(w, THREAD, NULL, 0, PYBPF_STACK_FAULT);
	t.s.cframe += 64;
	/* The limit is one of another data stack, so that the frames seem to have been popped. */
	set_data_stack(w, t.s.tstate, t.s.chunk, t.s.chunk + DATA, t.s.chunk + CHUNK);
	frame = begin_run(w, push(w, &t.s, t.code_b, 0), t.c);
	link_cframe(w, &t.s, frame);
	assert_codes(w, THREAD, (const uint64_t[]){t.code_b, t.code_c, t.code_b, t.code_a}, 4, 0);
	put_ptr(w, t.s.tstate, w->l.tstate_datastack_top + 8, UINT64_MAX);
	assert_codes(w, THREAD, (const uint64_t[]){t.code_b, t.code_c, t.code_b, t.code_a}, 4, 0);
}
LAYOUT_TEST(chunks)

/* An invalid data stack. */
static void unreadable(struct world *w)
{
	struct three t;
	uint64_t top;

	if (!has_cframes(w))
		return;
	t = make_three(w);
	top = get_top(w, &t.s);
	link_cframe(w, &t.s, 0);
	set_top(w, &t.s, top - 8);
	assert_codes(w, THREAD, NULL, 0, PYBPF_STACK_FAULT);
	set_top(w, &t.s, top);
	assert_three(w, &t);
	put(w, t.code_b, w->l.code_firstlineno + 4, 1u << 30, 4);
	assert_codes(w, THREAD, NULL, 0, PYBPF_STACK_FAULT);
	put(w, t.code_b, w->l.code_firstlineno + 4, 2, 4);
	for (size_t i = 0; i < ARRAY_SIZE(wild_pointers); i++) {
		set_data_stack(w, t.s.tstate, wild_pointers[i], top, t.s.chunk + CHUNK);
		assert_codes(w, THREAD, NULL, 0, PYBPF_STACK_FAULT);
		set_top(w, &t.s, top);
		put_ptr(w, t.b, w->l.frame_code, wild_pointers[i]);
		assert_codes(w, THREAD, NULL, 0, PYBPF_STACK_FAULT);
		put_ptr(w, t.b, w->l.frame_code, t.code_b);
		put_ptr(w, t.s.tstate, w->l.tstate_exc_info, wild_pointers[i]);
		assert_codes(w, THREAD, NULL, 0, PYBPF_STACK_FAULT);
		put_ptr(w, t.s.tstate, w->l.tstate_exc_info, 0);
		assert_three(w, &t);
	}
}
LAYOUT_TEST(unreadable)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_run_begins),     cmocka_unit_test(test_greenlet_switches),
		cmocka_unit_test(test_greenlet_cuts),  cmocka_unit_test(test_greenlet_without_frames),
		cmocka_unit_test(test_link_is_late),   cmocka_unit_test(test_link_past_a_generator),
		cmocka_unit_test(test_generators_run), cmocka_unit_test(test_generator_alone),
		cmocka_unit_test(test_chunks),         cmocka_unit_test(test_unreadable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

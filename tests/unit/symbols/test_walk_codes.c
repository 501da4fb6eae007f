// SPDX-License-Identifier: Apache-2.0
/* What a walk keeps of code objects for the next one, and when another code object at the address is not taken for it.
 */
#include "walk_world.h"

/* A process whose one thread has three frames of three code objects. */
struct process {
	uint64_t interp, tstate, code[3];
	uint64_t id;
};

static void set_guard(struct world *w, const struct process *p, uint64_t count)
{
	if (w->l.interp_code_guard)
		memcpy(bytes_at(w, p->interp + w->l.interp_code_guard, w->l.code_guard_size), &count,
		       w->l.code_guard_size);
}

static void make_process(struct world *w, struct process *p)
{
	uint64_t frame = 0;

	*p = (struct process){.interp = make_interp(w), .id = 7};
	for (int i = 0; i < 3; i++) {
		p->code[i] = make_code(w, 10 + i);
		frame = make_frame(w, p->code[i], 100 + i, frame);
	}
	p->tstate = make_thread(w, p->interp, THREAD, frame);
	set_guard(w, p, 5000);
}

static bool has_guard(const struct world *w)
{
	return w->l.interp_code_guard != 0;
}

/* As the kernel does it, with the memory of earlier samples. Returns how many reads it took. */
static uint64_t sample(struct world *w, const struct process *p, struct walk *k)
{
	walked = w;
	k->thread_id = THREAD;
	k->interp_head = w->proc.interp_head;
	k->code_type = w->proc.code_type;
	k->proc_id = p->id;
	k->nr_candidates = 0;
	w->reads = 0;
	walk_start(k, &w->l, 0, NULL);
	while (!walk_step(k, &w->l))
		;
	assert_int_equal(k->result, WALK_OK);
	assert_int_equal(k->stack.flags, 0);
	assert_int_equal(k->stack.depth, 3);
	return w->reads;
}

/* One that knows nothing yet, until the next one is asked for: large, and often wanted. */
static struct walk *passing_memory(void)
{
	static struct walk passing;

	memset(&passing, 0, offsetof(struct walk, frames));
	return &passing;
}

/* Samples once more, and wants the signatures that one without a memory finds. Returns the root's. */
static uint32_t assert_true_signatures(struct world *w, const struct process *p, struct walk *k)
{
	struct walk *fresh = passing_memory();

	sample(w, p, fresh);
	sample(w, p, k);
	for (int i = 0; i < 3; i++) {
		if (k->frames[i].sig != fresh->frames[i].sig)
			print_error("layout: %s, frame %d\n", w->origin, i);
		assert_int_equal(k->frames[i].sig, fresh->frames[i].sig);
	}
	return k->frames[2].sig;
}

/* Frees the root's code object and makes another one there. */
static void replace_root(struct world *w, const struct process *p)
{
	static uint32_t version = 100000;
	uint64_t code = p->code[0];

	put_ptr(w, code, w->l.code_filename, make_text(w, 61));
	put_ptr(w, code, w->l.code_name, make_text(w, 6));
	put_ptr(w, code, w->l.code_qualname, make_text(w, 8));
	put_ptr(w, code, w->l.code_linetable, make_lines(w, 33));
	put(w, code, w->l.code_firstlineno, 77, 4);
	put(w, code, w->l.code_version, version++, 4);
}

static struct walk *new_memory(void)
{
	struct walk *k = calloc(1, sizeof(*k));

	assert_non_null(k);
	return k;
}

static void kept_while_nothing_changes(struct world *w)
{
	struct walk *k = new_memory();
	struct process p;
	uint64_t first;

	make_process(w, &p);
	first = sample(w, &p, k);
	/* Whether it is the main interpreter, and each code object, is read once. */
	assert_int_equal(first - sample(w, &p, k), has_guard(w) ? 4 : 0);
	assert_true_signatures(w, &p, k);
	set_guard(w, &p, 5001);
	assert_int_equal(first - sample(w, &p, k), has_guard(w));
	assert_int_equal(first - sample(w, &p, k), has_guard(w) ? 4 : 0);
	free(k);
}
LAYOUT_TEST(kept_while_nothing_changes)

static void another_one_at_the_address(struct world *w)
{
	struct walk *k = new_memory();
	struct process p;
	uint32_t before;

	make_process(w, &p);
	before = assert_true_signatures(w, &p, k);
	for (uint64_t count = 5001; count < 5100; count++) {
		uint32_t now;

		replace_root(w, &p);
		set_guard(w, &p, count);
		now = assert_true_signatures(w, &p, k);
		assert_int_not_equal(now, before);
		before = now;
	}
	free(k);
}
LAYOUT_TEST(another_one_at_the_address)

/* The lower half of 64 bits alone is no counter. */
static void counter_goes_on_beyond_32_bits(struct world *w)
{
	struct walk *k = new_memory();
	struct process p;

	if (w->l.code_guard_size != 8)
		goto done;
	make_process(w, &p);
	assert_true_signatures(w, &p, k);
	replace_root(w, &p);
	set_guard(w, &p, 5000 + (1ULL << 32));
	assert_true_signatures(w, &p, k);
done:
	free(k);
}
LAYOUT_TEST(counter_goes_on_beyond_32_bits)

/* func_state.next_version stays at 0 once it has come round to it, whatever is made. */
static void counter_that_has_run_out(struct world *w)
{
	struct walk *k = new_memory();
	struct process p;

	if (w->l.code_guard_size == 8)
		goto done;
	make_process(w, &p);
	set_guard(w, &p, 0);
	for (int i = 0; i < 5; i++) {
		assert_true_signatures(w, &p, k);
		replace_root(w, &p);
	}
	/* It was met while it still counted. */
	set_guard(w, &p, 0xffffffff);
	assert_true_signatures(w, &p, k);
	set_guard(w, &p, 0);
	replace_root(w, &p);
	assert_true_signatures(w, &p, k);
done:
	free(k);
}
LAYOUT_TEST(counter_that_has_run_out)

/* What was found at a number is not used when the number comes back, as after an interpreter was made anew. */
static void counter_comes_back(struct world *w)
{
	struct walk *k = new_memory();
	struct process p;

	make_process(w, &p);
	assert_true_signatures(w, &p, k);
	set_guard(w, &p, 17);
	assert_true_signatures(w, &p, k);
	replace_root(w, &p);
	set_guard(w, &p, 5000);
	assert_true_signatures(w, &p, k);
	free(k);
}
LAYOUT_TEST(counter_comes_back)

/* A forked process has the same addresses, the same counters, and from then on its own code objects. */
static void forked_processes(struct world *w)
{
	struct walk *k = new_memory();
	struct process p;

	make_process(w, &p);
	for (uint64_t child = 1; child < 3 * WALK_GUARDS; child++) {
		assert_true_signatures(w, &p, k);
		p.id = child;
		replace_root(w, &p);
		assert_true_signatures(w, &p, k);
		replace_root(w, &p);
		p.id = 1ULL << 40 | child;
	}
	free(k);
}
LAYOUT_TEST(forked_processes)

/* Attaches the thread to another interpreter. */
static void move_thread(struct world *w, struct process *p, uint64_t interp)
{
	put_ptr(w, p->interp, w->l.interp_threads_head, 0);
	put_ptr(w, interp, w->l.interp_threads_head, p->tstate);
	put_ptr(w, p->tstate, w->l.tstate_interp, interp);
	p->interp = interp;
	set_guard(w, p, 5000);
}

/* Interpreters of one process whose counters are remembered in the same place. */
static void counters_in_one_place(struct world *w)
{
	struct walk *k = new_memory();
	uint64_t main_interp = make_interp(w), other = 0;
	struct process p;

	make_process(w, &p);
	for (int i = 0; i < 64 * WALK_GUARDS && !other; i++) {
		uint64_t made = make_interp(w);

		if (!((walk_mix(p.id, made) ^ walk_mix(p.id, main_interp)) & (WALK_GUARDS - 1)))
			other = made;
	}
	assert_int_not_equal(other, 0);
	move_thread(w, &p, main_interp);
	assert_true_signatures(w, &p, k);
	move_thread(w, &p, other);
	replace_root(w, &p);
	assert_true_signatures(w, &p, k);
	free(k);
}
LAYOUT_TEST(counters_in_one_place)

/* Each interpreter but the main one may have others before and after it at its place, and each counts for itself. */
static void other_interpreters(struct world *w)
{
	struct walk *k = new_memory();
	uint64_t main_interp, second;
	struct process p;

	main_interp = make_interp(w);
	make_process(w, &p);
	for (int i = 0; i < 5; i++) {
		assert_true_signatures(w, &p, k);
		replace_root(w, &p);
	}
	/* The thread is attached to the main one, and to the second one again. */
	second = p.interp;
	move_thread(w, &p, main_interp);
	assert_true_signatures(w, &p, k);
	move_thread(w, &p, second);
	replace_root(w, &p);
	assert_true_signatures(w, &p, k);
	free(k);
}
LAYOUT_TEST(other_interpreters)

static void unreadable_counter(struct world *w)
{
	struct walk *k = new_memory();
	struct process p;

	if (has_guard(w)) {
		make_process(w, &p);
		assert_true_signatures(w, &p, k);
		w->l.interp_code_guard = ARENA_SIZE * 2;
		for (int i = 0; i < 3; i++) {
			replace_root(w, &p);
			assert_true_signatures(w, &p, k);
		}
	}
	free(k);
}
LAYOUT_TEST(unreadable_counter)

/* Whoever reads without knowing whose the memory is, keeps nothing. */
static void nameless_process(struct world *w)
{
	struct walk *k = new_memory();
	struct process p;

	make_process(w, &p);
	p.id = 0;
	for (int i = 0; i < 5; i++) {
		assert_true_signatures(w, &p, k);
		replace_root(w, &p);
	}
	free(k);
}
LAYOUT_TEST(nameless_process)

/* More code objects than the memo has places. */
static void many_code_objects(struct world *w)
{
	enum {
		CODES = 3 * WALK_MEMO
	};
	struct walk *k = new_memory();
	uint64_t *codes = calloc(CODES, sizeof(*codes));
	struct process p;

	assert_non_null(codes);
	make_process(w, &p);
	for (int i = 0; i < CODES; i++)
		codes[i] = make_code(w, i);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < CODES; i += 3) {
			struct walk *fresh = passing_memory();
			uint64_t frame = 0;

			for (int j = 0; j < 3; j++)
				frame = make_frame(w, codes[i + j], j, frame);
			set_frame(w, p.tstate, frame);
			sample(w, &p, k);
			sample(w, &p, fresh);
			for (int j = 0; j < 3; j++)
				assert_int_equal(k->frames[j].sig, fresh->frames[j].sig);
		}
	}
	free(codes);
	free(k);
}
LAYOUT_TEST(many_code_objects)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kept_while_nothing_changes),
		cmocka_unit_test(test_another_one_at_the_address),
		cmocka_unit_test(test_counter_goes_on_beyond_32_bits),
		cmocka_unit_test(test_counter_that_has_run_out),
		cmocka_unit_test(test_counter_comes_back),
		cmocka_unit_test(test_forked_processes),
		cmocka_unit_test(test_counters_in_one_place),
		cmocka_unit_test(test_other_interpreters),
		cmocka_unit_test(test_unreadable_counter),
		cmocka_unit_test(test_nameless_process),
		cmocka_unit_test(test_many_code_objects),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* Fields that debug offsets name and nothing in them contradicts: what a process has there tells them. */
#include "proved_world.h"

static void assert_fits(struct world *w)
{
	struct error error;

	if (proved_validate(w, &error))
		fail_msg("%s: %s", w->origin, error.text);
}

static void assert_contradicted(struct world *w, const char *what)
{
	struct error error = {0};

	if (proved_validate(w, &error) != -EINVAL || !strstr(error.text, what))
		fail_msg("%s: expected that %s contradicts: \"%s\"", w->origin, what, error.text);
}

struct thread {
	uint64_t interp, tstate;
};

static struct thread make_one_thread(struct world *w)
{
	struct thread out = {.interp = proved_interp(w)};
	uint64_t id = proved_thread_id(w);

	out.tstate = proved_thread(w, out.interp, id, proved_frame(w, proved_code(w, 1), 0, 0));
	return out;
}

/* Layouts to 3.12 are tables of pybpf's own: nothing of this is asked of them. */
static bool is_told(const struct world *w)
{
	return w->l.major == 3 && w->l.minor >= 13;
}

/* Bits of _status: initialized, bound, unbound, bound_gilstate, active (3.13 to 3.15). */
static void status(struct world *w)
{
	static const uint32_t good[] = {3, 11, 27, STATUS_LAST, STATUS_DETACHED, STATUS_BEFORE};
	static const uint32_t bad[] = {0, 4, 7, 25, STATUS_DELETED};
	struct thread t;

	if (!is_told(w))
		return;
	t = make_one_thread(w);
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		put(w, t.tstate, w->l.tstate_status, good[i], 4);
		assert_fits(w);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		put(w, t.tstate, w->l.tstate_status, bad[i], 4);
		assert_contradicted(w, "a thread's status");
	}
}
LAYOUT_TEST(status)

static void data_stack(struct world *w)
{
	uint64_t chunk, next, size = 4096;
	struct thread t;

	if (!is_told(w))
		return;
	t = make_one_thread(w);
	chunk = make(w, size);
	put_ptr(w, chunk, 8, size);
	/* No function was called yet; the first lies at the start; the chunk is full. */
	set_data_stack(w, t.tstate, 0, 0, 0);
	assert_fits(w);
	set_data_stack(w, t.tstate, chunk, chunk + 24, chunk + size);
	assert_fits(w);
	set_data_stack(w, t.tstate, chunk, chunk + size, chunk + size);
	assert_fits(w);
	set_data_stack(w, t.tstate, chunk, chunk + size + 8, chunk + size);
	assert_contradicted(w, "the top of a thread's data stack");
	set_data_stack(w, t.tstate, chunk, chunk, chunk + size);
	assert_contradicted(w, "the top of a thread's data stack");
	/* A second chunk was made, and one given back, and its memory, too; then one of another size. */
	next = make(w, size);
	put_ptr(w, next, 0, chunk);
	put_ptr(w, next, 8, size);
	set_data_stack(w, t.tstate, next, chunk + size, chunk + size);
	assert_fits(w);
	set_data_stack(w, t.tstate, next, chunk + size, next + size);
	assert_fits(w);
	set_data_stack(w, t.tstate, chunk, chunk + size, next + size);
	assert_fits(w);
	set_data_stack(w, t.tstate, chunk, chunk + size, UNMAPPED);
	assert_fits(w);
	set_data_stack(w, t.tstate, next, UNMAPPED, next + size);
	assert_contradicted(w, "the top of a thread's data stack");
	put_ptr(w, chunk, 8, size + 8);
	set_data_stack(w, t.tstate, chunk, chunk + 24, chunk + size);
	assert_contradicted(w, "the top of a thread's data stack");
	/* The fields before and behind: a thread's number, a limit in place of the top. */
	set_data_stack(w, t.tstate, 1, chunk, chunk + 24);
	assert_contradicted(w, "a thread's data stack");
	set_data_stack(w, t.tstate, chunk + 24, chunk + size, 0);
	assert_contradicted(w, "a thread's data stack");
	set_data_stack(w, t.tstate, UNMAPPED, UNMAPPED + 24, UNMAPPED + size);
	assert_contradicted(w, "the top of a thread's data stack");
}
LAYOUT_TEST(data_stack)

static void gil(struct world *w)
{
	uint16_t holder = w->l.free_threaded ? 16 : 8;
	uint64_t gil, place;
	struct thread t;

	if (!is_told(w))
		return;
	t = make_one_thread(w);
	place = t.interp + w->l.interp_gil;
	memcpy(&gil, bytes_at(w, place, 8), 8);
	for (int locked = -1; locked <= 1; locked++) {
		put_ptr(w, gil, holder, t.tstate);
		put(w, gil, holder + 8, (uint32_t)locked, 4);
		/* Behind an int comes padding. */
		put(w, gil, holder + 12, 0xa5a5a5a5, 4);
		assert_fits(w);
	}
	put(w, gil, holder + 8, 2, 4);
	assert_contradicted(w, "whether a GIL is held");
	put(w, gil, holder + 8, 1, 4);
	put_ptr(w, gil, holder, 3);
	assert_contradicted(w, "a GIL's last holder");
	/* Other fields of an interpreter: own_gil, the recursion limit, none. */
	put_ptr(w, place, 0, 1);
	assert_contradicted(w, "an interpreter's GIL");
	put_ptr(w, place, 0, 1000);
	assert_contradicted(w, "an interpreter's GIL");
	put_ptr(w, place, 0, UNMAPPED);
	assert_contradicted(w, "a GIL");
	put_ptr(w, place, 0, 0);
	assert_fits(w);
}
LAYOUT_TEST(gil)

static void code_objects(struct world *w)
{
	struct thread t;

	if (!is_told(w) || w->l.code_guard_size != 8)
		return;
	t = make_one_thread(w);
	memcpy(bytes_at(w, t.interp + w->l.interp_code_guard, 8), &(uint64_t){1u << 30}, 8);
	assert_fits(w);
	memcpy(bytes_at(w, t.interp + w->l.interp_code_guard, 8), &t.tstate, 8);
	assert_contradicted(w, "an interpreter's count of code objects");
}
LAYOUT_TEST(code_objects)

/* A thread that has not begun, or has ended, has nothing that could be checked. */
static void threads_that_do_not_run(struct world *w)
{
	struct thread t;
	uint64_t other;

	if (!is_told(w))
		return;
	t = make_one_thread(w);
	other = make_thread(w, t.interp, 0, 0);
	put(w, other, w->l.tstate_status, 1, 4);
	assert_fits(w);
	/* It has got its id, but it is not bound yet. */
	put_ptr(w, other, w->l.tstate_thread_id, proved_thread_id(w));
	assert_fits(w);
#if defined(__x86_64__)
	put_ptr(w, other, w->l.tstate_thread_id, UNMAPPED);
	assert_fits(w);
#endif
}
LAYOUT_TEST(threads_that_do_not_run)

/* Frames of a version that is known need no proof. */
static void known_frames(struct world *w)
{
	uint64_t frame;
	struct thread t;

	if (!is_told(w))
		return;
	t = make_one_thread(w);
	memcpy(&frame, bytes_at(w, t.tstate + w->l.tstate_frame, 8), 8);
	put(w, frame, w->l.frame_owner, 8, 1);
	assert_fits(w);
}
LAYOUT_TEST(known_frames)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_status),       cmocka_unit_test(test_data_stack),
		cmocka_unit_test(test_gil),          cmocka_unit_test(test_code_objects),
		cmocka_unit_test(test_known_frames), cmocka_unit_test(test_threads_that_do_not_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* The profile: each thing once, stable indexes, sums; from nothing to many thousands. */
#include "profiles.h"
#include "allocated.h"

static uint64_t sum(const struct profile *p)
{
	size_t count;
	const struct profile_sample *samples = profile_samples(p, &count);
	uint64_t total = 0;

	for (size_t i = 0; i < count; i++)
		total += samples[i].value;
	return total;
}

static void test_empty(void **unused)
{
	struct profile *p = new_profile();
	size_t count = 1;

	(void)unused;
	profile_samples(p, &count);
	assert_int_equal(count, 0);
	assert_int_equal(profile_frame_count(p), 0);
	assert_int_equal(profile_process_count(p), 0);
	assert_string_equal(profile_string(p, 0), "");
	profile_free(p);
	profile_free(NULL);
}

static void test_strings_are_kept_once(void **unused)
{
	static const char *const texts[] = {"", "a", "b", "ab", "ba", "a ", "\n", ";", "caf\xc3\xa9", "cafe"};
	enum {
		N = sizeof(texts) / sizeof(*texts)
	};
	struct profile *p = new_profile();
	uint32_t index[N];

	(void)unused;
	for (int i = 0; i < N; i++)
		index[i] = profile_add_string(p, texts[i]);
	for (int i = 0; i < N; i++) {
		assert_int_equal(profile_add_string(p, texts[i]), index[i]);
		assert_string_equal(profile_string(p, index[i]), texts[i]);
		for (int j = 0; j < i; j++)
			assert_int_not_equal(index[i], index[j]);
	}
	assert_int_equal(index[0], 0);
	profile_free(p);
}

static void test_a_string_is_copied(void **unused)
{
	struct profile *p = new_profile();
	char text[] = "before";
	uint32_t index = profile_add_string(p, text);

	(void)unused;
	memcpy(text, "after!", sizeof(text));
	assert_string_equal(profile_string(p, index), "before");
	profile_free(p);
}

/* Each part of a frame's identity tells it from others. */
static void test_frames_differ_in_each_part(void **unused)
{
	struct profile *p = new_profile();
	uint32_t base = profile_add_frame(p, PROFILE_PYTHON, "f", "a.py", 7, PROFILE_NO_LINE);

	(void)unused;
	assert_int_equal(profile_add_frame(p, PROFILE_PYTHON, "f", "a.py", 7, PROFILE_NO_LINE), base);
	assert_int_not_equal(profile_add_frame(p, PROFILE_PYTHON, "g", "a.py", 7, PROFILE_NO_LINE), base);
	assert_int_not_equal(profile_add_frame(p, PROFILE_PYTHON, "f", "b.py", 7, PROFILE_NO_LINE), base);
	assert_int_not_equal(profile_add_frame(p, PROFILE_PYTHON, "f", "a.py", 8, PROFILE_NO_LINE), base);
	assert_int_not_equal(profile_add_frame(p, PROFILE_PYTHON, "f", "a.py", PROFILE_NO_LINE, PROFILE_NO_LINE), base);
	assert_int_not_equal(profile_add_frame(p, PROFILE_NOTE, "f", "a.py", 7, PROFILE_NO_LINE), base);
	assert_int_equal(profile_frame_count(p), 6);
	assert_string_equal(profile_string(p, profile_frame_at(p, base)->name), "f");
	assert_string_equal(profile_string(p, profile_frame_at(p, base)->file), "a.py");
	assert_int_equal(profile_frame_at(p, base)->line, 7);
	assert_int_equal(profile_frame_at(p, base)->kind, PROFILE_PYTHON);
	profile_free(p);
}

static void test_stacks_share_their_roots(void **unused)
{
	struct profile *p = new_profile();
	uint32_t f = profile_add_frame(p, PROFILE_PYTHON, "f", "", 1, PROFILE_NO_LINE);
	uint32_t g = profile_add_frame(p, PROFILE_PYTHON, "g", "", 1, PROFILE_NO_LINE);
	uint32_t sf = profile_add_stack(p, PROFILE_ROOT, f);
	uint32_t sfg = profile_add_stack(p, sf, g);
	uint32_t sg = profile_add_stack(p, PROFILE_ROOT, g);
	uint32_t sff = profile_add_stack(p, sf, f);

	(void)unused;
	assert_int_equal(profile_add_stack(p, PROFILE_ROOT, f), sf);
	assert_int_equal(profile_add_stack(p, sf, g), sfg);
	assert_int_not_equal(sfg, sg);
	assert_int_not_equal(sff, sf);
	assert_int_not_equal(sf, PROFILE_ROOT);
	assert_int_equal(profile_stack_at(p, sfg)->frame, g);
	assert_int_equal(profile_stack_at(p, sfg)->parent, sf);
	assert_int_equal(profile_stack_at(p, sf)->parent, PROFILE_ROOT);
	profile_free(p);
}

static void test_samples_add_up(void **unused)
{
	struct profile *p = new_profile();
	uint32_t f = profile_add_frame(p, PROFILE_PYTHON, "f", "", 1, PROFILE_NO_LINE);
	uint32_t s = profile_add_stack(p, PROFILE_ROOT, f);
	uint32_t p1 = process(p, 1, "one"), p2 = process(p, 2, "two");
	uint32_t t1 = profile_add_thread(p, p1, 11, "t"), t2 = profile_add_thread(p, p1, 12, "t");
	const struct profile_sample *samples;
	size_t count;

	(void)unused;
	assert_int_not_equal(t1, t2);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(profile_add_sample(p, s, p1, PROFILE_NONE, 5), 0);
		assert_int_equal(profile_add_sample(p, s, p2, PROFILE_NONE, 10), 0);
		assert_int_equal(profile_add_sample(p, s, p1, t1, 100), 0);
		assert_int_equal(profile_add_sample(p, s, p1, t2, 1000), 0);
		assert_int_equal(profile_add_sample(p, PROFILE_ROOT, p1, PROFILE_NONE, 0), 0);
	}
	samples = profile_samples(p, &count);
	assert_int_equal(count, 5);
	for (size_t i = 0; i < count; i++) {
		uint64_t want = samples[i].stack == PROFILE_ROOT ? 0
				: samples[i].process == p2       ? 30
				: samples[i].thread == t1        ? 300
				: samples[i].thread == t2        ? 3000
								 : 15;

		assert_int_equal(samples[i].value, want);
	}
	assert_int_equal(sum(p), 3345);
	profile_free(p);
}

/* Who waits is the function of Python's, below the kernel's functions that it waits in. */
static void test_who_waits(void **unused)
{
	struct profile *p = new_profile();
	uint32_t f = on(p, PROFILE_ROOT, "f", "app.py", 3);
	uint32_t outer = profile_add_stack(p, f, profile_add_frame(p, PROFILE_KERNEL, "sys_read_[k]", "", -1, -1));
	uint32_t inner = profile_add_stack(p, outer, profile_add_frame(p, PROFILE_KERNEL, "schedule_[k]", "", -1, -1));
	uint32_t waits = profile_add_stack(p, inner, profile_add_wait(p, "pipe", "[pipe: read]", 0));
	uint32_t remark = profile_add_stack(p, waits, profile_add_wait(p, "pipe", "[woken by: g (7)]", 7));

	(void)unused;
	assert_int_equal(profile_waiter_of(p, remark), f);
	assert_int_equal(profile_waiter_of(p, waits), f);
	assert_int_equal(profile_waiter_of(p, inner), inner);
	assert_int_equal(profile_waiter_of(p, f), f);
	profile_free(p);
}

/* Counts of a long run at a high rate on many CPUs go beyond 32 bits. */
static void test_large_counts(void **unused)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 1, "one");
	uint32_t s =
		profile_add_stack(p, PROFILE_ROOT, profile_add_frame(p, PROFILE_PYTHON, "f", "", 1, PROFILE_NO_LINE));

	(void)unused;
	for (int i = 0; i < 4; i++)
		assert_int_equal(profile_add_sample(p, s, owner, PROFILE_NONE, 1ULL << 40), 0);
	assert_int_equal(sum(p), 4ULL << 40);
	profile_free(p);
}

static void test_processes_and_threads(void **unused)
{
	struct profile *p = new_profile();
	uint32_t a = process(p, 7, "python"), b = process(p, 7, "other");
	uint32_t c = process(p, 8, "python");
	uint32_t t = profile_add_thread(p, a, 70, "worker");

	(void)unused;
	assert_int_not_equal(a, b);
	assert_int_not_equal(a, c);
	assert_int_equal(process(p, 7, "python"), a);
	assert_int_equal(profile_process_count(p), 3);
	assert_int_equal(profile_process_at(p, c)->pid, 8);
	assert_string_equal(profile_string(p, profile_process_at(p, b)->name), "other");
	assert_int_equal(profile_add_thread(p, a, 70, "worker"), t);
	assert_int_not_equal(profile_add_thread(p, c, 70, "worker"), t);
	assert_int_equal(profile_thread_at(p, t)->process, a);
	assert_int_equal(profile_thread_at(p, t)->tid, 70);
	assert_string_equal(profile_string(p, profile_thread_at(p, t)->name), "worker");
	profile_free(p);
}

/* Each part of a process's identity tells it from others. */
static void test_processes_in_containers(void **unused)
{
	static const struct profile_process_info infos[] = {
		{.pid = 7, .name = "python"},
		{.pid = 7, .inner_pid = 1, .name = "python"},
		{.pid = 7, .inner_pid = 1, .name = "python", .container = "web"},
		{.pid = 7, .name = "python", .container = "web"},
		{.pid = 7, .name = "python", .container = "db"},
		{.pid = 0, .name = "python", .container = "db"},
	};
	enum {
		N = sizeof(infos) / sizeof(*infos)
	};
	struct profile *p = new_profile();
	struct profile_process_info same = {.pid = 7, .inner_pid = 7, .name = "python", .container = ""};
	uint32_t index[N];

	(void)unused;
	for (int i = 0; i < N; i++) {
		index[i] = profile_add_process(p, &infos[i]);
		for (int j = 0; j < i; j++)
			assert_int_not_equal(index[i], index[j]);
	}
	for (int i = 0; i < N; i++) {
		const struct profile_process *got;

		assert_int_equal(profile_add_process(p, &infos[i]), index[i]);
		got = profile_process_at(p, index[i]);
		assert_int_equal(got->pid, infos[i].pid);
		assert_int_equal(got->inner_pid, infos[i].inner_pid);
		assert_string_equal(profile_string(p, got->container), infos[i].container ? infos[i].container : "");
		assert_int_equal(got->container == 0, infos[i].container == NULL);
	}
	/* The same PID inside does not count as its own, nor a container without a name as a container. */
	assert_int_equal(profile_add_process(p, &same), index[0]);
	assert_int_equal(profile_process_count(p), N);
	profile_free(p);
}

static void test_roots(void **unused)
{
	struct profile *p = new_profile();

	(void)unused;
	assert_int_equal(profile_roots(p), 0);
	process(p, 1, "one");
	assert_int_equal(profile_roots(p), 0);
	process(p, 2, "two");
	assert_int_equal(profile_roots(p), PROFILE_ROOT_PROCESS);
	profile_set_roots(p, 0);
	assert_int_equal(profile_roots(p), 0);
	profile_set_roots(p, PROFILE_ROOT_PROCESS | PROFILE_ROOT_CONTAINER);
	assert_int_equal(profile_roots(p), PROFILE_ROOT_PROCESS | PROFILE_ROOT_CONTAINER);
	profile_free(p);
}

/* Thousands of workers of one program: their stacks are there once, and a sample of each costs some bytes. */
static void test_memory(void **unused)
{
	enum {
		PROCESSES = 2000,
		STACKS = 10,
		DEPTH = 40
	};
	struct profile *p = new_profile();
	size_t one = 0, count;

	(void)unused;
	for (int i = 0; i < PROCESSES; i++) {
		uint32_t owner = process(p, 1000 + i, "worker");

		for (int s = 0; s < STACKS; s++) {
			uint32_t stack = PROFILE_ROOT;
			char name[32];

			for (int f = 0; f < DEPTH; f++) {
				snprintf(name, sizeof(name), "function_%d_%d", f < 20 ? 0 : s, f);
				stack = on(p, stack, name, "package/module.py", f);
			}
			take_in(p, stack, owner, 1);
		}
		if (!i)
			one = allocated_bytes();
	}
	profile_samples(p, &count);
	assert_int_equal(count, PROCESSES * STACKS);
	assert_int_equal(profile_frame_count(p), 20 + STACKS * (DEPTH - 20));
	/* Arrays have room to grow: by half of what they hold, and tables by four times. */
	assert_true(allocated_bytes() - one < PROCESSES * (STACKS * 24 + 16) * 2 + PROCESSES * (STACKS + 1) * 16);
	assert_true(allocated_bytes() > PROCESSES * (STACKS * 24 + 16));
	profile_free(p);
}

/* Indexes that were given out before the tables grew stay right, and nothing is entered twice. */
static void test_the_nearest_origin_of_a_file_stays(void **unused)
{
	struct profile *p = new_profile();

	(void)unused;
	assert_int_equal(profile_set_origin(p, "a.py", PROFILE_STDLIB), 0);
	assert_int_equal(profile_set_origin(p, "b.py", PROFILE_STDLIB), 0);
	assert_int_equal(profile_set_origin(p, "b.py", PROFILE_THIRD_PARTY), 0);
	assert_int_equal(profile_set_origin(p, "b.py", PROFILE_STDLIB), 0);
	assert_int_equal(profile_origin_of(p, profile_add_string(p, "a.py")), PROFILE_STDLIB);
	assert_int_equal(profile_origin_of(p, profile_add_string(p, "b.py")), PROFILE_THIRD_PARTY);
	assert_int_equal(profile_origin_of(p, profile_add_string(p, "c.py")), PROFILE_OWN);
	profile_free(p);
}

static void test_many(void **unused)
{
	enum {
		N = 50000
	};
	struct profile *p = new_profile();
	uint32_t owner = process(p, 1, "one"), stack = PROFILE_ROOT;
	uint32_t *frames = calloc(N, sizeof(*frames)), *stacks = calloc(N, sizeof(*stacks));
	size_t count;
	char name[32];

	(void)unused;
	assert_non_null(frames);
	assert_non_null(stacks);
	for (int i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "function_%d", i);
		frames[i] = profile_add_frame(p, PROFILE_PYTHON, name, "m.py", i, PROFILE_NO_LINE);
		stack = profile_add_stack(p, i % 100 ? stack : PROFILE_ROOT, frames[i]);
		stacks[i] = stack;
		assert_int_equal(profile_add_sample(p, stack, owner, PROFILE_NONE, (uint64_t)i), 0);
	}
	for (int i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "function_%d", i);
		assert_string_equal(profile_string(p, profile_frame_at(p, frames[i])->name), name);
		assert_int_equal(profile_frame_at(p, frames[i])->line, i);
		assert_int_equal(profile_add_frame(p, PROFILE_PYTHON, name, "m.py", i, PROFILE_NO_LINE), frames[i]);
		assert_int_equal(profile_stack_at(p, stacks[i])->frame, frames[i]);
		assert_int_equal(profile_stack_at(p, stacks[i])->parent, i % 100 ? stacks[i - 1] : PROFILE_ROOT);
		assert_int_equal(profile_add_sample(p, stacks[i], owner, PROFILE_NONE, 1), 0);
	}
	profile_samples(p, &count);
	assert_int_equal(count, N);
	assert_int_equal(profile_frame_count(p), N);
	assert_int_equal(sum(p), (uint64_t)N * (N - 1) / 2 + N);
	free(frames);
	free(stacks);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_strings_are_kept_once),
		cmocka_unit_test(test_a_string_is_copied),
		cmocka_unit_test(test_frames_differ_in_each_part),
		cmocka_unit_test(test_stacks_share_their_roots),
		cmocka_unit_test(test_samples_add_up),
		cmocka_unit_test(test_large_counts),
		cmocka_unit_test(test_who_waits),
		cmocka_unit_test(test_processes_and_threads),
		cmocka_unit_test(test_processes_in_containers),
		cmocka_unit_test(test_roots),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_the_nearest_origin_of_a_file_stays),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

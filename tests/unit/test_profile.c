// SPDX-License-Identifier: Apache-2.0
/* The profile: each thing once, stable indexes, sums; from nothing to many thousands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "profile.h"

static struct profile *new_profile(void)
{
	struct profile *p = profile_new();

	assert_non_null(p);
	return p;
}

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
	uint32_t base = profile_add_frame(p, PROFILE_PYTHON, "f", "a.py", 7);

	(void)unused;
	assert_int_equal(profile_add_frame(p, PROFILE_PYTHON, "f", "a.py", 7), base);
	assert_int_not_equal(profile_add_frame(p, PROFILE_PYTHON, "g", "a.py", 7), base);
	assert_int_not_equal(profile_add_frame(p, PROFILE_PYTHON, "f", "b.py", 7), base);
	assert_int_not_equal(profile_add_frame(p, PROFILE_PYTHON, "f", "a.py", 8), base);
	assert_int_not_equal(profile_add_frame(p, PROFILE_PYTHON, "f", "a.py", PROFILE_NO_LINE), base);
	assert_int_not_equal(profile_add_frame(p, PROFILE_NOTE, "f", "a.py", 7), base);
	assert_int_equal(profile_frame_count(p), 6);
	assert_string_equal(profile_string(p, profile_frame(p, base)->name), "f");
	assert_string_equal(profile_string(p, profile_frame(p, base)->file), "a.py");
	assert_int_equal(profile_frame(p, base)->line, 7);
	assert_int_equal(profile_frame(p, base)->kind, PROFILE_PYTHON);
	profile_free(p);
}

static void test_stacks_share_their_roots(void **unused)
{
	struct profile *p = new_profile();
	uint32_t f = profile_add_frame(p, PROFILE_PYTHON, "f", "", 1);
	uint32_t g = profile_add_frame(p, PROFILE_PYTHON, "g", "", 1);
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
	assert_int_equal(profile_stack(p, sfg)->frame, g);
	assert_int_equal(profile_stack(p, sfg)->parent, sf);
	assert_int_equal(profile_stack(p, sf)->parent, PROFILE_ROOT);
	profile_free(p);
}

static void test_samples_add_up(void **unused)
{
	struct profile *p = new_profile();
	uint32_t f = profile_add_frame(p, PROFILE_PYTHON, "f", "", 1);
	uint32_t s = profile_add_stack(p, PROFILE_ROOT, f);
	uint32_t p1 = profile_add_process(p, 1, "one"), p2 = profile_add_process(p, 2, "two");
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

/* Counts of a long run at a high rate on many CPUs go beyond 32 bits. */
static void test_large_counts(void **unused)
{
	struct profile *p = new_profile();
	uint32_t process = profile_add_process(p, 1, "one");
	uint32_t s = profile_add_stack(p, PROFILE_ROOT, profile_add_frame(p, PROFILE_PYTHON, "f", "", 1));

	(void)unused;
	for (int i = 0; i < 4; i++)
		assert_int_equal(profile_add_sample(p, s, process, PROFILE_NONE, 1ULL << 40), 0);
	assert_int_equal(sum(p), 4ULL << 40);
	profile_free(p);
}

static void test_processes_and_threads(void **unused)
{
	struct profile *p = new_profile();
	uint32_t a = profile_add_process(p, 7, "python"), b = profile_add_process(p, 7, "other");
	uint32_t c = profile_add_process(p, 8, "python");
	uint32_t t = profile_add_thread(p, a, 70, "worker");

	(void)unused;
	assert_int_not_equal(a, b);
	assert_int_not_equal(a, c);
	assert_int_equal(profile_add_process(p, 7, "python"), a);
	assert_int_equal(profile_process_count(p), 3);
	assert_int_equal(profile_process(p, c)->pid, 8);
	assert_string_equal(profile_string(p, profile_process(p, b)->name), "other");
	assert_int_equal(profile_add_thread(p, a, 70, "worker"), t);
	assert_int_not_equal(profile_add_thread(p, c, 70, "worker"), t);
	assert_int_equal(profile_thread(p, t)->process, a);
	assert_int_equal(profile_thread(p, t)->tid, 70);
	assert_string_equal(profile_string(p, profile_thread(p, t)->name), "worker");
	profile_free(p);
}

/* Indexes that were given out before the tables grew stay right, and nothing is entered twice. */
static void test_many(void **unused)
{
	enum {
		N = 50000
	};
	struct profile *p = new_profile();
	uint32_t process = profile_add_process(p, 1, "one"), stack = PROFILE_ROOT;
	uint32_t *frames = calloc(N, sizeof(*frames)), *stacks = calloc(N, sizeof(*stacks));
	size_t count;
	char name[32];

	(void)unused;
	assert_non_null(frames);
	assert_non_null(stacks);
	for (int i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "function_%d", i);
		frames[i] = profile_add_frame(p, PROFILE_PYTHON, name, "m.py", i);
		stack = profile_add_stack(p, i % 100 ? stack : PROFILE_ROOT, frames[i]);
		stacks[i] = stack;
		assert_int_equal(profile_add_sample(p, stack, process, PROFILE_NONE, (uint64_t)i), 0);
	}
	for (int i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "function_%d", i);
		assert_string_equal(profile_string(p, profile_frame(p, frames[i])->name), name);
		assert_int_equal(profile_frame(p, frames[i])->line, i);
		assert_int_equal(profile_add_frame(p, PROFILE_PYTHON, name, "m.py", i), frames[i]);
		assert_int_equal(profile_stack(p, stacks[i])->frame, frames[i]);
		assert_int_equal(profile_stack(p, stacks[i])->parent, i % 100 ? stacks[i - 1] : PROFILE_ROOT);
		assert_int_equal(profile_add_sample(p, stacks[i], process, PROFILE_NONE, 1), 0);
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
		cmocka_unit_test(test_processes_and_threads),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

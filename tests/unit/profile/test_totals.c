// SPDX-License-Identifier: Apache-2.0
/* Stacks as a tree, and frames in groups. */
#include <stdbool.h>

#include "profile/groups.h"
#include "profile/totals.h"
#include "profiles.h"

/* Is `over` on top of `under`? */
static bool stands_on(const struct profile *p, uint32_t over, uint32_t under)
{
	while (over != under && over != PROFILE_ROOT)
		over = profile_stack_at(p, over)->parent;
	return over == under;
}

/* A tree in which numbers of stacks do not follow the order: 40 stacks, each on one that was chosen by a rule. */
static struct profile *grown(void)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 1, "x"), stacks[40] = {PROFILE_ROOT};
	char name[16];

	for (uint32_t i = 1; i < 40; i++) {
		snprintf(name, sizeof(name), "f%u", i % 5);
		stacks[i] = on(p, stacks[(i * 7 + 3) % i], name, "t.py", (int)i);
		if (i % 3)
			take_in(p, stacks[i], owner, i);
	}
	take_in(p, PROFILE_ROOT, owner, 1000);
	return p;
}

static void test_values(void **unused)
{
	struct profile *p = grown();
	struct profile_totals t;
	size_t count;
	const struct profile_sample *samples = profile_samples(p, &count);

	(void)unused;
	assert_int_equal(profile_totals_make(&t, p), 0);
	assert_int_equal(t.count, profile_stack_count(p));
	for (uint32_t s = 0; s < t.count; s++) {
		uint64_t total = 0, self = 0;

		for (size_t i = 0; i < count; i++) {
			if (samples[i].stack == PROFILE_ROOT)
				continue;
			total += stands_on(p, samples[i].stack, s) ? samples[i].value : 0;
			self += samples[i].stack == s ? samples[i].value : 0;
		}
		assert_true(t.total[s] == total && t.self[s] == self);
	}
	assert_true(t.total[PROFILE_ROOT] == profile_total(p));
	profile_totals_free(&t);
	profile_free(p);
}

static void test_order(void **unused)
{
	struct profile *p = grown();
	struct profile_totals t;

	(void)unused;
	assert_int_equal(profile_totals_make(&t, p), 0);
	assert_int_equal(t.order[0], PROFILE_ROOT);
	for (uint32_t i = 0; i < t.count; i++) {
		for (uint32_t j = 0; j < t.count; j++)
			assert_int_equal(stands_on(p, t.order[j], t.order[i]), j >= i && j < t.end[i]);
	}
	profile_totals_free(&t);
	profile_free(p);
}

static void test_outermost(void **unused)
{
	struct profile *p = grown();
	struct profile_groups g;
	struct profile_totals t;
	uint32_t keys[64];
	bool outermost[64];

	(void)unused;
	assert_int_equal(profile_totals_make(&t, p), 0);
	assert_int_equal(profile_groups_make(&g, p, PROFILE_BY_FUNCTION), 0);
	assert_int_equal(g.table.count, 5);
	for (uint32_t s = 1; s < t.count; s++)
		keys[s] = g.of_frame[profile_stack_at(p, s)->frame];
	assert_int_equal(profile_totals_outermost(&t, keys, g.table.count, outermost), 0);
	for (uint32_t s = 1; s < t.count; s++) {
		bool want = true;

		for (uint32_t below = profile_stack_at(p, s)->parent; below != PROFILE_ROOT;
		     below = profile_stack_at(p, below)->parent)
			want &= keys[below] != keys[s];
		assert_int_equal(outermost[s], want);
	}
	profile_groups_free(&g);
	profile_totals_free(&t);
	profile_free(p);
}

static void test_empty(void **unused)
{
	struct profile *p = new_profile();
	struct profile_groups g;
	struct profile_totals t;

	(void)unused;
	assert_int_equal(profile_totals_make(&t, p), 0);
	assert_int_equal(t.count, 1);
	assert_true(t.total[PROFILE_ROOT] == 0);
	assert_int_equal(profile_groups_make(&g, p, PROFILE_BY_LINE), 0);
	assert_int_equal(g.table.count, 0);
	assert_int_equal(profile_totals_outermost(&t, NULL, 0, NULL), 0);
	profile_groups_free(&g);
	profile_totals_free(&t);
	profile_free(p);
}

static uint32_t groups(const struct profile *p, enum profile_group_by by)
{
	struct profile_groups g;
	uint32_t count;

	assert_int_equal(profile_groups_make(&g, p, by), 0);
	count = g.table.count;
	for (uint32_t i = 0; i < profile_frame_count(p); i++)
		assert_in_range(g.of_frame[i], 0, count - 1);
	profile_groups_free(&g);
	return count;
}

static void test_groups(void **unused)
{
	struct profile *p = new_profile();

	(void)unused;
	profile_add_frame(p, PROFILE_PYTHON, "<lambda>", "a.py", 1, 1);
	profile_add_frame(p, PROFILE_PYTHON, "<lambda>", "a.py", 2, 1);
	profile_add_frame(p, PROFILE_PYTHON, "<lambda>", "a.py", 2, 2);
	profile_add_frame(p, PROFILE_PYTHON, "<lambda>", "b.py", 2, 2);
	profile_add_frame(p, PROFILE_PYTHON, "other", "b.py", 2, 2);
	/* A first line that cannot be is one that is not known. */
	profile_add_frame(p, PROFILE_PYTHON, "other", "b.py", 3, 0);
	profile_add_frame(p, PROFILE_PYTHON, "other", "b.py", 3, PROFILE_NO_LINE);
	assert_int_equal(groups(p, PROFILE_BY_FUNCTION), 3);
	assert_int_equal(groups(p, PROFILE_BY_DEFINITION), 5);
	assert_int_equal(groups(p, PROFILE_BY_LINE), 5);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values), cmocka_unit_test(test_order),  cmocka_unit_test(test_outermost),
		cmocka_unit_test(test_empty),  cmocka_unit_test(test_groups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

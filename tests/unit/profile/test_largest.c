// SPDX-License-Identifier: Apache-2.0
/* The largest stacks of each service, and the rest as one row. */
#include "profile/edit.h"
#include "profile/largest.h"
#include "profiles.h"

static uint32_t process_of(struct profile *p, int pid, const char *service)
{
	return profile_add_process(
		p, &(struct profile_process_info){
			   .pid = pid, .name = "python3", .service = service, .attributes = "service.version=1\n"});
}

static uint64_t value_of(const struct profile *p, const char *service, const char *leaf, uint64_t *rows)
{
	size_t count;
	const struct profile_sample *samples = profile_samples(p, &count);
	uint64_t sum = 0;

	*rows = 0;
	for (size_t i = 0; i < count; i++) {
		const struct profile_frame *frame = profile_frame_at(p, profile_stack_at(p, samples[i].stack)->frame);
		const struct profile_process *owner = profile_process_at(p, samples[i].process);

		if (strcmp(profile_string(p, frame->name), leaf) != 0 ||
		    strcmp(profile_string(p, owner->service), service) != 0)
			continue;
		sum += samples[i].value;
		(*rows)++;
	}
	return sum;
}

/* A stack is as large as it is in all processes of its service; each service has its own largest. */
static void test_each_service(void **unused)
{
	struct profile *p = new_profile(), *got;
	const uint32_t shop[] = {process_of(p, 1, "shop"), process_of(p, 2, "shop")}, db = process_of(p, 3, "db");
	uint64_t rows;
	char name[16];

	(void)unused;
	for (uint32_t i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		take_in(p, on(p, PROFILE_ROOT, name, "a.py", 1), shop[i % 2], 100 + i);
	}
	/* Neither of these two is large in one process. */
	take_in(p, on(p, PROFILE_ROOT, "both", "a.py", 1), shop[0], 80);
	take_in(p, on(p, PROFILE_ROOT, "both", "a.py", 1), shop[1], 80);
	take_in(p, on(p, PROFILE_ROOT, "small", "a.py", 1), db, 1);
	assert_int_equal(profile_add_account(p, "lost", "full", "without room", 3), 0);
	got = profile_keep_largest(p, 3);
	assert_non_null(got);
	assert_int_equal(profile_total(got), profile_total(p));
	assert_int_equal(value_of(got, "shop", "both", &rows), 160);
	assert_int_equal(rows, 2);
	assert_int_equal(value_of(got, "shop", "f19", &rows), 119);
	assert_int_equal(value_of(got, "shop", "f18", &rows), 118);
	assert_int_equal(value_of(got, "shop", "f17", &rows), 0);
	assert_int_equal(value_of(got, "shop", PROFILE_OTHER_STACKS, &rows), 20 * 100 + 190 - 119 - 118);
	assert_int_equal(rows, 1);
	assert_int_equal(value_of(got, "db", "small", &rows), 1);
	assert_int_equal(value_of(got, "db", PROFILE_OTHER_STACKS, &rows), 0);
	/* The functions of the rest are not in it. */
	assert_int_equal(profile_frame_count(got), 5); /* both, f19, f18, small and the row */
	profile_free(got);
	got = profile_keep_largest(p, 1000);
	assert_int_equal(profile_frame_count(got), 22);
	assert_int_equal(value_of(got, "shop", PROFILE_OTHER_STACKS, &rows), 0);
	profile_free(got);
	profile_free(p);
}

/* Waits stay waits, of their state, with their number; threads and PIDs of the rest are not in it. */
static void test_waits(void **unused)
{
	struct profile *p = new_profile(), *got;
	const uint32_t owner = process_of(p, 1, "shop"), thread = profile_add_thread(p, owner, 5, "t");
	const uint32_t network = profile_add_wait(p, "network", "[network]", 0);
	const uint32_t lock = profile_add_wait(p, "lock", "[lock]", 0);
	const struct profile_sample *samples;
	size_t count, account;

	(void)unused;
	assert_int_equal(profile_set_measure(p, &(struct profile_measure){"wall", PROFILE_UNIT_TIME, 0}), 0);
	for (int i = 0; i < 4; i++) {
		const uint32_t f = on(p, PROFILE_ROOT, "f", "a.py", i);

		assert_int_equal(profile_add_time(p, profile_add_stack(p, f, network), owner, thread, 10, 2), 0);
		assert_int_equal(profile_add_time(p, profile_add_stack(p, f, lock), owner, thread, 20, 3), 0);
	}
	assert_int_equal(profile_add_time(p, on(p, PROFILE_ROOT, "f", "a.py", 9), owner, thread, 5, 1), 0);
	assert_int_equal(profile_add_account(p, PROFILE_ACCOUNT_STATES, "lock", "lock", 80000), 0);
	got = profile_keep_largest(p, 2);
	samples = profile_samples(got, &count);
	assert_int_equal(count, 2 + 3);
	for (size_t i = 0; i < count; i++) {
		const char *state = profile_string(got, profile_state_of(got, samples[i].stack));
		const bool rest = samples[i].thread == PROFILE_NONE;
		const uint64_t want = !*state ? 5 : strcmp(state, "lock") == 0 ? rest ? 40 : 20 : 40;

		assert_int_equal(samples[i].value, want);
		assert_int_equal(samples[i].count, !*state ? 1 : want == 20 ? 3 : strcmp(state, "lock") == 0 ? 6 : 8);
		assert_int_equal(profile_process_at(got, samples[i].process)->pid, rest ? 0 : 1);
	}
	assert_string_equal(profile_get_measure(got).unit, PROFILE_UNIT_TIME);
	assert_int_equal(profile_account_entries(got, &account)->value, 80000);
	assert_int_equal(account, 1);
	profile_free(got);
	profile_free(p);
}

/* Samples without frames stay; an empty profile stays empty. */
static void test_without_frames(void **unused)
{
	struct profile *p = new_profile(), *got = profile_keep_largest(p, 1);
	size_t count;

	(void)unused;
	assert_int_equal(profile_total(got), 0);
	profile_free(got);
	take_in(p, PROFILE_ROOT, process_of(p, 1, "shop"), 7);
	got = profile_keep_largest(p, 1);
	assert_int_equal(profile_samples(got, &count)->value, 7);
	assert_int_equal(count, 1);
	profile_free(got);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_service),
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_without_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

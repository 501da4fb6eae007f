// SPDX-License-Identifier: Apache-2.0
#include "output/formats/tracks.h"

#include "timelines.h"

static void assert_label(const struct profile *p, const struct output_tracks *t, size_t i, const char *want)
{
	char *label = output_track_label(p, t, &t->tracks[i]);

	assert_non_null(label);
	assert_string_equal(label, want);
	free(label);
}

static void test_timeline(void **unused)
{
	struct profile *p = timeline();
	struct output_tracks t;

	(void)unused;
	assert_int_equal(output_tracks_make(p, &t), 0);
	assert_true(t.timed);
	assert_int_equal(t.period_ns, 10 * MS);
	assert_int_equal(t.count, 2);
	assert_label(p, &t, 0, "python3 (42)");
	assert_label(p, &t, 1, "worker (43)");
	assert_int_equal(t.tracks[0].total, 5);
	assert_int_equal(t.tracks[0].count, 5);
	assert_int_equal(t.tracks[1].count, 2);
	for (size_t i = 1; i < 5; i++)
		assert_true(t.tracks[0].ticks[i - 1].time_ns <= t.tracks[0].ticks[i].time_ns);
	/* On to the next tick where it is about a period away, else one period. */
	assert_int_equal(output_tick_end(&t, &t.tracks[0], 0), 10 * MS);
	assert_int_equal(output_tick_end(&t, &t.tracks[0], 2), 31 * MS);
	assert_int_equal(output_tick_end(&t, &t.tracks[0], 3), 41 * MS);
	assert_int_equal(output_tick_end(&t, &t.tracks[0], 4), 110 * MS);
	output_tracks_free(&t);
	output_tracks_free(&t);
	profile_free(p);
}

/* Without any times, and with some. */
static void test_times_missing(void **unused)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 42, "python3");
	uint32_t s = on(p, PROFILE_ROOT, "f", "app.py", 3), g = on(p, s, "g", "app.py", 4);
	struct output_tracks t;

	(void)unused;
	take_in(p, s, owner, 5);
	take_in(p, g, owner, 7);
	take_in(p, PROFILE_ROOT, owner, 100);
	assert_int_equal(profile_set_fact(p, PROFILE_FACT_FREQ, "50"), 0);
	assert_int_equal(output_tracks_make(p, &t), 0);
	assert_false(t.timed);
	assert_int_equal(t.period_ns, 20 * MS);
	assert_int_equal(t.count, 1);
	assert_int_equal(t.tracks[0].total, 12);
	assert_int_equal(t.tracks[0].count, 2);
	assert_label(p, &t, 0, "python3 (42)");
	output_tracks_free(&t);

	assert_int_equal(profile_add_event(p, 3, profile_find_sample(p, s, owner, PROFILE_NONE), 2), 0);
	assert_int_equal(output_tracks_make(p, &t), 0);
	assert_true(t.timed);
	assert_int_equal(t.count, 2);
	assert_true(t.tracks[0].timed);
	assert_int_equal(t.tracks[0].total, 2);
	assert_int_equal(t.tracks[1].total, 10);
	assert_int_equal(t.tracks[1].count, 2);
	assert_label(p, &t, 1, "python3 (42), times unknown");
	output_tracks_free(&t);
	profile_free(p);
}

/* The largest process first, its threads together; processes of one PID are told apart. */
static void test_processes(void **unused)
{
	struct profile *p = new_profile();
	uint32_t small = process(p, 9, "small"), large = process(p, 9, "large"), many = process(p, 0, "many");
	uint32_t one = profile_add_thread(p, large, 9, "one"), two = profile_add_thread(p, large, 10, "two");
	uint32_t s = on(p, PROFILE_ROOT, "f", "app.py", 3);
	struct output_tracks t;

	(void)unused;
	take_in(p, s, small, 10);
	assert_int_equal(profile_add_sample(p, s, large, one, 6), 0);
	take_in(p, s, many, 9);
	assert_int_equal(profile_add_sample(p, s, large, two, 7), 0);
	assert_int_equal(output_tracks_make(p, &t), 0);
	assert_int_equal(t.count, 4);
	assert_label(p, &t, 0, "large (9): two (10)");
	assert_label(p, &t, 1, "large (9): one (9)");
	assert_label(p, &t, 2, "small (9)");
	assert_label(p, &t, 3, "many");
	assert_int_equal(t.tracks[0].again, 0);
	assert_int_equal(t.tracks[1].again, 0);
	assert_int_not_equal(t.tracks[2].again, 0);
	assert_int_not_equal(t.tracks[3].again, 0);
	assert_int_not_equal(t.tracks[2].again, t.tracks[3].again);
	output_tracks_free(&t);
	profile_free(p);
}

/* Where two threads had one TID one after the other, finds the one that had a stack then. */
static void test_at(void **unused)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 9, "old"), other = process(p, 10, "new");
	uint32_t one = profile_add_thread(p, owner, 43, "one"), two = profile_add_thread(p, other, 43, "two");
	uint32_t s = on(p, PROFILE_ROOT, "f", "app.py", 3);
	struct output_tracks t;

	(void)unused;
	measure_cpu(p);
	tick(p, 10, s, owner, one);
	tick(p, 20, s, owner, one);
	tick(p, 100, s, other, two);
	assert_int_equal(output_tracks_make(p, &t), 0);
	assert_null(output_track_at(p, &t, 43, 10 * MS - 1));
	assert_int_equal(output_track_at(p, &t, 43, 10 * MS)->thread, one);
	assert_int_equal(output_track_at(p, &t, 43, 30 * MS - 1)->thread, one);
	assert_null(output_track_at(p, &t, 43, 30 * MS));
	assert_int_equal(output_track_at(p, &t, 43, 109 * MS)->thread, two);
	assert_int_equal(output_track_at(p, &t, 43, 15 * MS)->thread, one);
	assert_null(output_track_at(p, &t, 42, 10 * MS));
	output_tracks_free(&t);
	profile_free(p);
}

static void test_empty(void **unused)
{
	struct profile *p = new_profile();
	struct output_tracks t;

	(void)unused;
	assert_int_equal(output_tracks_make(p, &t), 0);
	assert_int_equal(t.count, 0);
	assert_false(t.timed);
	output_tracks_free(&t);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_timeline), cmocka_unit_test(test_times_missing), cmocka_unit_test(test_processes),
		cmocka_unit_test(test_at),       cmocka_unit_test(test_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

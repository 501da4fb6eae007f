// SPDX-License-Identifier: Apache-2.0
/* Profiles to compare, and helpers that look up the results of a comparison. */
#ifndef COMPARISONS_H
#define COMPARISONS_H

#include "profiles.h"
#include "compare/diff.h"

static const struct diff_options shares = {.confidence = 0.95, .tolerance = -1};

#define RUNS_MOST 8

/* Fills both sides, the first runs before, with made-up names that diff_make's messages have. */
static inline void set_sides(struct diff_runs sides[DIFF_SIDES], struct profile *const runs[], size_t before,
			     size_t after)
{
	static const char *const names[DIFF_SIDES][RUNS_MOST] = {
		{"old", "old2", "old3", "old4", "old5", "old6", "old7", "old8"},
		{"new", "new2", "new3", "new4", "new5", "new6", "new7", "new8"},
	};

	assert_true(before <= RUNS_MOST && after <= RUNS_MOST);
	sides[DIFF_BEFORE] = (struct diff_runs){runs, names[DIFF_BEFORE], before};
	sides[DIFF_AFTER] = (struct diff_runs){runs + before, names[DIFF_AFTER], after};
}

static inline struct diff *compared_runs(struct profile *const runs[], size_t before, size_t after,
					 const struct diff_options *options)
{
	struct diff_runs sides[DIFF_SIDES];
	struct diff *d = NULL;
	struct error error = {0};

	set_sides(sides, runs, before, after);
	if (diff_make(sides, options, &d, &error))
		fail_msg("%s", error.text);
	assert_string_equal(error.text, "");
	assert_non_null(d);
	return d;
}

static inline struct diff *compared(struct profile *before, struct profile *after, const struct diff_options *options)
{
	struct profile *const runs[] = {before, after};

	return compared_runs(runs, 1, 1, options);
}

/* The entry of the function, which must be there, by line at that line. */
static inline const struct diff_function *function(const struct diff *d, const char *name, int line)
{
	const struct diff_function *found = NULL;

	for (uint32_t i = 0; i < profile_frame_count(d->merged); i++) {
		const struct profile_frame *f = profile_frame_at(d->merged, i);

		if (strcmp(profile_string(d->merged, f->name), name) != 0 || f->line != line)
			continue;
		assert_null(found);
		found = &d->functions[i];
	}
	if (!found)
		fail_msg("there is no %s:%d", name, line);
	return found;
}

static inline void assert_values(const uint64_t values[DIFF_SIDES], unsigned before, unsigned after)
{
	assert_int_equal(values[DIFF_BEFORE], before);
	assert_int_equal(values[DIFF_AFTER], after);
}

static inline unsigned changes(const struct diff *d)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < profile_frame_count(d->merged); i++)
		n += diff_is_change(&d->functions[i]);
	return n;
}

/* A profile of a program whose f takes more, and g as much as before. period_ns 0 or seconds NULL: not known. */
static inline struct profile *work(unsigned f, unsigned g, uint64_t period_ns, const char *seconds)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 1, "python3"), root = on(p, PROFILE_ROOT, "main", "app.py", 1);

	take_in(p, on(p, root, "f", "app.py", 2), owner, f);
	take_in(p, on(p, root, "g", "app.py", 3), owner, g);
	assert_int_equal(profile_set_measure(p, &(struct profile_measure){"samples", "count", period_ns}), 0);
	if (seconds)
		assert_int_equal(profile_set_fact(p, PROFILE_FACT_DURATION, seconds), 0);
	return p;
}

#endif

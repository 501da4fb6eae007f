// SPDX-License-Identifier: Apache-2.0
/* Profiles to compare, and helpers that look up the results of a comparison. */
#ifndef COMPARISONS_H
#define COMPARISONS_H

#include "profiles.h"
#include "compare/diff.h"

static const struct diff_options shares = {.confidence = 0.95, .names = {"old", "new"}};

static inline struct diff *compared(const struct profile *before, const struct profile *after,
				    const struct diff_options *options)
{
	struct diff *d = NULL;
	struct error error = {0};

	if (diff_make(before, after, options, &d, &error))
		fail_msg("%s", error.text);
	assert_string_equal(error.text, "");
	assert_non_null(d);
	return d;
}

/* The entry of the function, which must be there, by line at that line. */
static inline const struct diff_entry *function(const struct diff *d, const char *name, int line)
{
	const struct diff_entry *found = NULL;

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

static inline void assert_values(const struct diff_change *change, unsigned before, unsigned after)
{
	assert_int_equal(change->value[DIFF_BEFORE], before);
	assert_int_equal(change->value[DIFF_AFTER], after);
}

static inline unsigned changes(const struct diff *d)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < profile_frame_count(d->merged); i++)
		n += (d->functions[i].self.verdict != DIFF_NOISE) + (d->functions[i].total.verdict != DIFF_NOISE);
	return n;
}

static inline unsigned changed_stacks(const struct diff *d)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < profile_stack_count(d->merged); i++)
		n += (d->stacks[i].self.verdict != DIFF_NOISE) + (d->stacks[i].total.verdict != DIFF_NOISE);
	return n;
}

/* Of a program whose f takes more, and g as much as before: what stands in `period_ns` and `seconds` is known. */
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

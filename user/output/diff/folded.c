// SPDX-License-Identifier: Apache-2.0
/* A comparison as folded stacks with two counts. */
#include "output/diff/diff.h"

#include <inttypes.h>
#include <math.h>

#include "output/output.h"

/*
 * The number of samples after that equals one sample before, so that what did not change is as large on both sides, and
 * what grew is larger by what it grew.
 */
static double scale_of(const struct diff *d)
{
	const struct diff_whole *whole = d->whole;

	return d->state == DIFF_EMPTY ? 1 : whole[DIFF_BEFORE].units_per_sample / whole[DIFF_AFTER].units_per_sample;
}

int output_diff_folded(const struct diff *d, const struct output_diff_options *options, FILE *out)
{
	double scale = scale_of(d);
	size_t count;
	const struct profile_sample *samples = profile_samples(d->merged, &count);
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		uint64_t before = (uint64_t)llround((double)d->before[i] * scale);
		const struct profile_stack *stack = profile_stack_at(d->merged, samples[i].stack);

		if (d->state == DIFF_JUDGED && !options->all && !diff_is_change(&d->functions[stack->frame]))
			before = samples[i].value;
		if (!before && !samples[i].value)
			continue;
		err = output_folded_stack(d->merged, &samples[i], false, out);
		fprintf(out, " %" PRIu64 " %" PRIu64 "\n", before, samples[i].value);
	}
	return err;
}

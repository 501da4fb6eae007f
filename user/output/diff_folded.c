// SPDX-License-Identifier: Apache-2.0
/* A comparison of two profiles as folded stacks with two counts. */
#include "output/diff.h"

#include <inttypes.h>
#include <math.h>

#include "output/output.h"

/* Returns whether the stack, or its leaf function, has changed beyond the noise by its self samples. */
static bool is_change(const struct diff *d, uint32_t stack)
{
	return d->stacks[stack].self.verdict != DIFF_NOISE ||
	       d->functions[profile_stack_at(d->merged, stack)->frame].self.verdict != DIFF_NOISE;
}

int output_diff_folded(const struct diff *d, const struct output_diff_options *options, FILE *out)
{
	const struct diff_whole *whole = d->whole;
	/* The number of samples in the profile after that equals one sample in the profile before. */
	double scale = d->judged ? whole[DIFF_BEFORE].units_per_sample / whole[DIFF_AFTER].units_per_sample : 1;
	size_t count;
	const struct profile_sample *samples = profile_samples(d->merged, &count);
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		uint64_t before = (uint64_t)llround((double)d->before[i] * scale);

		if (d->judged && !options->all && !is_change(d, samples[i].stack))
			before = samples[i].value;
		if (!before && !samples[i].value)
			continue;
		err = output_folded_stack(d->merged, &samples[i], out);
		fprintf(out, " %" PRIu64 " %" PRIu64 "\n", before, samples[i].value);
	}
	return err;
}

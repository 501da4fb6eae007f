// SPDX-License-Identifier: Apache-2.0
#include "output/diff.h"

#include <inttypes.h>
#include <math.h>

#include "output/output.h"

/* Whether the stack's own difference is to be seen: it, or its function, has changed beyond the noise. */
static bool is_change(const struct diff *d, uint32_t stack)
{
	return d->stacks[stack].self.verdict != DIFF_NOISE ||
	       d->functions[profile_stack_at(d->merged, stack)->frame].self.verdict != DIFF_NOISE;
}

int output_diff_folded(const struct diff *d, const struct output_diff_options *options, FILE *out)
{
	const struct diff_whole *whole = d->whole;
	/* How many samples after mean the same as one before. */
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

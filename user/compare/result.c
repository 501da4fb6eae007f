// SPDX-License-Identifier: Apache-2.0
/* What is asked of a comparison that was made. */
#include "compare/diff.h"

bool diff_is_change(const struct diff_function *function)
{
	return function->verdict >= DIFF_GREW;
}

bool diff_is_reported(const struct diff_function *function)
{
	return function->verdict >= DIFF_LIKELY;
}

bool diff_is_single(const struct diff *diff)
{
	return diff->runs[DIFF_BEFORE].count == 1 && diff->runs[DIFF_AFTER].count == 1;
}

double diff_amount(const struct diff *diff, uint64_t value, enum diff_side side)
{
	return (double)value * diff->whole[side].units_per_sample;
}

// SPDX-License-Identifier: Apache-2.0
/* How much of the machine other programs took beside each run. */
#include <math.h>
#include <stdlib.h>

#include "compare/diff_internal.h"

/*
 * How far the means of both sides have to be apart, as a part of the machine, while none of the runs before is like one
 * after: then it cannot be told whether the load or the program made the difference.
 */
#define UNEVEN 0.15

static double fact_of(const struct profile *p, const char *key)
{
	const char *text = profile_find_fact(p, key);

	return text ? strtod(text, NULL) : NAN;
}

/* Returns the part of the machine's CPUs that others took during the run; NAN: unknown. */
static double load_of(const struct profile *p)
{
	double machine_s = fact_of(p, PROFILE_FACT_CPUS) * fact_of(p, PROFILE_FACT_DURATION);
	double others_s = fact_of(p, PROFILE_FACT_OTHERS) + fact_of(p, PROFILE_FACT_STOLEN);

	if (!(machine_s > 0) || !(others_s >= 0))
		return NAN;
	return fmin(1, others_s / machine_s);
}

void diff_measure_load(struct diff *d, const struct diff_map *maps, size_t count)
{
	struct diff_load *before = &d->whole[DIFF_BEFORE].load, *after = &d->whole[DIFF_AFTER].load;

	*before = *after = (struct diff_load){.least = INFINITY, .most = -INFINITY};
	for (size_t i = 0; i < count; i++) {
		struct diff_load *load = &d->whole[maps[i].side].load;
		double part = load_of(maps[i].p);

		load->mean += part / (double)d->runs[maps[i].side].count;
		load->least = fmin(load->least, part);
		load->most = fmax(load->most, part);
	}
	d->loads_known = isfinite(before->mean) && isfinite(after->mean);
	d->uneven = d->loads_known && fabs(after->mean - before->mean) > UNEVEN &&
		    (before->least > after->most || after->least > before->most);
}

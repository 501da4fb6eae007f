// SPDX-License-Identifier: Apache-2.0
/* How much of the machine other programs took beside each run. */
#include <math.h>
#include <stdlib.h>

#include "compare/diff_internal.h"

/*
 * How far the means of both sides have to be apart, as a part of the machine, while none of the runs before is like one
 * after: then nobody can know whether the load or the program made the difference.
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

/* Returns the part of the run in which some thread waited for a CPU; NAN: unknown. */
static double wait_of(const struct profile *p)
{
	return fact_of(p, PROFILE_FACT_WAITED) / fact_of(p, PROFILE_FACT_DURATION);
}

/* Adds up what each run says. Returns whether all runs say it. */
static bool add_up(const struct diff *d, const struct diff_map *maps, size_t count,
		   double (*part_of)(const struct profile *), struct diff_load *const loads[DIFF_SIDES])
{
	for (int side = 0; side < DIFF_SIDES; side++)
		*loads[side] = (struct diff_load){.least = INFINITY, .most = -INFINITY};
	for (size_t i = 0; i < count; i++) {
		struct diff_load *load = loads[maps[i].side];
		double part = part_of(maps[i].p);

		load->mean += part / (double)d->runs[maps[i].side].count;
		load->least = fmin(load->least, part);
		load->most = fmax(load->most, part);
	}
	return isfinite(loads[DIFF_BEFORE]->mean) && isfinite(loads[DIFF_AFTER]->mean);
}

void diff_measure_load(struct diff *d, const struct diff_map *maps, size_t count)
{
	struct diff_load *before = &d->whole[DIFF_BEFORE].load, *after = &d->whole[DIFF_AFTER].load;

	d->loads_known = add_up(d, maps, count, load_of, (struct diff_load *[]){before, after});
	d->waits_known = add_up(d, maps, count, wait_of,
				(struct diff_load *[]){&d->whole[DIFF_BEFORE].wait, &d->whole[DIFF_AFTER].wait});
	d->uneven = d->loads_known && fabs(after->mean - before->mean) > UNEVEN &&
		    (before->least > after->most || after->least > before->most);
}

// SPDX-License-Identifier: Apache-2.0
/* What a comparison found, in one line for each change. */
#include <math.h>

#include "output/diff/diff.h"
#include "output/output.h"

/* Changes that have a line of their own. */
#define LINES_MOST 3
/* Where the least and the greatest likely value differ by this factor, both are shown. */
#define WIDE 2
/* Up to this part of comparisons without a change, what is found is called certain. */
#define CERTAIN_CHANCE 0.001
/* If no smaller change could be seen in any function, the runs are too noisy to be compared. */
#define NOISY 0.5

static double added(const struct diff *d, const struct diff_function *f)
{
	return diff_amount(d, f->self[DIFF_AFTER], DIFF_AFTER) - diff_amount(d, f->self[DIFF_BEFORE], DIFF_BEFORE);
}

/* Returns whether a function is shown before another: those that are sure first, then larger ones. */
static bool is_before(const struct diff *d, uint32_t a, uint32_t b)
{
	const struct diff_function *x = &d->functions[a], *y = &d->functions[b];

	if (diff_is_change(x) != diff_is_change(y))
		return diff_is_change(x);
	if (fabs(added(d, x)) != fabs(added(d, y)))
		return fabs(added(d, x)) > fabs(added(d, y));
	return a < b;
}

/* Returns the function that is shown next after `last`, which is PROFILE_NONE at first, or PROFILE_NONE. */
static uint32_t find_next(const struct diff *d, uint32_t last)
{
	uint32_t next = PROFILE_NONE;

	for (uint32_t i = 0; i < profile_frame_count(d->merged); i++) {
		if (!diff_is_reported(&d->functions[i]) || i == last || (last != PROFILE_NONE && is_before(d, i, last)))
			continue;
		if (next == PROFILE_NONE || is_before(d, i, next))
			next = i;
	}
	return next;
}

static void write_amount(const struct diff *d, double amount, bool sign, FILE *out)
{
	switch (d->options.basis) {
	case DIFF_SHARE:
		fprintf(out, sign ? "%+.3g %%" : "%.3g %%", 100 * amount);
		break;
	case DIFF_RATE:
		fprintf(out, sign ? "%+.3g ms" : "%.3g ms", 1000 * amount);
		break;
	case DIFF_TIME:
		fprintf(out, sign ? "%+.3g s" : "%.3g s", amount);
		break;
	}
}

/* Writes " of 9.31 s": what the whole took before. */
static void write_whole(const struct diff *d, FILE *out)
{
	fputs(" of ", out);
	if (d->options.basis == DIFF_SHARE)
		fputs("the whole", out);
	else
		write_amount(d, d->whole[DIFF_BEFORE].time_s, false, out);
	if (d->options.basis == DIFF_RATE)
		fputs(" a second", out);
}

static void write_certainty(const struct diff *d, const struct diff_function *f, FILE *out)
{
	if (d->only_other != PROFILE_NONE) {
		fputs("; unless ", out);
		output_frame(d->merged, d->only_other, out);
		fputs(" changed instead: there is little else to compare with", out);
	} else if (d->uneven) {
		fputs("; unless the load did that", out);
	} else if (diff_is_single(d)) {
		fprintf(out, "; if two runs of one program differ by no more than %.2g %%", 100 * d->spread);
	} else if (diff_is_change(f) && f->chance <= CERTAIN_CHANCE) {
		fputs("; certain", out);
	} else {
		fprintf(out, "; %.*f in 100", f->chance < 0.005 ? 1 : 0, 100 * fmin(1 - f->chance, 1 - CERTAIN_CHANCE));
	}
	fputc('\n', out);
}

static int digits_of(double change)
{
	return change < 9 ? 1 : 0;
}

/* Writes " takes 2.2 times as long (1.1 to 4.2): ". A range that is narrow is left to --explain. */
static void write_factor(const struct diff_function *f, FILE *out)
{
	bool is_wide = 1 + f->high > WIDE * (1 + f->low);
	char change[32], low[32], high[32];

	output_diff_percent(f->change, false, change, sizeof(change));
	output_diff_percent(f->low, true, low, sizeof(low));
	output_diff_percent(f->high, true, high, sizeof(high));
	if (f->change < 0)
		fprintf(out, " takes %s less time", change + 1);
	else if (f->change < 1)
		fprintf(out, " takes %s longer", change);
	else
		fprintf(out, " takes %.*f times as long", digits_of(f->change), 1 + f->change);
	if (is_wide && f->change < 1)
		fprintf(out, " (%s to %s)", low, high);
	else if (is_wide)
		fprintf(out, " (%.*f to %.*f)", digits_of(f->low), 1 + f->low, digits_of(f->high), 1 + f->high);
	fputs(": ", out);
}

static void write_change(const struct diff *d, uint32_t function, FILE *out)
{
	const struct diff_function *f = &d->functions[function];

	fputs(diff_is_change(f) ? "" : "likely: ", out);
	output_frame(d->merged, function, out);
	if (!f->self[DIFF_BEFORE])
		fputs(" is new: ", out);
	else if (!f->self[DIFF_AFTER])
		fputs(" is gone: ", out);
	else
		write_factor(f, out);
	write_amount(d, added(d, f), true, out);
	write_whole(d, out);
	write_certainty(d, f, out);
}

static void write_changes(const struct diff *d, FILE *out)
{
	uint32_t function = find_next(d, PROFILE_NONE);
	size_t shown = 0, count = d->named + d->likely;

	for (; shown < LINES_MOST && function != PROFILE_NONE; shown++) {
		write_change(d, function, out);
		function = find_next(d, function);
	}
	if (shown < count)
		fprintf(out, "and %zu more %s%s that changed\n", count - shown,
			d->options.by_line ? "line" : "function", count - shown == 1 ? "" : "s");
}

/* Returns the judged function whose smallest visible change is the smallest, or the largest, or PROFILE_NONE. */
static uint32_t find_noticeable(const struct diff *d, bool largest)
{
	uint32_t found = PROFILE_NONE;

	for (uint32_t i = 0; i < profile_frame_count(d->merged); i++) {
		const struct diff_function *f = &d->functions[i];

		if (f->verdict == DIFF_UNJUDGED)
			continue;
		if (found == PROFILE_NONE || (f->noticeable > d->functions[found].noticeable) == largest)
			found = i;
	}
	return found;
}

static void write_nothing(const struct diff *d, FILE *out)
{
	uint32_t best = find_noticeable(d, false), worst = find_noticeable(d, true);
	char least[32], most[32];

	if (best == PROFILE_NONE) {
		fputs("No change seen\n", out);
		return;
	}
	output_diff_percent(d->functions[best].noticeable, false, least, sizeof(least));
	output_diff_percent(d->functions[worst].noticeable, false, most, sizeof(most));
	if (diff_is_single(d)) {
		fprintf(out, "No change seen; with one run on each side, none below %s can be seen\n", least);
		return;
	}
	if (d->functions[best].noticeable > NOISY) {
		fprintf(out, "Too noisy to compare: no change below %s could be seen in any %s\n", least,
			d->options.by_line ? "line" : "function");
		return;
	}
	fprintf(out, "No change seen; one below %s in ", least);
	output_frame(d->merged, best, out);
	if (best != worst) {
		fprintf(out, ", or below %s in ", most);
		output_frame(d->merged, worst, out);
	}
	fputs(", could be missed\n", out);
}

static void write_empty(const struct diff *d, FILE *out)
{
	for (int side = 0; side < DIFF_SIDES; side++) {
		for (size_t i = 0; i < d->runs[side].count && !d->whole[side].total; i++) {
			output_escaped(d->runs[side].names[i], out);
			fputs(" has no sample with frames, so there is nothing to compare.\n", out);
		}
	}
}

static void write_load(const struct diff *d, FILE *out)
{
	fprintf(out, "Perhaps not comparable: other programs took %.0f %% of the machine before, and %.0f %% after\n",
		100 * d->whole[DIFF_BEFORE].load.mean, 100 * d->whole[DIFF_AFTER].load.mean);
}

void output_diff_write_headline(const struct diff *d, FILE *out)
{
	switch (d->state) {
	case DIFF_EMPTY:
		write_empty(d, out);
		break;
	case DIFF_NO_COUNTS:
		fputs("No change can be named: these values are not counts of samples, and the profiles do not say "
		      "when "
		      "they "
		      "were taken\n",
		      out);
		break;
	case DIFF_FEW_FUNCTIONS:
		fprintf(out,
			"No change can be named: one function has all samples, or no function has %d %% of them and "
			"%d samples\n",
			DIFF_LEAST_PERCENT, DIFF_LEAST_SAMPLES);
		break;
	case DIFF_JUDGED:
		if (d->uneven)
			write_load(d, out);
		if (d->named + d->likely)
			write_changes(d, out);
		else
			write_nothing(d, out);
		if (diff_is_single(d))
			fputs("Record three runs or more of each side: they show how far runs differ\n", out);
		break;
	}
}

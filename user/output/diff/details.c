// SPDX-License-Identifier: Apache-2.0
/* What a comparison means, in sentences: every format says the same. */
#include <stdlib.h>

#include "base/text_stream.h"
#include "output/diff/diff.h"

/* Writes "1.23 s" or "123.4 ms in each second". */
static void write_time(const struct diff *d, enum diff_side side, FILE *out)
{
	if (d->options.basis == DIFF_TIME)
		fprintf(out, "%.3g s", d->whole[side].time_s);
	else
		fprintf(out, "%.1f ms", 1000 * d->whole[side].time_s);
}

static void write_total(const struct diff *d, FILE *out)
{
	const struct diff_time *t = &d->time;
	char low[32], high[32], change[32], spread[32], least[32];

	output_diff_percent(t->low, true, low, sizeof(low));
	output_diff_percent(t->high, true, high, sizeof(high));
	output_diff_percent(t->change, true, change, sizeof(change));
	output_diff_percent(t->spread, false, spread, sizeof(spread));
	output_diff_percent(t->noticeable, false, least, sizeof(least));
	fputs(d->options.basis == DIFF_TIME ? "Total CPU time of a run: " : "Total CPU time per second: ", out);
	write_time(d, DIFF_BEFORE, out);
	fputs(" -> ", out);
	write_time(d, DIFF_AFTER, out);
	if (!t->judged)
		fprintf(out, ", %s; with one run on each side it is not known how far totals differ from run to run.\n",
			change);
	else if (t->changed)
		fprintf(out, ": it %s, %s (%s to %s); runs of one side differ by %s.\n",
			t->change > 0 ? "grew" : "shrank", change, low, high, spread);
	else
		fprintf(out, ", %s; runs of one side differ by %s, so that a change below %s could not be seen.\n",
			change, spread, least);
}

/* How far runs differ, and how that is known. */
static void write_spread(const struct diff *d, FILE *out)
{
	if (diff_is_single(d)) {
		fprintf(out,
			"With one run on each side, how far two runs of the same program differ was not measured but "
			"assumed: %.3g %%%s.\n",
			100 * d->spread, d->assumed ? "" : ", as much as most functions differ");
		return;
	}
	if (d->spread < 0.001)
		fputs("Runs of the same program differed by no more than sampling explains.\n", out);
	else if (d->assumed)
		fprintf(out, "Runs of the same program are assumed to differ by at least %.3g %%.\n", 100 * d->spread);
	else
		fprintf(out, "Runs of the same program differed by about %.2g %% more than sampling explains.\n",
			100 * d->spread);
}

/* Counts the functions with that verdict. */
static unsigned count_verdict(const struct diff *d, enum diff_verdict verdict)
{
	unsigned count = 0;

	for (uint32_t i = 0; i < profile_frame_count(d->merged); i++) {
		const struct diff_function *f = &d->functions[i];

		count += f->verdict == verdict && f->self[DIFF_BEFORE] + f->self[DIFF_AFTER] > 0;
	}
	return count;
}

/* What the numbers of the table are. */
static void write_reference(const struct diff *d, FILE *out)
{
	const char *what = d->options.by_line ? "line" : "function";

	fprintf(out, "Each %s is compared with all others, apart from those that changed.\n", what);
	if (d->options.basis == DIFF_SHARE)
		fprintf(out,
			"Values are percent of the whole before; what did not change is as large after, so that the "
			"values after need not add up to 100 %%.\n");
	else
		fprintf(out,
			"Values after are divided by %.3g: unchanged code took %.3g times as long as before, by the "
			"machine or by a change of everything.\n",
			d->pace, d->pace);
}

static void write_chances(const struct diff *d, FILE *out)
{
	if (d->named)
		fprintf(out,
			"At most %.3g %% of the changes that are named grew, shrank, new or gone are expected to be "
			"chance.\n",
			100 * (1 - d->options.confidence));
	if (d->named + d->likely)
		fputs("\"92 in 100\" means: of 100 comparisons of a program with itself, 8 show a change as clear as "
		      "this "
		      "one; less than 1 in 1,000 is called certain.\n",
		      out);
	fputs("A smaller change than could be seen may be there: \"seen from\" is the size that would be named in 80 "
	      "of "
	      "100 comparisons like this one.\n",
	      out);
}

static void write_ranges(const char *what, const struct diff_load *before, const struct diff_load *after, FILE *out)
{
	fprintf(out, "%.0f to %.0f %% of the %s beside the runs before, and %.0f to %.0f %% beside those after.\n",
		100 * before->least, 100 * before->most, what, 100 * after->least, 100 * after->most);
}

static void write_load(const struct diff *d, FILE *out)
{
	const struct diff_whole *before = &d->whole[DIFF_BEFORE], *after = &d->whole[DIFF_AFTER];

	if (d->loads_known) {
		fputs("Other programs took ", out);
		write_ranges("machine", &before->load, &after->load, out);
	}
	if (d->waits_known) {
		fputs("Threads waited for a CPU for ", out);
		write_ranges("time", &before->wait, &after->wait, out);
	}
}

static void write_judged(const struct diff *d, FILE *out)
{
	const char *what = d->options.by_line ? "line" : "function";
	unsigned spread = count_verdict(d, DIFF_SPREAD);

	write_spread(d, out);
	write_load(d, out);
	write_reference(d, out);
	write_chances(d, out);
	if (spread)
		fprintf(out,
			"Sampling does not explain the difference of %u %s%s, but runs of the same program %s by "
			"as much (spread).\n",
			spread, what, spread == 1 ? "" : "s",
			diff_is_single(d) || d->assumed ? "are assumed to differ" : "differed");
	if (!d->whole[DIFF_BEFORE].times || !d->whole[DIFF_AFTER].times)
		fputs("Not all profiles say when samples were taken (--timestamps keeps it): work in bursts may vary "
		      "by "
		      "more than is allowed for.\n",
		      out);
}

static void write_details(const struct diff *d, FILE *out)
{
	if (d->options.basis != DIFF_SHARE && d->state != DIFF_EMPTY)
		write_total(d, out);
	if (d->state == DIFF_JUDGED)
		write_judged(d, out);
}

static void write_notes(const struct diff *d, FILE *out)
{
	output_diff_write_headline(d, out);
	write_details(d, out);
}

static char *written(const struct diff *d, void (*write)(const struct diff *d, FILE *out))
{
	char *text = NULL;
	size_t size;
	FILE *out = text_stream_open(&text, &size);

	if (!out)
		return NULL;
	write(d, out);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

char *output_diff_headline(const struct diff *d)
{
	return written(d, output_diff_write_headline);
}

char *output_diff_details(const struct diff *d)
{
	return written(d, write_details);
}

char *output_diff_notes(const struct diff *d)
{
	return written(d, write_notes);
}

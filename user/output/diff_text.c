// SPDX-License-Identifier: Apache-2.0
/* A comparison of two profiles as text tables. */
#include "output/diff.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "output/output.h"

/* The units and digits in which values of a basis are printed. */
struct scale {
	const char *compared, *unit, *change_unit;
	double factor; /* from the values of compare/diff.h to the unit */
	int digits;
};

static const struct scale scales[] = {
	[DIFF_SHARE] = {"shares of all samples; one also shrinks when another grows", "%", "points", 100, 2},
	[DIFF_RATE] = {"CPU time per second of the run", "ms/s", "ms/s", 1000, 2},
	[DIFF_TIME] = {"CPU time of the whole run", "s", "s", 1, 3},
};

static const char *const verdicts[] = {
	[DIFF_NOISE] = "noise", [DIFF_GREW] = "grew", [DIFF_SHRANK] = "shrank",
	[DIFF_NEW] = "new",     [DIFF_GONE] = "gone",
};

/* A table of functions by their self samples, or by their total samples. */
struct table {
	const struct diff *diff;
	const struct scale *scale;
	bool total;
	bool rates; /* CPU time is known and shown beside shares */
};

static const struct diff_change *change_of(const struct table *t, uint32_t function)
{
	return t->total ? &t->diff->functions[function].total : &t->diff->functions[function].self;
}

static double worth(const struct table *t, const struct diff_change *change, enum diff_side side)
{
	return (double)change->value[side] * t->diff->whole[side].units_per_sample * t->scale->factor;
}

/* Returns the CPU time per second of the run, in milliseconds. */
static double rate(const struct table *t, const struct diff_change *change, enum diff_side side)
{
	const struct diff_whole *whole = &t->diff->whole[side];

	return (double)change->value[side] * whole->period_s / whole->duration_s * 1000;
}

/*
 * Sorts changes before noise, growth before shrinking, and larger changes before smaller ones. Within the noise, it
 * sorts functions with more samples first.
 */
static int by_change(const void *a, const void *b, void *table)
{
	const struct table *t = table;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	const struct diff_change *x = change_of(t, i), *y = change_of(t, j);
	bool x_noise = x->verdict == DIFF_NOISE, y_noise = y->verdict == DIFF_NOISE;
	double x_size = diff_difference(t->diff, x), y_size = diff_difference(t->diff, y);

	if (x_noise != y_noise)
		return x_noise ? 1 : -1;
	if (!x_noise && (x_size > 0) != (y_size > 0))
		return x_size > 0 ? -1 : 1;
	if (x_noise) {
		x_size = worth(t, x, DIFF_BEFORE) + worth(t, x, DIFF_AFTER);
		y_size = worth(t, y, DIFF_BEFORE) + worth(t, y, DIFF_AFTER);
	}
	if (fabs(x_size) != fabs(y_size))
		return fabs(x_size) > fabs(y_size) ? -1 : 1;
	return i < j ? -1 : i > j;
}

static void write_row(const struct table *t, uint32_t function, FILE *out)
{
	const struct diff_change *change = change_of(t, function);
	const struct scale *s = t->scale;

	fprintf(out, "%-6s %9.*f %9.*f  %+9.*f  %+9.*f %+9.*f  ", t->diff->judged ? verdicts[change->verdict] : "",
		s->digits, worth(t, change, DIFF_BEFORE), s->digits, worth(t, change, DIFF_AFTER), s->digits,
		diff_difference(t->diff, change) * s->factor, s->digits, (double)change->low * s->factor, s->digits,
		(double)change->high * s->factor);
	if (t->rates)
		fprintf(out, "%9.2f %9.2f  ", rate(t, change, DIFF_BEFORE), rate(t, change, DIFF_AFTER));
	output_frame(t->diff->merged, function, out);
	fputc('\n', out);
}

static void write_head(const struct table *t, FILE *out)
{
	const char *unit = t->scale->unit, *change = t->scale->change_unit;

	fprintf(out, "\n%-6s %9s %9s  %9s  %9s %9s  ", "", "before", "after", "change", "from", "to");
	if (t->rates)
		fprintf(out, "%9s %9s  ", "before", "after");
	fprintf(out, "%s\n%-6s %9s %9s  %9s  %9s %9s", t->diff->options.by_line ? "line" : "function", "", unit, unit,
		change, change, change);
	if (t->rates)
		fprintf(out, "  %9s %9s", "ms/s", "ms/s");
	fputc('\n', out);
}

static int write_table(struct table *t, const struct output_diff_options *options, FILE *out)
{
	const char *what = t->diff->options.by_line ? "line" : "function";
	uint32_t frames = profile_frame_count(t->diff->merged), count = 0, changed = 0, shown;
	uint32_t *rows = calloc(frames + 1, sizeof(*rows));

	if (!rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < frames; i++) {
		const struct diff_change *change = change_of(t, i);

		if (!change->value[DIFF_BEFORE] && !change->value[DIFF_AFTER])
			continue;
		rows[count++] = i;
		changed += change->verdict != DIFF_NOISE;
	}
	qsort_r(rows, count, sizeof(*rows), by_change, t);
	fprintf(out, "\n%s: ", t->total ? "Total (on the stack)" : "Self (on top of the stack)");
	if (t->diff->judged)
		fprintf(out, "%u %s%s changed, %u within the noise\n", changed, what, changed == 1 ? "" : "s",
			count - changed);
	else
		fprintf(out, "%u %s%s\n", count, what, count == 1 ? "" : "s");
	shown = options->all ? count : changed;
	if (shown)
		write_head(t, out);
	for (uint32_t i = 0; i < shown && i < options->rows; i++)
		write_row(t, rows[i], out);
	if (shown > options->rows)
		fprintf(out, "and %u more (--limit)\n", shown - options->rows);
	free(rows);
	return 0;
}

static void write_whole(const struct diff *d, enum diff_side side, FILE *out)
{
	const struct diff_whole *whole = &d->whole[side];
	struct profile_measure measure = profile_get_measure(d->merged);

	fprintf(out, "%-8s", side == DIFF_BEFORE ? "before" : "after");
	output_escaped(d->options.names[side], out);
	fprintf(out, ": %" PRIu64 " ", whole->total);
	output_escaped(strcmp(measure.unit, "count") == 0 ? measure.name : measure.unit, out);
	if (whole->duration_s > 0)
		fprintf(out, " in %.1f s", whole->duration_s);
	if (whole->period_s > 0)
		fprintf(out, ", %.3g s of CPU time", (double)whole->total * whole->period_s);
	if (whole->period_s > 0 && whole->duration_s > 0)
		fprintf(out, ", %.0f ms in each second",
			(double)whole->total * whole->period_s / whole->duration_s * 1000);
	fputc('\n', out);
}

/* Writes what is compared, and how far the result can be trusted. */
static void write_method(const struct table *t, FILE *out)
{
	const struct diff *d = t->diff;
	const struct diff_whole *whole = d->whole;
	double percent = 100 * d->options.confidence;

	fprintf(out, "Compared: %s.\n", t->scale->compared);
	if (!whole[DIFF_BEFORE].total || !whole[DIFF_AFTER].total) {
		for (int i = 0; i < DIFF_SIDES; i++) {
			if (whole[i].total)
				continue;
			output_escaped(d->options.names[i], out);
			fputs(" has no sample with frames: there is nothing to compare with.\n", out);
		}
		return;
	}
	if (!d->judged) {
		fputs("These values are no counts, and when they were taken is not known: how far they go by chance "
		      "cannot be told, and nothing is called a change.\n",
		      out);
		return;
	}
	fprintf(out, "A change is more than chance");
	if (d->options.tolerance > 0)
		fprintf(out, ", and more than %g %% of itself, by which runs may differ", 100 * d->options.tolerance);
	fprintf(out, ". Of those listed, at most %g %% are expected to be none.\n", 100 - percent);
	fprintf(out, "Intervals are of %g %%, made wider for %zu comparisons.\n", percent, d->tested);
	if (!whole[DIFF_BEFORE].times || !whole[DIFF_AFTER].times)
		fputs("When samples were taken is not known of both (--timestamps keeps it): what works in bursts "
		      "can vary more than is allowed for.\n",
		      out);
}

int output_diff_text(const struct diff *d, const struct output_diff_options *options, FILE *out)
{
	struct table t = {.diff = d, .scale = &scales[d->options.basis]};
	int err = 0;

	t.rates = d->options.basis == DIFF_SHARE;
	for (int i = 0; i < DIFF_SIDES; i++) {
		t.rates &= d->whole[i].period_s > 0 && d->whole[i].duration_s > 0;
		write_whole(d, (enum diff_side)i, out);
	}
	write_method(&t, out);
	for (int total = 0; total < 2 && !err && (d->judged || options->all); total++) {
		t.total = total;
		err = write_table(&t, options, out);
	}
	return err;
}

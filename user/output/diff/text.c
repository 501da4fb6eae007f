// SPDX-License-Identifier: Apache-2.0
/* A comparison as text: what changed in a line each, a table, and on demand how that was found. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/text_stream.h"
#include "output/diff/diff.h"
#include "output/output.h"

#define WIDTH 80
/* Rows of functions that did not change, without --all-rows. */
#define ROWS_OTHERS 5

/* The units and digits in which values of a basis are printed. */
struct scale {
	const char *unit, *change_unit;
	double factor; /* from the values of compare/diff.h to the unit */
	int digits;
};

static const struct scale scales[] = {
	[DIFF_SHARE] = {"%", "points", 100, 2},
	[DIFF_RATE] = {"ms/s", "ms/s", 1000, 2},
	[DIFF_TIME] = {"s", "s", 1, 3},
};

struct table {
	const struct diff *diff;
	const struct scale *scale;
	bool total; /* sort by total samples, not by own ones */
	uint32_t *rows, count, named;
};

static double amount(const struct table *t, const uint64_t *values, enum diff_side side)
{
	return diff_amount(t->diff, values[side], side) * t->scale->factor;
}

/* Sorts what is sure before what is likely before the rest, growth before shrinking, larger changes first; the rest by
 * samples. */
static int by_change(const void *a, const void *b, void *table)
{
	const struct table *t = table;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	const struct diff_function *x = &t->diff->functions[i], *y = &t->diff->functions[j];
	bool x_named = diff_is_reported(x) && !t->total, y_named = diff_is_reported(y) && !t->total;
	const uint64_t *x_values = t->total ? x->total : x->self, *y_values = t->total ? y->total : y->self;
	double x_size = amount(t, x_values, DIFF_AFTER), y_size = amount(t, y_values, DIFF_AFTER);

	if (x_named != y_named)
		return x_named ? -1 : 1;
	if (x_named && diff_is_change(x) != diff_is_change(y))
		return diff_is_change(x) ? -1 : 1;
	if (x_named && (x->change > 0) != (y->change > 0))
		return x->change > 0 ? -1 : 1;
	x_size += (x_named ? -1 : 1) * amount(t, x_values, DIFF_BEFORE);
	y_size += (y_named ? -1 : 1) * amount(t, y_values, DIFF_BEFORE);
	if (fabs(x_size) != fabs(y_size))
		return fabs(x_size) > fabs(y_size) ? -1 : 1;
	return i < j ? -1 : i > j;
}

/* Fills the rows with the functions that have samples, sorted. Returns 0 or -ENOMEM. */
static int sort_rows(struct table *t)
{
	uint32_t frames = profile_frame_count(t->diff->merged);

	t->rows = calloc(frames + 1, sizeof(*t->rows));
	if (!t->rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < frames; i++) {
		const struct diff_function *f = &t->diff->functions[i];
		const uint64_t *values = t->total ? f->total : f->self;

		if (values[DIFF_BEFORE] || values[DIFF_AFTER])
			t->rows[t->count++] = i;
	}
	qsort_r(t->rows, t->count, sizeof(*t->rows), by_change, t);
	for (t->named = 0; t->named < t->count && diff_is_reported(&t->diff->functions[t->rows[t->named]]);)
		t->named++;
	return 0;
}

/* Writes text of one line, shortened in the middle to as many columns, and a line feed. */
static void write_short(const char *text, size_t columns, FILE *out)
{
	/* More of the beginning, which has the function's name. */
	size_t width = text_width(text), head = (columns - 3) * 2 / 3, cut = width - (columns - 3 - head);

	if (width <= columns)
		fprintf(out, "%s\n", text);
	else
		fprintf(out, "%.*s...%s\n", (int)text_fit(text, head), text, text + text_fit(text, cut));
}

/* Writes the function's name and file in as many columns as are left. Returns 0 or -ENOMEM. */
static int write_name(const struct table *t, uint32_t function, int at, FILE *out)
{
	char *text = NULL;
	size_t size;
	FILE *memory = text_stream_open(&text, &size);

	if (!memory)
		return -ENOMEM;
	output_frame(t->diff->merged, function, memory);
	if (fclose(memory)) {
		free(text);
		return -ENOMEM;
	}
	write_short(text, (size_t)(WIDTH - at), out);
	free(text);
	return 0;
}

/* Writes sentences, each from a new line on, wrapped between words. */
static void write_wrapped(const char *text, FILE *out)
{
	size_t at = 0;

	while (*text) {
		size_t bytes = strcspn(text, " \n");
		size_t width = 0;

		/* One column for each first byte of a character, as text_width() counts. */
		for (size_t i = 0; i < bytes; i++)
			width += ((unsigned char)text[i] & 0xc0) != 0x80;
		if (at && at + 1 + width > WIDTH) {
			fputc('\n', out);
			at = 0;
		}
		at += (size_t)fprintf(out, "%s%.*s", at ? " " : "", (int)bytes, text) - bytes + width;
		text += bytes;
		if (*text == '\n') {
			fputc('\n', out);
			at = 0;
		}
		text += *text != 0;
	}
}

static void write_side(const struct diff *d, enum diff_side side, FILE *out)
{
	const struct diff_whole *whole = &d->whole[side];
	struct profile_measure measure = profile_get_measure(d->merged);
	size_t runs = d->runs[side].count;

	fputs(side == DIFF_BEFORE ? "before  " : "after   ", out);
	if (runs > 1)
		fprintf(out, "%zu runs, ", runs);
	fprintf(out, "%" PRIu64 " ", whole->total);
	output_escaped(strcmp(measure.unit, "count") == 0 ? measure.name : measure.unit, out);
	if (whole->period_s > 0)
		fprintf(out, ", %.3g s of CPU time", (double)whole->total * whole->period_s);
	if (whole->duration_s > 0)
		fprintf(out, " in %.1f s", whole->duration_s);
	fputs(":\n", out);
	for (size_t i = 0; i < runs; i++) {
		fputs("          ", out);
		output_escaped(d->runs[side].names[i], out);
		fputc('\n', out);
	}
}

/* The first rows are those that changed, then as many as the options want. */
static uint32_t shown_rows(const struct table *t, const struct output_diff_options *options)
{
	uint32_t most = options->rows;

	if (!options->all && t->named + ROWS_OTHERS < most)
		most = t->named + ROWS_OTHERS;
	return t->count < most ? t->count : most;
}

static void write_more(const struct table *t, const struct output_diff_options *options, FILE *out)
{
	uint32_t shown = shown_rows(t, options);

	if (shown < t->count)
		fprintf(out, "and %u more (%s)\n", t->count - shown, shown < options->rows ? "--all-rows" : "--limit");
}

static int write_row(const struct table *t, uint32_t function, FILE *out)
{
	const struct diff_function *f = &t->diff->functions[function];
	char change[32] = "";
	int at;

	if (f->verdict != DIFF_UNJUDGED)
		output_diff_percent(f->change, true, change, sizeof(change));
	at = fprintf(out, "%-7s %9.*f %9.*f %9s  ", t->diff->state == DIFF_JUDGED ? output_diff_verdict(f) : "",
		     t->scale->digits, amount(t, f->self, DIFF_BEFORE), t->scale->digits,
		     amount(t, f->self, DIFF_AFTER), change);
	return write_name(t, function, at, out);
}

/* Writes the functions by own samples: what changed, then those with the most samples. */
static int write_rows(const struct table *t, const struct output_diff_options *options, FILE *out)
{
	uint32_t shown = shown_rows(t, options);
	int err = 0;

	if (!shown)
		return 0;
	fprintf(out, "\n%-7s %9s %9s %9s\n", "", "before", "after", "change");
	fprintf(out, "%-7s %9s %9s %9s  %s\n", "", t->scale->unit, t->scale->unit, "",
		t->diff->options.by_line ? "line" : "function");
	for (uint32_t i = 0; i < shown && !err; i++)
		err = write_row(t, t->rows[i], out);
	write_more(t, options, out);
	return err;
}

static int write_surety(const struct table *t, uint32_t function, FILE *out)
{
	const struct diff_function *f = &t->diff->functions[function];
	char change[32], low[32], high[32], least[32], interval[72];
	int at;

	output_diff_percent(f->change, true, change, sizeof(change));
	output_diff_percent(f->low, true, low, sizeof(low));
	output_diff_percent(f->high, true, high, sizeof(high));
	output_diff_percent(f->noticeable, false, least, sizeof(least));
	snprintf(interval, sizeof(interval), "%s to %s", low, high);
	at = fprintf(out, "%-7s %9s %20s %9.1f %9s  ", output_diff_verdict(f), change, interval, 100 * (1 - f->chance),
		     least);
	return write_name(t, function, at, out);
}

/* Writes how sure the changes of the judged functions are. */
static int write_sureties(const struct table *t, const struct output_diff_options *options, FILE *out)
{
	uint32_t shown = shown_rows(t, options);
	char interval[32];
	int err = 0;

	snprintf(interval, sizeof(interval), "%g %% interval", 100 * t->diff->options.confidence);
	fprintf(out, "\n%-7s %9s %20s %9s %9s\n", "", "change", interval, "sure", "seen from");
	fprintf(out, "%-7s %9s %20s %9s %9s  %s\n", "", "", "", "in 100", "",
		t->diff->options.by_line ? "line" : "function");
	for (uint32_t i = 0; i < shown && !err; i++) {
		if (t->diff->functions[t->rows[i]].verdict != DIFF_UNJUDGED)
			err = write_surety(t, t->rows[i], out);
	}
	return err;
}

/* Writes how the result was found. */
static int explain(const struct table *t, const struct output_diff_options *options, FILE *out)
{
	const struct diff *d = t->diff;
	char *notes = output_diff_details(d);
	int err = notes ? 0 : -ENOMEM;

	if (err)
		return err;
	if (d->state == DIFF_JUDGED)
		err = write_sureties(t, options, out);
	fputc('\n', out);
	for (int i = 0; i < DIFF_SIDES; i++)
		write_side(d, (enum diff_side)i, out);
	if (d->state == DIFF_JUDGED)
		fprintf(out, "%zu %ss have %d %% of the samples or more, and were judged.\n", d->tested,
			d->options.by_line ? "line" : "function", DIFF_LEAST_PERCENT);
	write_wrapped(notes, out);
	free(notes);
	return err;
}

/* Writes all functions by total samples. */
static int write_totals(const struct diff *d, const struct output_diff_options *options, FILE *out)
{
	struct table t = {.diff = d, .scale = &scales[d->options.basis], .total = true};
	int err = sort_rows(&t);

	fputs("\nOn the stack (own samples and those of what it called; not judged):\n\n", out);
	fprintf(out, "%8s  %8s %8s  %s\n", "before", "after", "change", d->options.by_line ? "line" : "function");
	fprintf(out, "%8s  %8s %8s\n", t.scale->unit, t.scale->unit, t.scale->change_unit);
	for (uint32_t i = 0; i < t.count && i < options->rows && !err; i++) {
		const struct diff_function *f = &d->functions[t.rows[i]];
		double before = amount(&t, f->total, DIFF_BEFORE), after = amount(&t, f->total, DIFF_AFTER);
		int at = fprintf(out, "%8.*f  %8.*f %+8.*f  ", t.scale->digits, before, t.scale->digits, after,
				 t.scale->digits, after - before);

		err = write_name(&t, t.rows[i], at, out);
	}
	if (t.count > options->rows)
		fprintf(out, "and %u more (--limit)\n", t.count - options->rows);
	free(t.rows);
	return err;
}

int output_diff_text(const struct diff *d, const struct output_diff_options *options, FILE *out)
{
	struct table t = {.diff = d, .scale = &scales[d->options.basis]};
	char *headline = output_diff_headline(d);
	int err = headline ? sort_rows(&t) : -ENOMEM;

	if (!err) {
		write_wrapped(headline, out);
		if (d->state != DIFF_EMPTY || options->all)
			err = write_rows(&t, options, out);
	}
	if (!err && options->all)
		err = write_totals(d, options, out);
	if (!err && options->explain)
		err = explain(&t, options, out);
	if (!err && !options->explain && d->state == DIFF_JUDGED)
		fputs("\n--explain: how sure this is, and why\n", out);
	free(t.rows);
	free(headline);
	return err;
}

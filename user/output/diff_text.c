// SPDX-License-Identifier: Apache-2.0
/* A comparison as text: what changed, and what would not have shown. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/text_stream.h"
#include "output/diff.h"
#include "output/output.h"

#define WIDTH 80
/* Rows of functions that did not change, without --all-rows. */
#define ROWS_OTHERS 5

/* The units and digits in which values of a basis are printed. */
struct scale {
	const char *compared, *unit, *change_unit;
	double factor; /* from the values of compare/diff.h to the unit */
	int digits;
};

static const struct scale scales[] = {
	[DIFF_SHARE] = {"share of all samples", " %", " points", 100, 2},
	[DIFF_RATE] = {"CPU time per second of the run", " ms/s", " ms/s", 1000, 2},
	[DIFF_TIME] = {"CPU time of a run", " s", " s", 1, 3},
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

/* Sorts growth before shrinking before the rest, larger changes first; the rest by samples. */
static int by_change(const void *a, const void *b, void *table)
{
	const struct table *t = table;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	const struct diff_function *x = &t->diff->functions[i], *y = &t->diff->functions[j];
	bool x_named = diff_is_change(x) && !t->total, y_named = diff_is_change(y) && !t->total;
	const uint64_t *x_values = t->total ? x->total : x->self, *y_values = t->total ? y->total : y->self;
	double x_size = amount(t, x_values, DIFF_AFTER), y_size = amount(t, y_values, DIFF_AFTER);

	if (x_named != y_named)
		return x_named ? -1 : 1;
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
	for (t->named = 0; t->named < t->count && diff_is_change(&t->diff->functions[t->rows[t->named]]);)
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

static int write_change(const struct table *t, uint32_t function, FILE *out)
{
	const struct diff_function *f = &t->diff->functions[function];
	const struct scale *s = t->scale;
	double before = amount(t, f->self, DIFF_BEFORE), after = amount(t, f->self, DIFF_AFTER);
	char change[32], low[32], high[32];
	int at = fprintf(out, "%-8s", output_diff_verdict(f)), err = write_name(t, function, at, out);

	output_diff_percent(f->change, true, change, sizeof(change));
	output_diff_percent(f->low, true, low, sizeof(low));
	output_diff_percent(f->high, true, high, sizeof(high));
	fprintf(out, "        %.*f%s -> %.*f%s, %+.*f%s", s->digits, before, s->unit, s->digits, after, s->unit,
		s->digits, after - before, s->change_unit);
	if (f->verdict == DIFF_NEW)
		fprintf(out, "; from nothing\n");
	else if (f->verdict == DIFF_GONE)
		fprintf(out, "; to nothing (at least %s)\n", high);
	else
		fprintf(out, "; %s (%s to %s)\n", change, low, high);
	return err;
}

static int write_other(const struct table *t, uint32_t function, FILE *out)
{
	const struct diff_function *f = &t->diff->functions[function];
	char change[32] = "", least[32] = "";
	int at;

	if (f->verdict != DIFF_UNJUDGED) {
		output_diff_percent(f->change, true, change, sizeof(change));
		output_diff_percent(f->noticeable, false, least, sizeof(least));
	}
	at = fprintf(out, "%-7s %8.*f  %8.*f %9s %9s  ", t->diff->state == DIFF_JUDGED ? output_diff_verdict(f) : "",
		     t->scale->digits, amount(t, f->self, DIFF_BEFORE), t->scale->digits,
		     amount(t, f->self, DIFF_AFTER), change, least);
	return write_name(t, function, at, out);
}

/* Writes the functions that did not change, those with the most samples first. */
static int write_others(const struct table *t, const struct output_diff_options *options, FILE *out)
{
	uint32_t count = t->count - t->named, shown = count < options->rows ? count : options->rows;
	const char *what = t->diff->options.by_line ? "line" : "function";
	int err = 0;

	if (!options->all && shown > ROWS_OTHERS)
		shown = ROWS_OTHERS;
	if (!shown)
		return 0;
	fprintf(out, "\n%s%s, by own samples:\n\n", t->diff->state == DIFF_JUDGED ? "No change seen in " : "",
		t->diff->options.by_line ? "lines" : "functions");
	fprintf(out, "%8s%8s  %8s %9s %9s\n", "", "before", "after", "change", "one would");
	fprintf(out, "%8s%8s  %8s %9s %9s  %s\n", "", t->scale->unit + 1, t->scale->unit + 1, "of own", "show from",
		what);
	for (uint32_t i = t->named; i < t->named + shown && !err; i++)
		err = write_other(t, t->rows[i], out);
	if (shown < count)
		fprintf(out, "and %u more (%s)\n", count - shown, options->all ? "--limit" : "--all-rows");
	return err;
}

static int write_named(const struct table *t, const struct output_diff_options *options, FILE *out)
{
	const char *what = t->diff->options.by_line ? "line" : "function";
	uint32_t shown = t->named < options->rows ? t->named : options->rows;
	int err = 0;

	if (t->diff->state != DIFF_JUDGED)
		return 0;
	fprintf(out, "\n%u %s%s changed, of %zu that have %d %% of the samples or more\n", t->named, what,
		t->named == 1 ? "" : "s", t->diff->tested, DIFF_LEAST_PERCENT);
	if (shown)
		fprintf(out,
			"Shown: %s; change: of own samples, against\nthose of what did not change "
			"(%g %% interval, for %zu %ss together).\n\n",
			t->scale->compared, 100 * t->diff->options.confidence, t->diff->tested, what);
	for (uint32_t i = 0; i < shown && !err; i++)
		err = write_change(t, t->rows[i], out);
	if (shown < t->named)
		fprintf(out, "and %u more (--limit)\n", t->named - shown);
	return err;
}

/* Writes all functions by total samples. */
static int write_totals(const struct diff *d, const struct output_diff_options *options, FILE *out)
{
	struct table t = {.diff = d, .scale = &scales[d->options.basis], .total = true};
	int err = sort_rows(&t);

	fputs("\nOn the stack (own samples and those of what it called; not judged):\n\n", out);
	fprintf(out, "%8s  %8s %8s  %s\n", "before", "after", "change", d->options.by_line ? "line" : "function");
	fprintf(out, "%8s  %8s %8s\n", t.scale->unit + 1, t.scale->unit + 1, t.scale->change_unit + 1);
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
	char *notes = output_diff_notes(d);
	int err = notes ? sort_rows(&t) : -ENOMEM;

	if (!err) {
		for (int i = 0; i < DIFF_SIDES; i++)
			write_side(d, (enum diff_side)i, out);
		err = write_named(&t, options, out);
	}
	if (!err) {
		fputc('\n', out);
		write_wrapped(notes, out);
		if (d->state != DIFF_EMPTY || options->all)
			err = write_others(&t, options, out);
	}
	if (!err && options->all)
		err = write_totals(d, options, out);
	free(t.rows);
	free(notes);
	return err;
}

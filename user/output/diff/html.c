// SPDX-License-Identifier: Apache-2.0
/*
 * A comparison as an HTML report. To the data that output/formats/html.c describes it adds "diff", an object:
 *
 *	before, after              names of the sides, e.g. their files
 *	before_total, after_total  sums of the samples' values; samples without a frame are left out
 *	unit                       of the functions' values: "share", 0 to 1; "s"; "ms/s"
 *	before_unit, after_unit    what a value of 1 of a sample is in that unit
 *	confidence                 of the intervals, e.g. 0.95
 *	notes                      sentences, one per line
 *	functions                  {name[], file[], before[], after[], self_before[], self_after[], change[],
 *	                           low[], high[], noticeable[], words[], verdict[]}: an entry for each frame:
 *	                           name, file: texts themselves;
 *	                           before, after: value of the samples with the function in their stack;
 *	                           self_before, self_after: value of those in which it is the innermost frame;
 *	                           change, low, high: relative change of its own samples, and the interval;
 *	                           noticeable: the smallest relative change that would have been named;
 *	                           words: the verdict in one word;
 *	                           verdict: 1: its own samples grew, -1: they shrank, 0: no change is named
 */
#include "output/diff/diff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/formats/html.h"

/* The units in which values of a basis are shown, and their number in one of compare/diff.h. */
static const struct {
	const char *unit;
	double factor;
} units[] = {
	[DIFF_SHARE] = {"share", 1},
	[DIFF_RATE] = {"ms/s", 1000},
	[DIFF_TIME] = {"s", 1},
};

static int verdict(const struct diff_function *f)
{
	if (!diff_is_change(f))
		return 0;
	return f->change > 0 ? 1 : -1;
}

/*
 * Returns the side's name for the report, which the caller frees: the file without its folder, so that the report does
 * not disclose it, and of several runs the first and their number. NULL: no memory.
 */
static char *name_of(const struct diff *d, enum diff_side side)
{
	const char *first = output_diff_title(d, side, 0);
	char *name = NULL;

	if (d->runs[side].count == 1)
		return strdup(first);
	if (asprintf(&name, "%zu runs (%s, ...)", d->runs[side].count, first) < 0)
		return NULL;
	return name;
}

static double amount(const struct diff *d, const uint64_t *values, enum diff_side side)
{
	return diff_amount(d, values[side], side) * units[d->options.basis].factor;
}

/* Writes a column of the functions; the expression gives the value in row i. */
#define FUNCTIONS(j, d, type, key, expression)                                                                         \
	do {                                                                                                           \
		json_begin_array(j, key);                                                                              \
		for (uint32_t i = 0; i < profile_frame_count((d)->merged); i++)                                        \
			json_##type(j, NULL, expression);                                                              \
		json_end_array(j);                                                                                     \
	} while (0)

static void write_functions(const struct diff *d, struct json *j)
{
	const struct diff_function *f = d->functions;
	const struct profile *p = d->merged;

	json_begin_object(j, "functions");
	FUNCTIONS(j, d, string, "name", profile_string(p, profile_frame_at(p, i)->name));
	FUNCTIONS(j, d, string, "file", profile_string(p, profile_frame_at(p, i)->file));
	FUNCTIONS(j, d, double, "before", amount(d, f[i].total, DIFF_BEFORE));
	FUNCTIONS(j, d, double, "after", amount(d, f[i].total, DIFF_AFTER));
	FUNCTIONS(j, d, double, "self_before", amount(d, f[i].self, DIFF_BEFORE));
	FUNCTIONS(j, d, double, "self_after", amount(d, f[i].self, DIFF_AFTER));
	FUNCTIONS(j, d, double, "change", f[i].change);
	FUNCTIONS(j, d, double, "low", f[i].low);
	FUNCTIONS(j, d, double, "high", f[i].high);
	FUNCTIONS(j, d, double, "noticeable", f[i].noticeable);
	FUNCTIONS(j, d, string, "words", output_diff_verdict(&f[i]));
	FUNCTIONS(j, d, int, "verdict", verdict(&f[i]));
	json_end_object(j);
}

/* What is written of a comparison: itself, and texts made of it. */
struct written {
	const struct diff *d;
	char *names[DIFF_SIDES], *notes;
};

static uint64_t total_before(const struct diff *d)
{
	const struct profile_sample *samples;
	uint64_t total = 0;
	size_t count;

	samples = profile_samples(d->merged, &count);
	for (size_t i = 0; i < count; i++) {
		if (samples[i].stack != PROFILE_ROOT)
			total += d->before[i];
	}
	return total;
}

static void write_diff(struct json *j, const void *arg)
{
	const struct written *w = arg;
	const struct diff *d = w->d;
	double factor = units[d->options.basis].factor;

	json_begin_object(j, "diff");
	json_string(j, "before", w->names[DIFF_BEFORE]);
	json_string(j, "after", w->names[DIFF_AFTER]);
	json_uint(j, "before_total", total_before(d));
	json_uint(j, "after_total", profile_total(d->merged));
	json_string(j, "unit", units[d->options.basis].unit);
	json_double(j, "before_unit", d->whole[DIFF_BEFORE].units_per_sample * factor);
	json_double(j, "after_unit", d->whole[DIFF_AFTER].units_per_sample * factor);
	json_double(j, "confidence", d->options.confidence);
	json_string(j, "notes", w->notes);
	write_functions(d, j);
	json_end_object(j);
}

int output_diff_html(const struct diff *d, const struct output_diff_options *options, FILE *out)
{
	const struct written w = {
		.d = d,
		.names = {[DIFF_BEFORE] = name_of(d, DIFF_BEFORE), [DIFF_AFTER] = name_of(d, DIFF_AFTER)},
		.notes = output_diff_notes(d),
	};
	const struct html_sides sides = {.before = d->before, .write = write_diff, .arg = &w};
	int err = -ENOMEM;

	(void)options;
	if (w.names[DIFF_BEFORE] && w.names[DIFF_AFTER] && w.notes)
		err = html_report(d->merged, &sides, out);
	for (int i = 0; i < DIFF_SIDES; i++)
		free(w.names[i]);
	free(w.notes);
	return err;
}

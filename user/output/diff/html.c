// SPDX-License-Identifier: Apache-2.0
/* A comparison as an HTML report: converts struct diff to what html.c writes. */
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

static enum html_verdict verdict(const struct diff_function *f)
{
	if (!diff_is_change(f))
		return HTML_NOISE;
	return f->change > 0 ? HTML_GREW : HTML_SHRANK;
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

int output_diff_html(const struct diff *d, const struct output_diff_options *options, FILE *out)
{
	uint32_t count = profile_frame_count(d->merged);
	struct html_diff_function *functions = calloc(count + 1, sizeof(*functions));
	char *names[DIFF_SIDES] = {name_of(d, DIFF_BEFORE), name_of(d, DIFF_AFTER)}, *notes = output_diff_notes(d);
	int err = functions && names[0] && names[1] && notes ? 0 : -ENOMEM;

	(void)options;
	for (uint32_t i = 0; i < count && !err; i++) {
		const struct profile_frame *frame = profile_frame_at(d->merged, i);
		const struct diff_function *f = &d->functions[i];

		functions[i] = (struct html_diff_function){
			.name = profile_string(d->merged, frame->name),
			.file = profile_string(d->merged, frame->file),
			.before = amount(d, f->total, DIFF_BEFORE),
			.after = amount(d, f->total, DIFF_AFTER),
			.self_before = amount(d, f->self, DIFF_BEFORE),
			.self_after = amount(d, f->self, DIFF_AFTER),
			.change = f->change,
			.low = f->low,
			.high = f->high,
			.noticeable = f->noticeable,
			.words = output_diff_verdict(f),
			.verdict = verdict(f),
		};
	}
	if (!err) {
		const struct html_diff diff = {
			.before_name = names[DIFF_BEFORE],
			.after_name = names[DIFF_AFTER],
			.before = d->before,
			.unit = units[d->options.basis].unit,
			.before_unit = d->whole[DIFF_BEFORE].units_per_sample * units[d->options.basis].factor,
			.after_unit = d->whole[DIFF_AFTER].units_per_sample * units[d->options.basis].factor,
			.confidence = d->options.confidence,
			.notes = notes,
			.functions = functions,
			.nr_functions = count,
		};

		err = html_report(d->merged, &diff, out);
	}
	for (int i = 0; i < DIFF_SIDES; i++)
		free(names[i]);
	free(notes);
	free(functions);
	return err;
}

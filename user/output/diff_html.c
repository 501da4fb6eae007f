// SPDX-License-Identifier: Apache-2.0
/* A comparison of two profiles as an HTML report: converts struct diff to what html.c writes. */
#include "output/diff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/html.h"

static enum html_verdict verdict(const struct diff_change *change)
{
	switch (change->verdict) {
	case DIFF_GREW:
	case DIFF_NEW:
		return HTML_GREW;
	case DIFF_SHRANK:
	case DIFF_GONE:
		return HTML_SHRANK;
	default:
		return HTML_NOISE;
	}
}

static double share(const struct diff *d, const struct diff_change *change, enum diff_side side)
{
	return (double)change->value[side] * d->whole[side].units_per_sample;
}

/*
 * Returns the name of a profile for the report. Its folder is left out, so that the report does not disclose it, unless
 * both files have the same name.
 */
static const char *title(const struct diff *d, enum diff_side side)
{
	const char *titles[DIFF_SIDES];

	for (int i = 0; i < DIFF_SIDES; i++) {
		const char *slash = strrchr(d->options.names[i], '/');

		titles[i] = slash ? slash + 1 : d->options.names[i];
	}
	return strcmp(titles[DIFF_BEFORE], titles[DIFF_AFTER]) == 0 ? d->options.names[side] : titles[side];
}

int output_diff_html(const struct diff *d, const struct output_diff_options *options, FILE *out)
{
	uint32_t count = profile_frame_count(d->merged);
	struct html_diff_function *functions = calloc(count + 1, sizeof(*functions));
	const struct html_diff diff = {
		.before_name = title(d, DIFF_BEFORE),
		.after_name = title(d, DIFF_AFTER),
		.before = d->before,
		.confidence = d->options.confidence,
		.functions = functions,
		.nr_functions = count,
	};
	int err;

	(void)options;
	if (!functions)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		const struct profile_frame *frame = profile_frame_at(d->merged, i);
		const struct diff_entry *f = &d->functions[i];

		functions[i] = (struct html_diff_function){
			.name = profile_string(d->merged, frame->name),
			.file = profile_string(d->merged, frame->file),
			.before = share(d, &f->total, DIFF_BEFORE),
			.after = share(d, &f->total, DIFF_AFTER),
			.self_before = share(d, &f->self, DIFF_BEFORE),
			.self_after = share(d, &f->self, DIFF_AFTER),
			.low = (double)f->total.low,
			.high = (double)f->total.high,
			.verdict = verdict(&f->total),
		};
	}
	err = html_report(d->merged, &diff, out);
	free(functions);
	return err;
}

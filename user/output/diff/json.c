// SPDX-License-Identifier: Apache-2.0
/* A comparison as one JSON document: the functions by own samples, and the sentences that the text has. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "output/diff/diff.h"

static void write_side(const struct diff *d, enum diff_side side, struct json *j)
{
	const struct diff_whole *whole = &d->whole[side];

	json_begin_object(j, side == DIFF_BEFORE ? "before" : "after");
	json_begin_array(j, "runs");
	for (size_t i = 0; i < d->runs[side].count; i++)
		json_string(j, NULL, output_diff_title(d, side, i));
	json_end_array(j);
	json_uint(j, "samples", whole->total);
	json_double(j, "sample_s", whole->period_s);
	json_double(j, "duration_s", whole->duration_s);
	json_double(j, "unchanged_samples", whole->rest);
	if (d->loads_known)
		json_double(j, "load", whole->load.mean);
	json_end_object(j);
}

static void write_values(const struct diff *d, const char *before, const char *after, const uint64_t *values,
			 struct json *j)
{
	json_double(j, before, diff_amount(d, values[DIFF_BEFORE], DIFF_BEFORE));
	json_double(j, after, diff_amount(d, values[DIFF_AFTER], DIFF_AFTER));
}

static void write_function(const struct diff *d, uint32_t i, struct json *j)
{
	const struct profile_frame *frame = profile_frame_at(d->merged, i);
	const struct diff_function *f = &d->functions[i];

	json_begin_object(j, NULL);
	json_string(j, "name", profile_string(d->merged, frame->name));
	json_string(j, "file", profile_string(d->merged, frame->file));
	if (d->options.by_line)
		json_int(j, "line", frame->line);
	json_string(j, "verdict", output_diff_verdict(f));
	json_uint(j, "samples_before", f->self[DIFF_BEFORE]);
	json_uint(j, "samples_after", f->self[DIFF_AFTER]);
	write_values(d, "before", "after", f->self, j);
	write_values(d, "total_before", "total_after", f->total, j);
	if (f->verdict != DIFF_UNJUDGED) {
		json_double(j, "bursts", f->bursts);
		json_double(j, "change", f->change);
		json_double(j, "low", f->low);
		json_double(j, "high", f->high);
		json_double(j, "chance", f->chance);
		json_double(j, "noticeable", f->noticeable);
	}
	json_end_object(j);
}

static void write_time(const struct diff *d, struct json *j)
{
	const struct diff_time *t = &d->time;

	json_begin_object(j, "time");
	json_double(j, "before", d->whole[DIFF_BEFORE].time_s);
	json_double(j, "after", d->whole[DIFF_AFTER].time_s);
	json_double(j, "change", t->change);
	json_string(j, "verdict", !t->judged ? "few" : !t->changed ? "noise" : t->change > 0 ? "grew" : "shrank");
	if (t->judged) {
		json_double(j, "low", t->low);
		json_double(j, "high", t->high);
		json_double(j, "spread", t->spread);
		json_double(j, "noticeable", t->noticeable);
	}
	json_end_object(j);
}

/* Cuts the notes at their ends of lines. */
static void write_notes(char *notes, struct json *j)
{
	char *place = NULL;

	json_begin_array(j, "notes");
	for (char *note = strtok_r(notes, "\n", &place); note; note = strtok_r(NULL, "\n", &place))
		json_string(j, NULL, note);
	json_end_array(j);
}

int output_diff_json(const struct diff *d, const struct output_diff_options *options, FILE *out)
{
	static const char *const bases[] = {
		[DIFF_SHARE] = "share",
		[DIFF_RATE] = "rate",
		[DIFF_TIME] = "time",
	};
	struct json j = {.out = out};
	char *notes = output_diff_notes(d);

	(void)options;
	if (!notes)
		return -ENOMEM;
	json_begin_object(&j, NULL);
	json_string(&j, "format", "pybpf-diff");
	json_uint(&j, "version", 1);
	json_string(&j, "compare", bases[d->options.basis]);
	json_double(&j, "confidence", d->options.confidence);
	json_bool(&j, "judged", d->state == DIFF_JUDGED);
	json_double(&j, "spread", d->spread);
	json_bool(&j, "spread_assumed", d->assumed || diff_is_single(d));
	json_double(&j, "pace", d->pace);
	if (d->loads_known)
		json_bool(&j, "load_uneven", d->uneven);
	write_side(d, DIFF_BEFORE, &j);
	write_side(d, DIFF_AFTER, &j);
	if (d->options.basis != DIFF_SHARE && d->state != DIFF_EMPTY)
		write_time(d, &j);
	write_notes(notes, &j);
	json_begin_array(&j, "functions");
	for (uint32_t i = 0; i < profile_frame_count(d->merged); i++)
		write_function(d, i, &j);
	json_end_array(&j);
	json_end_object(&j);
	fputc('\n', out);
	free(notes);
	return 0;
}

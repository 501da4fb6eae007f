// SPDX-License-Identifier: Apache-2.0
/*
 * The format of speedscope, https://www.speedscope.app/file-format-schema.json: one sampled profile for each thread.
 * Samples are in the order of their times, and consecutive ones with the same stack are merged; samples without times
 * are written once for each stack.
 */
#include "output/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "output/path.h"
#include "output/tracks.h"

/* The unit of the weights in the file, and the factor from the profile's values to it. */
struct unit {
	const char *name;
	uint64_t factor;
};

static struct unit unit_of(const struct profile *p)
{
	static const char *const known[] = {"bytes", "microseconds", "milliseconds", "nanoseconds", "seconds"};
	struct profile_measure measure = profile_get_measure(p);

	if (measure.period_ns)
		return (struct unit){"nanoseconds", measure.period_ns};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strcmp(measure.unit, known[i]) == 0)
			return (struct unit){known[i], 1};
	}
	return (struct unit){"none", 1};
}

static void write_frames(const struct profile *p, struct json *j)
{
	uint32_t count = profile_frame_count(p);

	json_begin_object(j, "shared");
	json_begin_array(j, "frames");
	for (uint32_t i = 0; i < count; i++) {
		const struct profile_frame *frame = profile_frame_at(p, i);

		json_begin_object(j, NULL);
		json_string(j, "name", profile_string(p, frame->name));
		if (frame->file)
			json_string(j, "file", profile_string(p, frame->file));
		if (frame->line != PROFILE_NO_LINE)
			json_int(j, "line", frame->line);
		json_end_object(j);
	}
	json_end_array(j);
	json_end_object(j);
}

/* Returns how many consecutive ticks from i on have the same stack, and sets *value to the sum of their values. */
static size_t run_of(const struct output_track *track, size_t i, uint64_t *value)
{
	size_t n = 0;

	*value = 0;
	while (i + n < track->count && track->ticks[i + n].stack == track->ticks[i].stack)
		*value += track->ticks[i + n++].value;
	return n;
}

static void begin_profile(struct json *j, const char *name, const char *unit, uint64_t end)
{
	json_begin_object(j, NULL);
	json_string(j, "type", "sampled");
	json_string(j, "name", name);
	json_string(j, "unit", unit);
	json_uint(j, "startValue", 0);
	json_uint(j, "endValue", end);
}

static int write_track(const struct profile *p, const struct output_tracks *tracks, const struct output_track *track,
		       struct json *j)
{
	char *label = output_track_label(p, tracks, track);
	struct output_path path = {0};
	struct unit unit = unit_of(p);
	uint64_t value;
	int err = label ? 0 : -ENOMEM;

	if (err)
		return err;
	begin_profile(j, label, unit.name, track->total * unit.factor);
	free(label);
	json_begin_array(j, "samples");
	for (size_t i = 0; i < track->count && !err; i += run_of(track, i, &value)) {
		err = output_path_read(p, track->ticks[i].stack, &path);
		json_begin_array(j, NULL);
		for (size_t f = 0; f < path.count && !err; f++)
			json_uint(j, NULL, path.frames[f]);
		json_end_array(j);
	}
	json_end_array(j);
	json_begin_array(j, "weights");
	for (size_t i = 0; i < track->count;) {
		i += run_of(track, i, &value);
		json_uint(j, NULL, value * unit.factor);
	}
	json_end_array(j);
	json_end_object(j);
	output_path_free(&path);
	return err;
}

int output_speedscope(const struct profile *p, const struct output_options *options, FILE *out)
{
	struct json j = {.out = out};
	struct output_tracks tracks;
	int err = output_tracks_make(p, &tracks);

	(void)options;
	if (err)
		return err;
	json_begin_object(&j, NULL);
	json_string(&j, "$schema", "https://www.speedscope.app/file-format-schema.json");
	json_string(&j, "exporter", "pybpf " PYBPF_VERSION);
	json_uint(&j, "activeProfileIndex", 0);
	write_frames(p, &j);
	json_begin_array(&j, "profiles");
	for (size_t i = 0; i < tracks.count && !err; i++)
		err = write_track(p, &tracks, &tracks.tracks[i], &j);
	/* Speedscope refuses a file without profiles. */
	if (!tracks.count) {
		begin_profile(&j, "no samples with Python frames", unit_of(p).name, 0);
		json_begin_array(&j, "samples");
		json_end_array(&j);
		json_begin_array(&j, "weights");
		json_end_array(&j);
		json_end_object(&j);
	}
	json_end_array(&j);
	json_end_object(&j);
	json_line(&j);
	output_tracks_free(&tracks);
	return err;
}

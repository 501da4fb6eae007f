// SPDX-License-Identifier: Apache-2.0
/*
 * The format of speedscope, https://www.speedscope.app/file-format-schema.json: one sampled profile for each thread.
 *
 * Where the times of samples and their CPU time are known, a profile is the run from its beginning to its end, so that
 * the threads can be compared: a weight is the time until the sample's end (output_tick_end), and a sample without
 * frames is a gap, in which the thread was not on a CPU. Samples without times are written once for each stack, with
 * their value as weight.
 */
#include "output/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "output/formats/path.h"
#include "output/formats/tracks.h"

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
		if (frame->end_line)
			json_int(j, "col", frame->column + 1);
		json_end_object(j);
	}
	json_end_array(j);
	json_end_object(j);
}

/* A sample of the file: a stack and how long it lasts, or its value. */
struct block {
	uint32_t stack; /* PROFILE_ROOT: a gap */
	uint64_t weight;
};

/* A track, and what of it was taken as blocks. */
struct blocks {
	const struct output_tracks *tracks;
	const struct output_track *track;
	bool timed;
	uint64_t factor;     /* of values, unless timed */
	uint64_t end_ns;     /* of the run */
	size_t next;         /* index of the next tick */
	uint64_t reached_ns; /* end of the last block, if timed */
};

/* Takes ticks of one stack into a block as long as each begins where the one before ends. */
static void take_timed(struct blocks *b, struct block *block)
{
	const struct output_tick *ticks = b->track->ticks;
	uint64_t begin_ns = b->reached_ns;

	if (b->next == b->track->count || ticks[b->next].time_ns > begin_ns) {
		block->stack = PROFILE_ROOT;
		b->reached_ns = b->next == b->track->count ? b->end_ns : ticks[b->next].time_ns;
	} else {
		block->stack = ticks[b->next].stack;
		do
			b->reached_ns = output_tick_end(b->tracks, b->track, b->next++);
		while (b->next < b->track->count && ticks[b->next].stack == block->stack &&
		       ticks[b->next].time_ns <= b->reached_ns);
	}
	block->weight = b->reached_ns - begin_ns;
}

/* Takes the next block. Returns false at the end. */
static bool next_block(struct blocks *b, struct block *block)
{
	const struct output_tick *ticks = b->track->ticks;

	if (b->timed) {
		if (b->next == b->track->count && b->reached_ns >= b->end_ns)
			return false;
		take_timed(b, block);
		return true;
	}
	if (b->next == b->track->count)
		return false;
	*block = (struct block){.stack = ticks[b->next].stack};
	while (b->next < b->track->count && ticks[b->next].stack == block->stack)
		block->weight += ticks[b->next++].value * b->factor;
	return true;
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
		       uint64_t end_ns, struct json *j)
{
	struct unit unit = unit_of(p);
	const struct blocks first = {
		.tracks = tracks,
		.track = track,
		.timed = track->timed && profile_get_measure(p).period_ns,
		.factor = unit.factor,
		.end_ns = end_ns,
	};
	struct blocks blocks = first;
	struct block block;
	struct output_path path = {0};
	char *label = output_track_label(p, tracks, track);
	int err = label ? 0 : -ENOMEM;

	if (err)
		return err;
	begin_profile(j, label, unit.name, blocks.timed ? blocks.end_ns : track->total * unit.factor);
	free(label);
	json_begin_array(j, "samples");
	while (!err && next_block(&blocks, &block)) {
		err = output_path_read(p, block.stack, &path);
		json_begin_array(j, NULL);
		for (size_t f = 0; f < path.count && !err; f++)
			json_uint(j, NULL, path.frames[f]);
		json_end_array(j);
	}
	json_end_array(j);
	json_begin_array(j, "weights");
	for (blocks = first; next_block(&blocks, &block);)
		json_uint(j, NULL, block.weight);
	json_end_array(j);
	json_end_object(j);
	output_path_free(&path);
	return err;
}

int output_speedscope(const struct profile *p, const struct output_options *options, FILE *out)
{
	struct json j = {.out = out};
	struct output_tracks tracks;
	uint64_t end_ns;
	int err = output_tracks_make(p, &tracks);

	(void)options;
	if (err)
		return err;
	end_ns = output_tracks_end(p, &tracks);
	json_begin_object(&j, NULL);
	json_string(&j, "$schema", "https://www.speedscope.app/file-format-schema.json");
	json_string(&j, "exporter", "pybpf " PYBPF_VERSION);
	json_uint(&j, "activeProfileIndex", 0);
	write_frames(p, &j);
	json_begin_array(&j, "profiles");
	for (size_t i = 0; i < tracks.count && !err; i++)
		err = write_track(p, &tracks, &tracks.tracks[i], end_ns, &j);
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

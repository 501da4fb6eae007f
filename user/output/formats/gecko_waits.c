// SPDX-License-Identifier: Apache-2.0
/* Waits of threads in the format of Firefox Profiler; see src/types/markers.ts there for what its fields mean. */
#include "output/formats/gecko_waits.h"

#include "base/json.h"

/* The marker's type, and the name of its schema. */
#define WAIT "wait"
/* MarkerPhase of src/types/gecko-profile.ts: a marker with a start and an end. */
#define PHASE_INTERVAL 1

void gecko_write_schema(struct json *j, const struct output_tracks *tracks)
{
	json_begin_array(j, "markerSchema");
	if (tracks->has_waits) {
		json_begin_object(j, NULL);
		json_string(j, "name", WAIT);
		json_string(j, "description", "A thread that waited, and for what");
		json_string(j, "tooltipLabel", "{marker.name}");
		json_string(j, "tableLabel", "{marker.data.cause}");
		json_string(j, "chartLabel", "{marker.data.cause}");
		json_begin_array(j, "display");
		json_string(j, NULL, "marker-chart");
		json_string(j, NULL, "marker-table");
		json_string(j, NULL, "timeline-overview");
		json_end_array(j);
		json_begin_array(j, "fields");
		json_begin_object(j, NULL);
		json_string(j, "key", "cause");
		json_string(j, "label", "Cause");
		json_string(j, "format", "unique-string");
		json_end_object(j);
		json_end_array(j);
		json_end_object(j);
	}
	json_end_array(j);
}

/* Returns the index of the first tick from i on that is a wait, or the number of ticks. */
static size_t find_wait(const struct output_track *track, size_t i)
{
	while (i < track->count && !(track->timed && track->ticks[i].length_ns))
		i++;
	return i;
}

void gecko_write_waits(struct json *j, const struct profile *p, const struct output_track *track, int category)
{
	size_t count = 0;

	json_begin_object(j, "markers");
	json_begin_array(j, "data");
	for (size_t i = find_wait(track, 0); i < track->count; i = find_wait(track, i + 1)) {
		json_begin_object(j, NULL);
		json_string(j, "type", WAIT);
		json_uint(j, "cause", profile_frame_at(p, profile_stack_at(p, track->ticks[i].stack)->frame)->name);
		json_end_object(j);
		count++;
	}
	json_end_array(j);
	json_begin_array(j, "name");
	for (size_t i = find_wait(track, 0); i < track->count; i = find_wait(track, i + 1))
		json_uint(j, NULL, profile_state_of(p, track->ticks[i].stack));
	json_end_array(j);
	json_begin_array(j, "startTime");
	for (size_t i = find_wait(track, 0); i < track->count; i = find_wait(track, i + 1))
		json_decimal(j, NULL, track->ticks[i].time_ns, 6);
	json_end_array(j);
	json_begin_array(j, "endTime");
	for (size_t i = find_wait(track, 0); i < track->count; i = find_wait(track, i + 1))
		json_decimal(j, NULL, track->ticks[i].time_ns + track->ticks[i].length_ns, 6);
	json_end_array(j);
	json_begin_array(j, "phase");
	for (size_t i = 0; i < count; i++)
		json_int(j, NULL, PHASE_INTERVAL);
	json_end_array(j);
	json_begin_array(j, "category");
	for (size_t i = 0; i < count; i++)
		json_int(j, NULL, category);
	json_end_array(j);
	json_uint(j, "length", count);
	json_end_object(j);
}

// SPDX-License-Identifier: Apache-2.0
/* Waits of threads in the format of Firefox Profiler: a marker each. */
#ifndef OUTPUT_GECKO_WAITS_H
#define OUTPUT_GECKO_WAITS_H

#include "output/formats/tracks.h"

struct json;

/* Writes the member markerSchema: what the markers of gecko_write_waits() are. */
void gecko_write_schema(struct json *j, const struct output_tracks *tracks);
/*
 * Writes the member markers of a thread: for each wait of the track whose time is known its state as name, from start
 * to end, and what was waited for. Strings are the profile's, by index. category: that of waits.
 */
void gecko_write_waits(struct json *j, const struct profile *p, const struct output_track *track, int category);

#endif

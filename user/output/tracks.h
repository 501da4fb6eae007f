// SPDX-License-Identifier: Apache-2.0
/*
 * What formats with a timeline have in common: the samples of a profile by thread, in the order of their times. Where
 * threads are not told apart, a track is a process.
 */
#ifndef OUTPUT_TRACKS_H
#define OUTPUT_TRACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"

/* Some value of a stack; at that time, in a track that is timed. */
struct output_tick {
	uint64_t time_ns; /* since the run began */
	uint64_t value;
	uint32_t stack;
	uint32_t track;
};

/* What a thread did at known times; or, in a track beside it that is not timed, what is known of it without. */
struct output_track {
	uint32_t process;
	uint32_t thread; /* PROFILE_NONE: all of the process */
	bool timed;
	/*
	 * 0, or what tells a process from others of the same PID, which was given anew, or has begun another program,
	 * or is 0 because the process stands for several.
	 */
	uint32_t again;
	uint64_t total;
	const struct output_tick *ticks; /* in the order of their times, if timed */
	size_t count;
};

struct output_tracks {
	struct output_track *tracks; /* of one process in a row; largest first, in each process as well */
	size_t count;
	bool timed;                /* some track is */
	uint64_t period_ns;        /* that one sample stands for; 0: unknown */
	struct output_tick *ticks; /* of all tracks, one after the other */
};

/* Returns 0 or -ENOMEM. */
int output_tracks_make(const struct profile *p, struct output_tracks *tracks);
/* May be called on zeroed tracks. */
void output_tracks_free(struct output_tracks *tracks);

/*
 * "thread (TID)" or, without threads, "process (PID)"; with several processes both. A track that lacks times beside
 * others that have them says so. Caller frees; NULL: no memory.
 */
char *output_track_label(const struct profile *p, const struct output_tracks *tracks, const struct output_track *track);

/*
 * When the thread can last be said to run what it ran at tick i of a track that is timed: one period for each sample
 * later, or at the next tick, whichever is first. Ticks that lie up to half a period farther apart are taken for
 * neighbours, because a timer is not exact: the end is then the next tick.
 */
uint64_t output_tick_end(const struct output_tracks *tracks, const struct output_track *track, size_t i);

#endif

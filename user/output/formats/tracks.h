// SPDX-License-Identifier: Apache-2.0
/*
 * Tracks, for formats with a timeline: the samples of a profile by thread, in the order of their times. If the profile
 * does not distinguish threads, a track is a process.
 */
#ifndef OUTPUT_TRACKS_H
#define OUTPUT_TRACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"

/* A part of a stack's value, and the time when it was sampled, if the track is timed. */
struct output_tick {
	uint64_t time_ns; /* since the run began */
	uint64_t value;
	uint64_t length_ns; /* of a wait; 0: of a sample */
	uint32_t stack;
	uint32_t track;
};

/* The samples of a thread that have times; or, in a separate track that is not timed, those that have none. */
struct output_track {
	uint32_t process;
	uint32_t thread; /* PROFILE_NONE: all threads of the process */
	bool timed;
	/*
	 * 0, or a number that distinguishes the process from others with the same PID: the PID was reused, or the
	 * process executed another program, or the PID is 0 because the entry stands for several processes.
	 */
	uint32_t again;
	uint64_t total;
	const struct output_tick *ticks; /* in the order of their times, if timed */
	size_t count;
};

struct output_tracks {
	struct output_track *tracks; /* grouped by process; largest process first, and largest track in each */
	size_t count;
	bool timed;                /* at least one track is timed */
	uint64_t period_ns;        /* CPU time per sample; 0: unknown */
	bool has_waits;            /* values are microseconds, and a timed wait is as long as its value */
	struct output_tick *ticks; /* of all tracks, track by track */
};

/* Makes the tracks of the profile. Returns 0 or -ENOMEM. */
int output_tracks_make(const struct profile *p, struct output_tracks *tracks);
/* May be called on zeroed tracks. */
void output_tracks_free(struct output_tracks *tracks);

/*
 * Returns "thread (TID)" or, without threads, "process (PID)"; with several processes both. The label of an untimed
 * track beside timed ones says that it has no times. Caller frees; NULL: no memory.
 */
char *output_track_label(const struct profile *p, const struct output_tracks *tracks, const struct output_track *track);

/*
 * Returns the time until which the stack of tick i of a timed track is assumed to last, in ns since the run began: one
 * period per sample after the tick, or the next tick, whichever is first. If the next tick is up to half a period later
 * than that, the end is the next tick, because a timer is not exact. A wait lasts for its length.
 */
uint64_t output_tick_end(const struct output_tracks *tracks, const struct output_track *track, size_t i);

/*
 * Returns the timed track of the thread that had that TID on the host at time_ns, between its first stack and its last;
 * NULL: there is none.
 */
const struct output_track *output_track_at(const struct profile *p, const struct output_tracks *tracks, int32_t tid,
					   uint64_t time_ns);

/*
 * Returns the time until which the run lasted, in ns since it began: its duration, or the end of the last sample if
 * that is later, for the CPUs' timers are stopped one after the other, after the end that the profile tells.
 */
uint64_t output_tracks_end(const struct profile *p, const struct output_tracks *tracks);

#endif

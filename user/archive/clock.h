// SPDX-License-Identifier: Apache-2.0
/*
 * The time by which the age of epochs is computed. A clock that is set forward by mistake must not make them too old:
 * their files would be removed.
 */
#ifndef ARCHIVE_CLOCK_H
#define ARCHIVE_CLOCK_H

#include <stdint.h>

/* A clock that was set forward is trusted after this time. */
#define ARCHIVE_DOUBT_MS 3600000u

struct archive_clock {
	int64_t offset_ms;   /* from CLOCK_BOOTTIME to the time that is trusted */
	uint64_t doubted_ms; /* since when, by CLOCK_BOOTTIME, the clock shows a later one; 0: it does not */
};

/*
 * Begins with the end of the newest epoch, or 0 in a folder without epochs: if the clock is far ahead of it at the
 * start, no epoch is removed as too old either. Times: ms since 1970, and of CLOCK_BOOTTIME.
 */
void archive_clock_begin(struct archive_clock *clock, uint64_t newest_end_ms, uint64_t real_ms, uint64_t boot_ms);
/* Returns the time that is trusted: the clock's, unless it was set forward within the last ARCHIVE_DOUBT_MS. */
uint64_t archive_clock_now_ms(struct archive_clock *clock, uint64_t real_ms, uint64_t boot_ms);

#endif

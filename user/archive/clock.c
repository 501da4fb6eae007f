// SPDX-License-Identifier: Apache-2.0
/* Doubts a clock that was set forward, before what seems too old by it is removed. */
#include "archive/clock.h"

#include <stdbool.h>

/* A clock that is corrected step by step is no more than this before CLOCK_BOOTTIME between two looks. */
#define SLACK_MS 60000

void archive_clock_begin(struct archive_clock *clock, uint64_t newest_end_ms, uint64_t real_ms, uint64_t boot_ms)
{
	const uint64_t begin_ms = newest_end_ms && newest_end_ms < real_ms ? newest_end_ms : real_ms;

	*clock = (struct archive_clock){.offset_ms = (int64_t)(begin_ms - boot_ms), .doubted_ms = boot_ms};
}

uint64_t archive_clock_now_ms(struct archive_clock *clock, uint64_t real_ms, uint64_t boot_ms)
{
	const int64_t offset_ms = (int64_t)(real_ms - boot_ms);
	const bool is_later = offset_ms > clock->offset_ms + SLACK_MS;

	if (is_later && !clock->doubted_ms)
		clock->doubted_ms = boot_ms;
	if (!is_later || boot_ms - clock->doubted_ms >= ARCHIVE_DOUBT_MS) {
		clock->offset_ms = offset_ms;
		clock->doubted_ms = 0;
	}
	return boot_ms + (uint64_t)clock->offset_ms;
}

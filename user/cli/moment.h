// SPDX-License-Identifier: Apache-2.0
/* Moments that options name: a time of day, a date, or how long ago. */
#ifndef CLI_MOMENT_H
#define CLI_MOMENT_H

#include <stdint.h>

/* Bytes of a moment as text. */
#define CLI_MOMENT_MAX 32

/*
 * Reads a moment, into milliseconds since 1970: -5m (before now_ms), 10:00, 10:00:30, 2026-11-27, 2026-11-27 10:00 (or
 * with T, and with seconds), in local time; with Z behind it in UTC. A time without a date is the first one at or after
 * after_ms or, if that is 0, the last one up to now_ms. Returns 0 or -EINVAL.
 */
int cli_moment_read(const char *text, uint64_t now_ms, uint64_t after_ms, uint64_t *ms);
/* Writes a moment as local time, with its date: 2026-11-27 10:00:03. Returns out. */
const char *cli_moment_text(uint64_t ms, char out[CLI_MOMENT_MAX]);

#endif

// SPDX-License-Identifier: Apache-2.0
/* Reads and writes moments. */
#include "cli/moment.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"

/* Returns the milliseconds of a broken-down time, or 0 where there is no such time. */
static uint64_t ms_of(struct tm tm, bool utc)
{
	time_t seconds;

	tm.tm_isdst = -1;
	seconds = utc ? timegm(&tm) : mktime(&tm);
	return seconds < 0 ? 0 : (uint64_t)seconds * 1000;
}

/* Fills in the day of a moment. */
static void take_day(struct tm *tm, uint64_t ms, bool utc)
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm day = {0};

	if (utc)
		gmtime_r(&seconds, &day);
	else
		localtime_r(&seconds, &day);
	tm->tm_year = day.tm_year;
	tm->tm_mon = day.tm_mon;
	tm->tm_mday = day.tm_mday;
}

/* A time of day: of the day that the moment near_ms is in, or of the one before or after it. */
static uint64_t choose_day(struct tm tm, bool utc, uint64_t now_ms, uint64_t after_ms)
{
	uint64_t ms;

	take_day(&tm, after_ms ?: now_ms, utc);
	ms = ms_of(tm, utc);
	if (after_ms && ms < after_ms)
		tm.tm_mday++;
	else if (!after_ms && ms > now_ms)
		tm.tm_mday--;
	return ms_of(tm, utc);
}

/* Reads digits and separators by a pattern: 0 stands for a digit. Returns what follows, or NULL. */
static const char *fits(const char *text, const char *pattern)
{
	for (; *pattern; pattern++, text++) {
		if (*pattern == '0' ? *text < '0' || *text > '9' : *text != *pattern)
			return NULL;
	}
	return text;
}

static const char *read_date(const char *text, struct tm *tm)
{
	const char *rest = fits(text, "0000-00-00");

	if (!rest)
		return NULL;
	sscanf(text, "%4d-%2d-%2d", &tm->tm_year, &tm->tm_mon, &tm->tm_mday);
	tm->tm_year -= 1900;
	tm->tm_mon--;
	return tm->tm_mon < 0 || tm->tm_mon > 11 || tm->tm_mday < 1 || tm->tm_mday > 31 ? NULL : rest;
}

static const char *read_time(const char *text, struct tm *tm)
{
	const char *rest = fits(text, "00:00:00") ?: fits(text, "00:00");

	if (!rest)
		return NULL;
	sscanf(text, "%2d:%2d:%2d", &tm->tm_hour, &tm->tm_min, &tm->tm_sec);
	return tm->tm_hour > 24 || tm->tm_min > 59 || tm->tm_sec > 60 ? NULL : rest;
}

int cli_moment_read(const char *text, uint64_t now_ms, uint64_t after_ms, uint64_t *ms)
{
	const char *date, *rest;
	struct tm tm = {0};
	double ago;
	bool utc;

	if (*text == '-') {
		if (cli_duration(text + 1, &ago) || ago * 1000 > (double)now_ms)
			return -EINVAL;
		*ms = now_ms - (uint64_t)(ago * 1000);
		return 0;
	}
	rest = date = read_date(text, &tm);
	if (!date)
		rest = read_time(text, &tm);
	else if (*date == ' ' || *date == 'T')
		rest = read_time(date + 1, &tm);
	utc = rest && *rest == 'Z';
	if (!rest || rest[utc])
		return -EINVAL;
	*ms = date ? ms_of(tm, utc) : choose_day(tm, utc, now_ms, after_ms);
	return *ms ? 0 : -EINVAL;
}

const char *cli_moment_text(uint64_t ms, char out[CLI_MOMENT_MAX])
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm;

	if (!localtime_r(&seconds, &tm) || !strftime(out, CLI_MOMENT_MAX, "%Y-%m-%d %H:%M:%S", &tm))
		snprintf(out, CLI_MOMENT_MAX, "%llu s since 1970", (unsigned long long)(ms / 1000));
	return out;
}

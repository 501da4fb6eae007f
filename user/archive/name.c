// SPDX-License-Identifier: Apache-2.0
/* Writes and reads the names of epochs. */
#include "archive/name.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

void archive_name_write(const struct archive_span *span, char name[ARCHIVE_NAME_MAX])
{
	time_t begin = (time_t)(span->begin_ms / 1000);
	char last[32] = "";
	struct tm tm = {0};

	gmtime_r(&begin, &tm);
	if (span->last != span->first)
		snprintf(last, sizeof(last), "-%08" PRIu64, span->last);
	/* Not strftime(3), which reads the local time zone's file. */
	snprintf(name, ARCHIVE_NAME_MAX, "%04d%02d%02dT%02d%02d%02d.%03uZ-%" PRIu64 "ms-%08" PRIu64 "%s.pybpf",
		 tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
		 (unsigned)(span->begin_ms % 1000), span->length_ms, span->first, last);
}

bool archive_name_read(const char *name, struct archive_span *span)
{
	char again[ARCHIVE_NAME_MAX];
	unsigned ms = 0;
	struct tm tm = {0};
	int end = 0;

	*span = (struct archive_span){0};
	/* The widths keep what is read in range; whether it is a name is decided by writing it. */
	if (sscanf(name, "%4d%2d%2dT%2d%2d%2d.%3uZ-%15" SCNu64 "ms-%15" SCNu64 "%n", &tm.tm_year, &tm.tm_mon,
		   &tm.tm_mday, &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &ms, &span->length_ms, &span->first, &end) != 9)
		return false;
	span->last = span->first;
	if (name[end] == '-' && (sscanf(name + end, "-%15" SCNu64, &span->last) != 1 || span->last <= span->first))
		return false;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	span->begin_ms = (uint64_t)timegm(&tm) * 1000 + ms;
	if (timegm(&tm) < 0)
		return false;
	archive_name_write(span, again);
	return strcmp(again, name) == 0;
}

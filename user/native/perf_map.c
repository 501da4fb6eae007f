// SPDX-License-Identifier: Apache-2.0
#include "native/perf_map.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* Most bytes of a line. The rest of a longer one is not a line of a perf map. */
#define LINE 4096

/* A line: START SIZE NAME, numbers in hexadecimal digits. */
static void take_line(char *line, struct native_named *named, size_t count)
{
	char *end;
	uint64_t start = strtoull(line, &end, 16), size = *end == ' ' ? strtoull(end, &end, 16) : 0;

	if (*end != ' ')
		return;
	end++;
	end[strcspn(end, "\r\n")] = '\0';
	/* What comes later in the file is what lies there now. */
	native_give_name(named, count, start, size, end);
}

void native_perf_map_find(FILE *in, struct native_named *named, size_t count)
{
	char line[LINE];
	size_t read = 0;

	/* It may grow meanwhile. */
	while (read < NATIVE_PERF_MAP_MAX && fgets(line, sizeof(line), in)) {
		read += strlen(line) + 1;
		take_line(line, named, count);
	}
}

// SPDX-License-Identifier: Apache-2.0
#include "native/perf_map.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* Most bytes of a line. The rest of a longer one is not a line of a perf map. */
#define LINE 4096
/* Programs have no higher addresses, and no larger functions. */
#define ADDRESS_MAX ((uint64_t)1 << 47)
#define SIZE_MOST   ((uint64_t)1 << 32)

/* Gives the name to the addresses in a range. What comes later in the file is what lies there now. */
static void give_name(struct native_named *named, size_t count, uint64_t start, uint64_t size, const char *name)
{
	for (size_t i = 0; i < count && named[i].address < start + size; i++) {
		if (named[i].address < start)
			continue;
		named[i].start = start;
		named[i].size = size;
		snprintf(named[i].symbol, sizeof(named[i].symbol), "%.*s", NATIVE_SYMBOL_MAX - 1, name);
	}
}

/* A line: START SIZE NAME, numbers in hexadecimal digits. */
static void take_line(char *line, struct native_named *named, size_t count)
{
	char *end;
	uint64_t start = strtoull(line, &end, 16), size = *end == ' ' ? strtoull(end, &end, 16) : 0;

	if (*end != ' ' || !size || start >= ADDRESS_MAX || size >= SIZE_MOST)
		return;
	end++;
	end[strcspn(end, "\r\n")] = '\0';
	for (char *at = end; *at; at++) {
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			*at = '?';
	}
	if (*end)
		give_name(named, count, start, size, end);
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

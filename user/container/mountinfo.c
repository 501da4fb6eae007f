// SPDX-License-Identifier: Apache-2.0
#include "container/mountinfo.h"

#include <string.h>

#include "base/procfs.h"

/* Most bytes of mountinfo. A machine with thousands of containers has thousands of mounts of some 200 bytes. */
#define MOUNTINFO_MAX (16 * 1024 * 1024)

/* mangle() in fs/proc_namespace.c writes space, tab, newline, backslash and # in octal. */
static void unescape_octal(char *text)
{
	char *to = text;

	for (const char *from = text; *from; to++) {
		if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] >= '0' && from[2] <= '7' &&
		    from[3] >= '0' && from[3] <= '7') {
			*to = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

int mountinfo_read(pid_t pid, char **text)
{
	return procfs_read(pid, "mountinfo", MOUNTINFO_MAX, text, NULL);
}

/* Parses "36 35 98:0 ROOT POINT rw,noatime master:1 - TYPE SOURCE rw,errors=continue". */
static bool parse(char *line, struct mountinfo *out)
{
	char *separator = strstr(line, " - "), *saved, *fields[5];

	if (!separator)
		return false;
	*separator = '\0';
	out->type = strtok_r(separator + 3, " ", &saved);
	out->options = strtok_r(NULL, " ", &saved) ? strtok_r(NULL, " ", &saved) : NULL;
	fields[0] = strtok_r(line, " ", &saved);
	for (size_t i = 1; i < 5; i++)
		fields[i] = fields[i - 1] ? strtok_r(NULL, " ", &saved) : NULL;
	if (!out->options || !fields[4])
		return false;
	unescape_octal(fields[3]);
	unescape_octal(fields[4]);
	out->device = fields[2];
	out->root = fields[3];
	out->point = fields[4];
	/* Both paths begin with a slash in every kernel: d_path() and cgroup_path_ns() write it. */
	return out->root[0] == '/' && out->point[0] == '/';
}

bool mountinfo_next(char **rest, struct mountinfo *out)
{
	char *line;

	while ((line = strsep(rest, "\n")))
		if (parse(line, out))
			return true;
	return false;
}

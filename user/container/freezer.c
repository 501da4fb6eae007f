// SPDX-License-Identifier: Apache-2.0
/* Whether a process is frozen by its control group: `docker pause`, `systemctl freeze`. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "container/cgroup.h"

/* Reads a short file of the group. Returns whether it has the text. */
static bool file_has(const struct cgroup *group, const char *name, const char *text)
{
	char path[PATH_MAX + 32], buf[256];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", group->directory, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, buf, sizeof(buf) - 1);
	close(fd);
	buf[n > 0 ? n : 0] = '\0';
	return strstr(buf, text);
}

bool cgroup_is_frozen(const struct cgroup_mounts *mounts, pid_t pid)
{
	struct cgroup_line line;
	struct cgroup *group;
	struct error error;
	bool frozen = false;
	const char *at;
	char *text;

	if (cgroup_read_text(pid, &text))
		return false;
	group = calloc(1, sizeof(*group));
	at = text;
	while (group && !frozen && cgroup_next_line(&at, &line)) {
		bool freezer = line.v1 && line.controllers_len == strlen("freezer") &&
			       !memcmp(line.controllers, "freezer", line.controllers_len);

		if ((line.v1 && !freezer) || cgroup_locate(mounts, &line, line.path_len, group, &error))
			continue;
		/* Both files tell of a frozen parent group, too. */
		frozen = line.v1 ? file_has(group, "freezer.state", "FROZEN")
				 : file_has(group, "cgroup.events", "frozen 1");
	}
	free(group);
	free(text);
	return frozen;
}

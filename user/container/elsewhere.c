// SPDX-License-Identifier: Apache-2.0
/* Names of containers whose runtime keeps its files elsewhere than usual. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/procfs.h"
#include "container/internal.h"
#include "container/mountinfo.h"
#include "container/state.h"

/* Most ancestors between a process in a container and its conmon. */
#define ANCESTORS_MAX 64
#define CMDLINE_MAX   (16 * 1024)

/* Returns the argument after the option in a command line, or NULL. */
static const char *option_of(const char *cmdline, size_t len, const char *option)
{
	for (const char *p = cmdline, *end = cmdline + len; p < end; p += strlen(p) + 1) {
		const char *next = p + strlen(p) + 1;

		if (!strcmp(p, option))
			return next < end ? next : NULL;
	}
	return NULL;
}

/*
 * Reads the name of podman's container from the command line of the conmon above its processes: `conmon -c ID ... -n
 * NAME`. podman's lists may be below another root (--root, containers/storage.conf).
 */
static void conmon_read_name(struct container *container, pid_t pid)
{
	struct procfs_stat stat;

	for (int i = 0; i < ANCESTORS_MAX && pid > 1 && !procfs_read_stat(pid, &stat); i++, pid = stat.ppid) {
		const char *id, *name;
		size_t len = 0;
		char *text;

		if (strcmp(stat.comm, "conmon") != 0 || procfs_read(pid, "cmdline", CMDLINE_MAX, &text, &len))
			continue;
		id = option_of(text, len, "-c");
		name = option_of(text, len, "-n");
		if (id && name && name[0] && !strcmp(id, container->id))
			snprintf(container->name, sizeof(container->name), "%s", name);
		free(text);
	}
}

/* Cuts "/containers/ID/FILE" off the root of a mount. Returns false if it has another form. */
static bool cut_container(char *root, const char *id)
{
	char *folder = strstr(root, "/containers/"), *name;

	for (; folder; folder = strstr(folder + 1, "/containers/")) {
		name = folder + strlen("/containers/");
		if (strncmp(name, id, strlen(id)) != 0 || name[strlen(id)] != '/')
			continue;
		*folder = '\0';
		return true;
	}
	return false;
}

bool container_find_docker_root(char *inside, char *outside, const char *id, char *out, size_t size)
{
	struct mountinfo in, found;
	char *root = NULL;
	size_t longest = 0;

	while (!root && mountinfo_next(&inside, &in))
		root = cut_container(in.root, id) ? in.root : NULL;
	if (!root)
		return false;
	/* The same file system may be mounted more than once outside, each time another part of it. */
	while (mountinfo_next(&outside, &found)) {
		size_t len = strlen(found.root);
		int printed;

		len -= found.root[len - 1] == '/';
		if (strcmp(found.device, in.device) != 0 || len + 1 <= longest || strncmp(root, found.root, len) != 0 ||
		    (root[len] != '/' && root[len] != '\0'))
			continue;
		printed = snprintf(out, size, "%s%s", strcmp(found.point, "/") ? found.point : "", root + len);
		if (printed < 0 || (size_t)printed >= size)
			return false;
		longest = len + 1;
	}
	return longest > 0;
}

/*
 * dockerd may be told of another data directory on its command line, as that of a user without root and that of a snap
 * are. It mounts files from there into each container: containers/ID/hostname at /etc/hostname, and others.
 */
static void docker_read_name(struct container *container, pid_t pid)
{
	char *inside = NULL, *outside = NULL, root[PATH_MAX];

	if (!mountinfo_read(pid, &inside) && !mountinfo_read(1, &outside) &&
	    container_find_docker_root(inside, outside, container->id, root, sizeof(root)))
		state_read_docker_name(root, container);
	free(inside);
	free(outside);
}

void container_read_name_elsewhere(struct container *container, pid_t pid)
{
	if (!strcmp(container->runtime, "podman"))
		conmon_read_name(container, pid);
	else if (!strcmp(container->runtime, "docker") || !strcmp(container->runtime, "oci"))
		docker_read_name(container, pid);
}

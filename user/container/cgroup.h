// SPDX-License-Identifier: Apache-2.0
/* Control groups: where their hierarchies are mounted, which directory is meant, which group a process is in. */
#ifndef CONTAINER_CGROUP_H
#define CONTAINER_CGROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct discovery_cgroup {
	bool v1;
	char controller[32];      /* v1: the first one of its hierarchy */
	uint64_t id;              /* the kernel's number for it: st_ino of its directory */
	char path[PATH_MAX];      /* in the hierarchy, as /proc/PID/cgroup has it */
	char directory[PATH_MAX]; /* in the file system */
};

struct discovery_cgroup_mount {
	bool v1;
	char controllers[128]; /* v1: "cpu,cpuacct"; "name=systemd" for a hierarchy without controllers */
	char *root;            /* what of the hierarchy is mounted: "/", or a container's part of it */
	char *point;
};

struct discovery_cgroup_mounts {
	struct discovery_cgroup_mount *mounts; /* v2 first, then v1 in the order of preference */
	size_t count;
};

/* Reads where pybpf's mount namespace has the hierarchies. Returns 0 or negative errno. */
int discovery_cgroup_mounts_read(struct discovery_cgroup_mounts *out);
/* The same from the text of a mountinfo, which is modified. Returns 0 or -ENOMEM. */
int discovery_cgroup_mounts_parse(char *text, struct discovery_cgroup_mounts *out);
void discovery_cgroup_mounts_free(struct discovery_cgroup_mounts *mounts);

/*
 * Finds the group that a user names: a directory below one of the mounts, or a path inside a hierarchy, where v2 is
 * preferred. Returns 0; -ENOENT, -ENOTDIR, -EXDEV (outside every hierarchy), -ENOTSUP (in one without controllers) or
 * another negative errno, with one sentence in *error.
 */
int discovery_cgroup_resolve(const struct discovery_cgroup_mounts *mounts, const char *path,
			     struct discovery_cgroup *out, struct error *error);

/* The path in its hierarchy of a directory whose name another process told; false when it is below no mount. */
bool discovery_cgroup_inside(const struct discovery_cgroup_mounts *mounts, const char *directory, char *out,
			     size_t size);

/* One line of /proc/PID/cgroup; the texts are not terminated. */
struct discovery_cgroup_line {
	bool v1;
	const char *controllers, *path;
	size_t controllers_len, path_len;
};

/* Is the line about the mount's hierarchy? */
bool discovery_cgroup_same_line(const struct discovery_cgroup_mount *mount, const struct discovery_cgroup_line *line);
/* Takes the next well-formed line off the text; false at its end. */
bool discovery_cgroup_next_line(const char **text, struct discovery_cgroup_line *out);

/*
 * Finds the directory of the group that the first path_len characters of a line's path name. Returns 0, or negative
 * errno with one sentence in *error.
 */
int discovery_cgroup_locate(const struct discovery_cgroup_mounts *mounts, const struct discovery_cgroup_line *line,
			    size_t path_len, struct discovery_cgroup *out, struct error *error);

/* Reads /proc/PID/cgroup into *text, which the caller frees. Returns 0 or negative errno. */
int discovery_cgroup_of(pid_t pid, char **text);
/* Is the process whose /proc/PID/cgroup that is in the group or below it? */
bool discovery_cgroup_holds(const struct discovery_cgroup *group, const char *text);

/* 0 when all groups are in one hierarchy, else -EXDEV and one sentence in *error. */
int discovery_cgroup_same_hierarchy(const struct discovery_cgroup *groups, size_t count, struct error *error);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Control groups: where their hierarchies are mounted, which directory a user means, and which group a process is in.
 */
#ifndef CONTAINER_CGROUP_H
#define CONTAINER_CGROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct cgroup {
	bool v1;
	char controller[32];      /* v1: the first controller of its hierarchy */
	uint64_t id;              /* the group's number in the kernel: st_ino of its directory */
	char path[PATH_MAX];      /* in the hierarchy, as /proc/PID/cgroup has it */
	char directory[PATH_MAX]; /* in the file system */
};

struct cgroup_mount {
	bool v1;
	char controllers[128]; /* v1: "cpu,cpuacct"; "name=systemd" for a hierarchy without controllers */
	char *root;            /* the mounted part of the hierarchy: "/", or a container's part */
	char *point;
};

struct cgroup_mounts {
	struct cgroup_mount *mounts; /* v2 first, then v1 in the order of preference */
	size_t count;
};

/* Reads the mounts of the hierarchies in pybpf's mount namespace. Returns 0 or negative errno. */
int cgroup_mounts_read(struct cgroup_mounts *out);
/* As cgroup_mounts_read(), from the text of a mountinfo, which is modified. Returns 0 or -ENOMEM. */
int cgroup_mounts_parse(char *text, struct cgroup_mounts *out);
void cgroup_mounts_free(struct cgroup_mounts *mounts);

/*
 * Finds the group that a user names: a directory below one of the mounts, or a path inside a hierarchy, where v2 is
 * preferred. Returns 0; -ENOENT, -ENOTDIR, -EXDEV (outside every hierarchy), -ENOTSUP (in one without controllers) or
 * another negative errno, with one sentence in *error.
 */
int cgroup_resolve(const struct cgroup_mounts *mounts, const char *path, struct cgroup *out, struct error *error);

/*
 * Writes to a buffer the path, in its hierarchy, of a directory whose name comes from another process. Returns false
 * when it is not below a mount.
 */
bool cgroup_find_path(const struct cgroup_mounts *mounts, const char *directory, char *out, size_t size);

/* One line of /proc/PID/cgroup; the texts are not terminated. */
struct cgroup_line {
	bool v1;
	const char *controllers, *path;
	size_t controllers_len, path_len;
};

/* Returns whether the line is about the mount's hierarchy. */
bool cgroup_matches_line(const struct cgroup_mount *mount, const struct cgroup_line *line);
/* Takes the next well-formed line off the text. Returns false at its end. */
bool cgroup_next_line(const char **text, struct cgroup_line *out);

/*
 * Finds the directory of the group that the first path_len characters of a line's path name. Returns 0, or negative
 * errno with one sentence in *error.
 */
int cgroup_locate(const struct cgroup_mounts *mounts, const struct cgroup_line *line, size_t path_len,
		  struct cgroup *out, struct error *error);

/* Reads /proc/PID/cgroup into *text, which the caller frees. Returns 0 or negative errno. */
int cgroup_read_text(pid_t pid, char **text);
/* Returns whether the process, of which text is /proc/PID/cgroup, is in the group or below it. */
bool cgroup_holds(const struct cgroup *group, const char *text);

/* Returns whether the process's group, or one above it, is frozen. False if that cannot be read. */
bool cgroup_is_frozen(const struct cgroup_mounts *mounts, pid_t pid);

/* Returns 0 when all groups are in one hierarchy, else -EXDEV with one sentence in *error. */
int cgroup_check_hierarchy(const struct cgroup *groups, size_t count, struct error *error);

#endif

// SPDX-License-Identifier: Apache-2.0
/* Declarations that only the files of the container room share. */
#ifndef CONTAINER_INTERNAL_H
#define CONTAINER_INTERNAL_H

#include "container/container.h"

/*
 * Reads the list of crun's and runc's containers when it may have changed, and then forgets which container each group
 * belongs to, as that depends on it.
 */
void container_refresh_own(struct container_cache *cache);

/* Returns whether it is an ID that a runtime made, of 64 hexadecimal digits, and not a name that somebody chose. */
bool container_is_full_id(const char *id, size_t len);
/*
 * As container_parse_path(), but also finds containers of crun and runc, and fills in names. pid: a process in the
 * group.
 */
bool container_next(const struct container_cache *cache, const char *path, size_t len, size_t *at, pid_t pid,
		    struct container *out);

/*
 * Reads the name of a container of docker or podman that state_read_name() does not find; pid: a process in it. Without
 * one the name stays.
 */
void container_read_name_elsewhere(struct container *container, pid_t pid);
/*
 * Finds the data directory of the docker that made the container, from the mountinfo of a process in it and that of one
 * of the host; the texts are modified. Returns whether out, with room for size bytes, has its path on the host.
 */
bool container_find_docker_root(char *inside, char *outside, const char *id, char *out, size_t size);

/*
 * Finds the innermost container in a text of /proc/PID/cgroup, which this function frees. now_s: of any clock that
 * never goes back; it decides whether an earlier answer still holds. Returns as container_find_by_pid().
 */
int container_find_by_text(struct container_cache *cache, char *text, pid_t pid, double now_s, struct container *out);

#endif

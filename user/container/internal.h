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
 * Finds the innermost container in a text of /proc/PID/cgroup, which this function frees. now_s: of any clock that
 * never goes back; it decides whether an earlier answer still holds. Returns as container_find_by_pid().
 */
int container_find_by_text(struct container_cache *cache, char *text, pid_t pid, double now_s, struct container *out);

#endif

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

/*
 * As container_parse_path(), but also finds containers of crun and runc, and fills in names. pid: a process in the
 * group.
 */
bool container_next(const struct container_cache *cache, const char *path, size_t len, size_t *at, pid_t pid,
		    struct container *out);

#endif

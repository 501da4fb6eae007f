// SPDX-License-Identifier: Apache-2.0
/* What container runtimes write of their containers: names, and the cgroups of those that only they know. */
#ifndef CONTAINER_STATE_H
#define CONTAINER_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "container/container.h"

/*
 * Files are read below /proc/1/root, which is the host's file system also for a container that shares its PID
 * namespace; or below another directory, for good, when path is not NULL.
 */
void state_set_root(const char *path);

/*
 * Fills in the name, and the runtime if it is "oci", from the state of the runtimes that it can be of. uid is the user
 * whose runtime it is, or 0. Returns 0, or -ENOENT when nothing readable tells; then the ID's beginning is the name.
 */
int state_read_name(struct container *container, unsigned uid);

/* Has containerd a container of that ID in that namespace? */
bool state_has_containerd(const char *space, size_t space_len, const char *id, size_t id_len);

/* What changes when crun or runc add or remove a container. */
struct state_stamp {
	int64_t seconds[2], nanoseconds[2];
};
void state_read_stamp(struct state_stamp *out);

/*
 * Calls visit for each container of crun and runc, running or not, with the path of its cgroup (NULL: it has none
 * of its own), until it returns non-zero, and returns that; 0 at the end. *unfinished says how many are there without
 * a readable state: they are being made.
 */
int state_each(int (*visit)(const struct container *container, const char *cgroup, void *arg), void *arg,
	       size_t *unfinished);

/* Likewise each that docker and podman keep; there is no word of cgroups in it. */
int state_each_stored(int (*visit)(const struct container *container, const char *cgroup, void *arg), void *arg);

#endif

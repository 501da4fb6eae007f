// SPDX-License-Identifier: Apache-2.0
/* Reads what container runtimes store: names of containers, and the cgroups of containers that only they know. */
#ifndef CONTAINER_STATE_H
#define CONTAINER_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "container/container.h"

/*
 * Sets the directory below which files are read, for good; NULL: the first that can be opened of /proc/1/root, which is
 * the host's file system also for a container that shares its PID namespace, STATE_HOST and /.
 */
void state_set_root(const char *path);
/* Returns that directory. */
const char *state_get_root(void);
/* Where a container mounts the host's root: process 1 may have capabilities that pybpf has not, which hides its root.
 */
#define STATE_HOST "/host"

/*
 * Fills in the name, the pod's namespace and the image where they are known, and the runtime if it is "oci", from the
 * state of the runtimes that can have made the container. uid is the user whose runtime it is, or 0. Returns 0, or
 * -ENOENT when the name cannot be read; then the name is the beginning of an ID that the runtime made, or the
 * whole of one that was chosen.
 */
int state_read_name(struct container *container, unsigned uid);

/* As state_read_name(), from docker's data directory root. Returns whether it has a name for the container. */
bool state_read_docker_name(const char *root, struct container *container);

/* Returns whether containerd has a container of that ID in that namespace. */
bool state_has_containerd(const char *space, size_t space_len, const char *id, size_t id_len);

/* Changes whenever crun or runc adds or removes a container. */
struct state_stamp {
	int64_t seconds[2], nanoseconds[2];
};
void state_read_stamp(struct state_stamp *out);

/*
 * Calls visit for each container of crun and runc, running or not, with the path of its cgroup (NULL: it has no group
 * of its own), until visit returns non-zero, and returns that; 0 at the end. *unfinished is the number of containers
 * without a readable state: they are being created.
 */
int state_each(int (*visit)(const struct container *container, const char *cgroup, void *arg), void *arg,
	       size_t *unfinished);

/* As state_each(), for each container that docker and podman store. They do not store cgroups: cgroup is NULL. */
int state_each_stored(int (*visit)(const struct container *container, const char *cgroup, void *arg), void *arg);

#endif

// SPDX-License-Identifier: Apache-2.0
/* Containers: recognized by the paths of their cgroups, and named from their runtimes' state. */
#ifndef CONTAINER_H
#define CONTAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "container/cgroup.h"

struct container {
	char id[80];      /* 64 hexadecimal digits, or the ID that its runtime was given */
	char name[256];   /* "pod/container" in Kubernetes; the ID's beginning if the name cannot be read */
	char runtime[16]; /* docker, containerd, crio, podman, lxc, nspawn, crun, runc; "oci" when several fit */
	char pod_uid[40]; /* Kubernetes, else "" */
};

/* Fewest characters of an ID that identify a container. */
#define CONTAINER_PREFIX_MIN 4

/*
 * Searches the path of a cgroup for a container, from offset *at on, one component after the other: containers can be
 * nested. Fills *out except for the name, sets *at to the end of the component that has the ID, and returns true; false
 * when no further container is found.
 */
bool container_parse_path(const char *path, size_t len, size_t *at, struct container *out);

/*
 * Finds the innermost container that the process is in. Returns 0; -ENOENT when it is not in a container, or another
 * negative errno.
 */
int container_find_by_pid(pid_t pid, struct container *out);

/*
 * Returns whether query is the container's ID or its beginning, its name, or in Kubernetes its name without the pod's.
 */
bool container_matches(const struct container *container, const char *query);

/*
 * Finds the one container with processes that query means, and its cgroup. Returns 0; with one sentence in *error
 * -ENOENT, -ENOTUNIQ (the matches are listed), -ENODATA (a runtime knows the container, but it has no process) or
 * another negative errno.
 */
int container_find(const char *query, struct container *out, struct cgroup *group, struct error *error);

/* Frees everything that is remembered about containers. */
void container_forget_all(void);

#endif

// SPDX-License-Identifier: Apache-2.0
/* Containers: known by the paths of their cgroups, and named by what their runtimes keep of them. */
#ifndef CONTAINER_H
#define CONTAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "container/cgroup.h"

struct container {
	char id[80];      /* 64 hexadecimal digits, or what its runtime was given */
	char name[256];   /* "pod/container" in Kubernetes; the ID's beginning where no name can be read */
	char runtime[16]; /* docker, containerd, crio, podman, lxc, nspawn, crun, runc; "oci" when several fit */
	char pod_uid[40]; /* Kubernetes, else "" */
};

/* Fewest characters that an ID is recognised by. */
#define CONTAINER_PREFIX_MIN 4

/*
 * Looks for a container in the path of a cgroup, from *at on, one component after the other: containers can be in
 * containers. Fills out but for the name, sets *at to the end of the component that has the ID, and returns true; false
 * when there is none (any more).
 */
bool container_parse_path(const char *path, size_t len, size_t *at, struct container *out);

/* The innermost container that the process is in. Returns 0; -ENOENT when it is in none, or another negative errno. */
int container_find_by_pid(pid_t pid, struct container *out);

/* Is it meant by query: an ID or its beginning, the name, or in Kubernetes the name without the pod's? */
bool container_matches(const struct container *container, const char *query);

/*
 * Finds the one container, among those that have processes, that query means, and its cgroup. Returns 0; with one
 * sentence in *error -ENOENT, -ENOTUNIQ (the matches are listed), -ENODATA (it is known and has no process) or another
 * negative errno.
 */
int container_find(const char *query, struct container *out, struct cgroup *group, struct error *error);

/* Forgets all that is remembered of containers. */
void container_forget_all(void);

#endif

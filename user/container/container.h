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
	char name[256];   /* "pod/container" in Kubernetes; if the name cannot be read, the chosen ID or 12 digits */
	char runtime[16]; /* docker, containerd, crio, podman, lxc, nspawn, crun, runc; "oci" when several fit */
	char pod_uid[40]; /* Kubernetes, else "" */
	char space[64];   /* Kubernetes: the pod's namespace; "": not known */
	char image[192];  /* as its runtime was asked for it, such as registry/shop:1.4; "": not known */
};

/*
 * Seconds after a control group was made in which its runtime may still write what the container is called: most do
 * within a moment.
 */
#define CONTAINER_YOUNG_S 3.0

/* Digits of an ID that stand for its container where its name cannot be read, as docker shows them. */
#define CONTAINER_SHORT_ID 12
/* Returns whether it has these for a name. */
bool container_is_nameless(const struct container *container);

/* Fewest characters of an ID that identify a container. */
#define CONTAINER_PREFIX_MIN 4

/*
 * Searches the path of a cgroup for a container, from offset *at on, one component after the other: containers can be
 * nested. Fills *out except for the name, sets *at to the end of the component that has the ID, and returns true; false
 * when no further container is found.
 */
bool container_parse_path(const char *path, size_t len, size_t *at, struct container *out);

/* What is remembered of control groups and of the runtimes' state. */
struct container_cache;

/* Returns NULL without memory. */
struct container_cache *container_cache_new(void);
void container_cache_free(struct container_cache *cache);

/*
 * Finds the innermost container that the process is in. Returns 0; -ENOENT when it is not in a container, or another
 * negative errno.
 */
int container_find_by_pid(struct container_cache *cache, pid_t pid, struct container *out);

/* Returns whether query is a shell pattern, which may mean several containers. */
bool container_is_pattern(const char *query);

/*
 * Returns whether query is the container's ID or its beginning, its name, or in Kubernetes its name without the pod's;
 * or a shell pattern that matches one of these. "RUNTIME:" may stand before it.
 */
bool container_matches(const struct container *container, const char *query);

struct container_found {
	struct container container;
	struct cgroup group;
};

/*
 * Finds the container with processes that query means, or all that a pattern means, and their cgroups. Returns 0; with
 * one sentence in *error -ENOENT (it names running containers), -ENOTUNIQ (the matches are listed), -E2BIG (more than
 * room), -ENODATA (a runtime knows the container, but it has no process) or another negative errno.
 */
int container_find(struct container_cache *cache, const char *query, struct container_found *out, size_t room,
		   size_t *count, struct error *error);

/* How many running containers there are, and of how many the name cannot be read. */
struct container_names {
	size_t containers, nameless;
	char example[64]; /* one without a name */
	char root[32];    /* the directory below which the runtimes' files are looked for */
};

/* Returns 0 or negative errno. */
int container_count_names(struct container_cache *cache, struct container_names *out);

#endif

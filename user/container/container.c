// SPDX-License-Identifier: Apache-2.0
/* Finds the container that a process is in, and the container that a user means. */
#include "container/container.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/intern.h"
#include "base/scan.h"
#include "base/procfs.h"
#include "container/internal.h"
#include "container/state.h"

/*
 * Seconds for which a group's container is remembered: its runtime may change the name. One without a name is
 * remembered only when CONTAINER_YOUNG_S are over.
 */
#define CACHED_S 60.0
/* Most cached groups with processes, some hundred bytes each. When there are more, the cache is emptied. */
#define CACHE_MAX 4096
/* Interval in nanoseconds at which the state of crun and runc is read while a container is being created. */
#define OWN_RETRY_NS 20000000

/* A container of crun or runc. Its ID can be anything, so only their state shows that it is a container. */
struct own_container {
	struct container container;
	char *cgroup;
};

/* The list of crun's and runc's containers. */
struct own_list {
	struct own_container *list;
	size_t count, room, unfinished;
	struct state_stamp stamp;
	struct timespec read; /* time of the last read, CLOCK_REALTIME as files' times are */
	bool valid;
};

/* The container that a text of /proc/PID/cgroup shows. */
struct cached {
	char *text;
	double first_s, read_s; /* when it was looked up first, and last */
	bool found;
	struct container container;
};

struct container_cache {
	struct own_list own;
	struct intern groups; /* struct cached */
};

struct container_cache *container_cache_new(void)
{
	struct container_cache *cache = calloc(1, sizeof(*cache));

	if (cache)
		intern_init(&cache->groups, sizeof(struct cached), INTERN_TEXT);
	return cache;
}

static void groups_clear(struct intern *groups)
{
	for (uint32_t i = 0; i < groups->count; i++)
		free(((struct cached *)intern_item(groups, i))->text);
	intern_free(groups);
}

static void own_clear(struct own_list *own)
{
	for (size_t i = 0; i < own->count; i++)
		free(own->list[i].cgroup);
	own->count = 0;
	own->valid = false;
}

void container_cache_free(struct container_cache *cache)
{
	if (!cache)
		return;
	groups_clear(&cache->groups);
	own_clear(&cache->own);
	free(cache->own.list);
	free(cache);
}

static int own_add(const struct container *container, const char *cgroup, void *arg)
{
	struct own_list *own = arg;
	struct own_container *added;

	if (!cgroup)
		return 0;
	if (array_reserve(&own->list, &own->room, own->count + 1, sizeof(*own->list)))
		return -ENOMEM;
	added = &own->list[own->count];
	*added = (struct own_container){.container = *container, .cgroup = strdup(cgroup)};
	if (!added->cgroup)
		return -ENOMEM;
	own->count++;
	return 0;
}

static int64_t since_read(const struct own_list *own, int64_t seconds, int64_t nanoseconds)
{
	return (seconds - own->read.tv_sec) * 1000000000 + nanoseconds - own->read.tv_nsec;
}

void container_refresh_own(struct container_cache *cache)
{
	struct own_list *own = &cache->own;
	struct state_stamp stamp;
	struct timespec now;
	bool stale = !own->valid;

	state_read_stamp(&stamp);
	clock_gettime(CLOCK_REALTIME, &now);
	stale |= memcmp(&stamp, &own->stamp, sizeof(stamp)) != 0;
	/* A directory's time has the resolution of a clock tick, which can hide one more change in the same tick. */
	for (size_t i = 0; i < 2 && !stale; i++)
		stale = since_read(own, stamp.seconds[i], stamp.nanoseconds[i]) > -OWN_RETRY_NS &&
			since_read(own, now.tv_sec, now.tv_nsec) > OWN_RETRY_NS;
	if (!stale && own->unfinished)
		stale = since_read(own, now.tv_sec, now.tv_nsec) > OWN_RETRY_NS;
	if (!stale)
		return;
	own_clear(own);
	groups_clear(&cache->groups);
	own->stamp = stamp;
	own->read = now;
	/* Without memory some containers are missing, as if their state were not readable. */
	state_each(own_add, own, &own->unfinished);
	own->valid = true;
}

/* Returns the container of crun or runc whose group is the longest prefix of the path beyond offset at, or NULL. */
static const struct own_container *own_find(const struct own_list *own, const char *path, size_t len, size_t at)
{
	const struct own_container *found = NULL;
	size_t best = at;

	for (size_t i = 0; i < own->count; i++) {
		size_t n = strlen(own->list[i].cgroup);

		if (n <= best || n > len || memcmp(path, own->list[i].cgroup, n) != 0 || (n < len && path[n] != '/'))
			continue;
		found = &own->list[i];
		best = n;
	}
	return found;
}

/* Returns the user whose systemd made the group, or 0. */
static unsigned user_of(const char *path, size_t len)
{
	const char *slice = memmem(path, len, "/user-", 6);

	return slice ? strtoul(slice + 6, NULL, 10) : 0;
}

bool container_next(const struct container_cache *cache, const char *path, size_t len, size_t *at, pid_t pid,
		    struct container *out)
{
	const struct own_container *known = own_find(&cache->own, path, len, *at);
	size_t end = *at;
	bool found = container_parse_path(path, len, &end, out);

	/* crun and runc, under docker and podman, also list containers that the path already shows. */
	if (known && (!found || strlen(known->cgroup) < end)) {
		*out = known->container;
		*at = strlen(known->cgroup);
		return true;
	}
	if (found) {
		if (state_read_name(out, user_of(path, len)))
			container_read_name_elsewhere(out, pid);
		*at = end;
	}
	return found;
}

static bool innermost(const struct container_cache *cache, const struct cgroup_line *line, pid_t pid,
		      struct container *out)
{
	struct container container;
	bool found = false;

	for (size_t at = 0; container_next(cache, line->path, line->path_len, &at, pid, &container); found = true)
		*out = container;
	return found;
}

/* v2's line comes last in the text and is searched first: v1's hierarchies need not know of the container. */
static bool container_in(const struct container_cache *cache, const char *text, pid_t pid, struct container *out)
{
	for (int v1 = 0; v1 < 2; v1++) {
		struct cgroup_line line;

		for (const char *rest = text; cgroup_next_line(&rest, &line);)
			if (line.v1 == !!v1 && innermost(cache, &line, pid, out))
				return true;
	}
	return false;
}

/* Returns whether what was read of a group still holds. */
static bool holds(const struct cached *known, double now_s)
{
	const bool is_named = known->found && !container_is_nameless(&known->container);

	return (is_named || now_s - known->first_s >= CONTAINER_YOUNG_S) && now_s - known->read_s < CACHED_S;
}

static void read_group(const struct container_cache *cache, struct cached *group, pid_t pid, double now_s)
{
	group->found = container_in(cache, group->text, pid, &group->container);
	group->read_s = now_s;
}

/* Adds a group, whose text is the cache's or is freed. Returns NULL without memory. */
static struct cached *add_group(struct container_cache *cache, char *text, pid_t pid, double now_s)
{
	struct cached fresh = {.text = text, .first_s = now_s};
	bool added = false;
	uint32_t i;

	if (cache->groups.count >= CACHE_MAX)
		groups_clear(&cache->groups);
	read_group(cache, &fresh, pid, now_s);
	i = intern_add(&cache->groups, &fresh, &added);
	if (!added)
		free(text);
	return i == INTERN_NONE ? NULL : intern_item(&cache->groups, i);
}

int container_find_by_text(struct container_cache *cache, char *text, pid_t pid, double now_s, struct container *out)
{
	const uint32_t i = intern_find(&cache->groups, &text);
	struct cached *known;

	if (i == INTERN_NONE) {
		known = add_group(cache, text, pid, now_s);
	} else {
		free(text);
		known = intern_item(&cache->groups, i);
		if (!holds(known, now_s))
			read_group(cache, known, pid, now_s);
	}
	if (!known)
		return -ENOMEM;
	if (!known->found)
		return -ENOENT;
	*out = known->container;
	return 0;
}

int container_find_by_pid(struct container_cache *cache, pid_t pid, struct container *out)
{
	char *text;
	int err = cgroup_read_text(pid, &text);

	if (err)
		return err;
	container_refresh_own(cache);
	return container_find_by_text(cache, text, pid, clock_s(CLOCK_MONOTONIC), out);
}

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
#include "base/intern.h"
#include "base/scan.h"
#include "container/state.h"

/* Most cached groups with processes, some hundred bytes each. When there are more, the cache is emptied. */
#define CACHE_MAX 4096
/* Interval in nanoseconds at which the state of crun and runc is read while a container is being created. */
#define OWN_RETRY_NS  20000000
#define MATCHES_SHOWN 8

/* A container of crun or runc. Its ID can be anything, so only their state shows that it is a container. */
struct own_container {
	struct container container;
	char *cgroup;
};

static struct {
	struct own_container *list;
	size_t count, room, unfinished;
	struct state_stamp stamp;
	struct timespec read; /* time of the last read, CLOCK_REALTIME as files' times are */
	bool valid;
} own;

/* The container that a text of /proc/PID/cgroup shows. */
struct cached {
	char *text;
	bool found;
	struct container container;
};

static struct intern cache = INTERN_INIT(sizeof(struct cached), INTERN_TEXT);

static void cache_clear(void)
{
	for (uint32_t i = 0; i < cache.count; i++)
		free(((struct cached *)intern_item(&cache, i))->text);
	intern_free(&cache);
}

static void own_clear(void)
{
	for (size_t i = 0; i < own.count; i++)
		free(own.list[i].cgroup);
	own.count = 0;
	own.valid = false;
}

void container_forget_all(void)
{
	cache_clear();
	own_clear();
	free(own.list);
	own.list = NULL;
	own.room = 0;
}

static int own_add(const struct container *container, const char *cgroup, void *arg)
{
	struct own_container *added;

	(void)arg;
	if (!cgroup)
		return 0;
	if (array_reserve(&own.list, &own.room, own.count + 1, sizeof(*own.list)))
		return -ENOMEM;
	added = &own.list[own.count];
	*added = (struct own_container){.container = *container, .cgroup = strdup(cgroup)};
	if (!added->cgroup)
		return -ENOMEM;
	own.count++;
	return 0;
}

static int64_t since_read(int64_t seconds, int64_t nanoseconds)
{
	return (seconds - own.read.tv_sec) * 1000000000 + nanoseconds - own.read.tv_nsec;
}

/*
 * Reads the list of crun's and runc's containers when it may have changed, and then empties the cache, which depends on
 * it.
 */
static void own_refresh(void)
{
	struct state_stamp stamp;
	struct timespec now;
	bool stale = !own.valid;

	state_read_stamp(&stamp);
	clock_gettime(CLOCK_REALTIME, &now);
	stale |= memcmp(&stamp, &own.stamp, sizeof(stamp)) != 0;
	/* A directory's time has the resolution of a clock tick, which can hide one more change in the same tick. */
	for (size_t i = 0; i < 2 && !stale; i++)
		stale = since_read(stamp.seconds[i], stamp.nanoseconds[i]) > -OWN_RETRY_NS &&
			since_read(now.tv_sec, now.tv_nsec) > OWN_RETRY_NS;
	if (!stale && own.unfinished)
		stale = since_read(now.tv_sec, now.tv_nsec) > OWN_RETRY_NS;
	if (!stale)
		return;
	own_clear();
	cache_clear();
	own.stamp = stamp;
	own.read = now;
	/* Without memory some containers are missing, as if their state were not readable. */
	state_each(own_add, NULL, &own.unfinished);
	own.valid = true;
}

/* Returns the container of crun or runc whose group is the longest prefix of the path beyond offset at, or NULL. */
static const struct own_container *own_find(const char *path, size_t len, size_t at)
{
	const struct own_container *found = NULL;
	size_t best = at;

	for (size_t i = 0; i < own.count; i++) {
		size_t n = strlen(own.list[i].cgroup);

		if (n <= best || n > len || memcmp(path, own.list[i].cgroup, n) != 0 || (n < len && path[n] != '/'))
			continue;
		found = &own.list[i];
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

/* As container_parse_path(), but also finds containers of crun and runc, and fills in names. */
static bool next_container(const char *path, size_t len, size_t *at, struct container *out)
{
	const struct own_container *known = own_find(path, len, *at);
	size_t end = *at;
	bool found = container_parse_path(path, len, &end, out);

	/* crun and runc, under docker and podman, also list containers that the path already shows. */
	if (known && (!found || strlen(known->cgroup) < end)) {
		*out = known->container;
		*at = strlen(known->cgroup);
		return true;
	}
	if (found) {
		state_read_name(out, user_of(path, len));
		*at = end;
	}
	return found;
}

static bool innermost(const struct cgroup_line *line, struct container *out)
{
	struct container container;
	bool found = false;

	for (size_t at = 0; next_container(line->path, line->path_len, &at, &container); found = true)
		*out = container;
	return found;
}

/* v2's line comes last in the text and is searched first: v1's hierarchies need not know of the container. */
static bool container_in(const char *text, struct container *out)
{
	for (int v1 = 0; v1 < 2; v1++) {
		struct cgroup_line line;

		for (const char *rest = text; cgroup_next_line(&rest, &line);)
			if (line.v1 == !!v1 && innermost(&line, out))
				return true;
	}
	return false;
}

/*
 * Returns the container of the text of a /proc/PID/cgroup, which this function frees, or NULL without memory. Valid
 * until the next call.
 */
static const struct cached *look_up(char *text)
{
	struct cached fresh = {.text = text};
	uint32_t i = intern_find(&cache, &fresh);
	bool added = false;

	if (i == INTERN_NONE) {
		if (cache.count >= CACHE_MAX)
			cache_clear();
		fresh.found = container_in(text, &fresh.container);
		i = intern_add(&cache, &fresh, &added);
	}
	if (!added)
		free(text);
	return i == INTERN_NONE ? NULL : intern_item(&cache, i);
}

int container_find_by_pid(pid_t pid, struct container *out)
{
	const struct cached *known;
	char *text;
	int err = cgroup_read_text(pid, &text);

	if (err)
		return err;
	own_refresh();
	known = look_up(text);
	if (!known)
		return -ENOMEM;
	if (!known->found)
		return -ENOENT;
	*out = known->container;
	return 0;
}

static bool is_exactly(const struct container *container, const char *query)
{
	const char *slash = strchr(container->name, '/');

	return !strcmp(container->id, query) || !strcmp(container->name, query) || (slash && !strcmp(slash + 1, query));
}

bool container_matches(const struct container *container, const char *query)
{
	return is_exactly(container, query) ||
	       (strlen(query) >= CONTAINER_PREFIX_MIN && !strncmp(container->id, query, strlen(query)));
}

struct match {
	struct container container;
	pid_t pid;
};

struct search {
	const char *query;
	struct match *matches;
	size_t count, room;
	bool exactly;       /* all matches are exact */
	struct intern seen; /* char *: each /proc/PID/cgroup; all processes of a container have the same */
};

static int add_match(struct search *search, const struct container *container, pid_t pid)
{
	bool exactly = is_exactly(container, search->query);

	if (!container_matches(container, search->query) || (search->exactly && !exactly))
		return 0;
	/* A complete match takes precedence over IDs that merely begin with the query. */
	if (exactly && !search->exactly) {
		search->exactly = true;
		search->count = 0;
	}
	for (size_t i = 0; i < search->count; i++)
		if (!strcmp(search->matches[i].container.id, container->id))
			return 0;
	if (array_reserve(&search->matches, &search->room, search->count + 1, sizeof(*search->matches)))
		return -ENOMEM;
	search->matches[search->count++] = (struct match){.container = *container, .pid = pid};
	return 0;
}

/* Remembers a text. Returns 1 for a new text, 0 for a known one, or -ENOMEM. */
static int see(struct search *search, const char *text)
{
	bool fresh = false;
	char *copy;

	if (intern_find(&search->seen, &text) != INTERN_NONE)
		return 0;
	copy = strdup(text);
	if (copy && intern_add(&search->seen, &copy, &fresh) != INTERN_NONE)
		return 1;
	free(copy);
	return -ENOMEM;
}

static int visit_process(const struct scan_process *process, void *arg)
{
	struct container container;
	struct cgroup_line line;
	char *text;
	int err;

	/* A process may have ended since the scan. A kernel thread cannot be in a container. */
	if (process->kernel_thread || cgroup_read_text(process->pid, &text))
		return 0;
	err = see(arg, text);
	if (err <= 0) {
		free(text);
		return err;
	}
	err = 0;
	for (const char *rest = text; !err && cgroup_next_line(&rest, &line);)
		for (size_t at = 0; !err && next_container(line.path, line.path_len, &at, &container);)
			err = add_match(arg, &container, process->pid);
	free(text);
	return err;
}

static int visit_stored(const struct container *container, const char *cgroup, void *arg)
{
	(void)cgroup;
	return add_match(arg, container, 0);
}

/* Finds the container's group: in v2 if that is mounted, else in the first v1 hierarchy that knows the container. */
static int group_of(const struct match *match, struct cgroup *group, struct error *error)
{
	struct cgroup_mounts mounts = {0};
	struct container container;
	struct cgroup_line line;
	char *text = NULL;
	int err = cgroup_mounts_read(&mounts), found = -ENOENT;

	err = err ?: cgroup_read_text(match->pid, &text);
	if (err)
		goto done;
	error_set(
		error, -ENOENT,
		"container %s (%s): no cgroup hierarchy that knows it is mounted here; when pybpf runs in a container, "
		"start that with `-v /sys/fs/cgroup:/sys/fs/cgroup:ro --cgroupns=host`",
		match->container.name, match->container.id);
	for (size_t i = 0; i < mounts.count && found; i++) {
		for (const char *rest = text; found && cgroup_next_line(&rest, &line);) {
			size_t at = 0;

			if (!cgroup_matches_line(&mounts.mounts[i], &line))
				continue;
			while (next_container(line.path, line.path_len, &at, &container)) {
				if (strcmp(container.id, match->container.id) != 0)
					continue;
				found = cgroup_locate(&mounts, &line, at, group, error);
				break;
			}
		}
	}
done:
	if (err)
		error_set(error, err, "container %s (%s): cannot read the cgroups of its process %d: %s",
			  match->container.name, match->container.id, match->pid, strerror(-err));
	free(text);
	cgroup_mounts_free(&mounts);
	return err ?: found;
}

static int say_many(const struct search *search, struct error *error)
{
	error_set(error, -ENOTUNIQ, "container %s: %zu match it: ", search->query, search->count);
	for (size_t i = 0; i < search->count && i < MATCHES_SHOWN; i++) {
		const struct container *container = &search->matches[i].container;

		error_append(error, "%s%.12s%s (%s, %s)", i ? "; " : "", container->id,
			     strlen(container->id) > 12 ? "..." : "", container->name, container->runtime);
	}
	error_append(error, "%s; give more of the ID", search->count > MATCHES_SHOWN ? "; ..." : "");
	return error->code;
}

/* Reports that the query matches no container with a process, and whether a runtime knows one without processes. */
static int say_none(struct search *search, struct error *error)
{
	size_t unfinished;
	int err = state_each(visit_stored, search, &unfinished);

	err = err ?: state_each_stored(visit_stored, search);
	if (err)
		return err;
	if (search->count) {
		const struct container *container = &search->matches[0].container;
		bool own_one = !strcmp(container->runtime, "crun") || !strcmp(container->runtime, "runc");

		return error_set(error, -ENODATA, "container %s (%s, %s): it has no process%s", container->name,
				 container->id, container->runtime,
				 own_one ? " in a cgroup of its own" : ": start it first");
	}
	if (strlen(search->query) < CONTAINER_PREFIX_MIN)
		error_set(error, -ENOENT,
			  "container %s: none has this name, and an ID takes %d characters at least; see `pybpf ps`",
			  search->query, CONTAINER_PREFIX_MIN);
	else
		error_set(error, -ENOENT,
			  "container %s: no running container has this name or an ID that begins so; see `pybpf ps`",
			  search->query);
	return -ENOENT;
}

int container_find(const char *query, struct container *out, struct cgroup *group, struct error *error)
{
	struct search search = {.query = query, .seen = INTERN_INIT(sizeof(char *), INTERN_TEXT)};
	int err;

	error_clear(error);
	own_refresh();
	err = scan_each_process(visit_process, &search, NULL);
	if (!err && !search.count) {
		err = say_none(&search, error);
	} else if (!err && search.count > 1) {
		err = say_many(&search, error);
	} else if (!err) {
		*out = search.matches[0].container;
		err = group_of(&search.matches[0], group, error);
	}
	if (!err)
		error_clear(error);
	else if (!error->code)
		error_set(error, err, "container %s: cannot look for it: %s", query, strerror(-err));
	for (uint32_t i = 0; i < search.seen.count; i++)
		free(*(char **)intern_item(&search.seen, i));
	intern_free(&search.seen);
	free(search.matches);
	return err;
}

// SPDX-License-Identifier: Apache-2.0
/* Finds the containers that a user means by a name, a pattern or an ID. */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/intern.h"
#include "base/scan.h"
#include "container/internal.h"
#include "container/state.h"

#define MATCHES_SHOWN 8
/* Running containers that an error names. */
#define OTHERS_SHOWN 12
#define NEAR_SHOWN   3
/* More edits than two names have characters. */
#define FAR 1024

bool container_is_pattern(const char *query)
{
	return strpbrk(query, "*?[") != NULL;
}

/* Returns the query without "RUNTIME:" before it, or NULL when that is another runtime than the container's. */
static const char *of_runtime(const struct container *container, const char *query)
{
	const char *colon = strchr(query, ':');

	if (!colon)
		return query;
	return strlen(container->runtime) == (size_t)(colon - query) &&
			       !strncmp(container->runtime, query, colon - query)
		       ? colon + 1
		       : NULL;
}

static bool is_exactly(const struct container *container, const char *query)
{
	const char *slash = strchr(container->name, '/');

	/* nspawn's and LXC's names may have colons. */
	if (!strcmp(container->id, query) || !strcmp(container->name, query))
		return true;
	query = of_runtime(container, query);
	if (!query)
		return false;
	if (container_is_pattern(query))
		return !fnmatch(query, container->name, 0) || (slash && !fnmatch(query, slash + 1, 0)) ||
		       !fnmatch(query, container->id, 0);
	return !strcmp(container->id, query) || !strcmp(container->name, query) || (slash && !strcmp(slash + 1, query));
}

bool container_matches(const struct container *container, const char *query)
{
	const char *id = of_runtime(container, query);

	return is_exactly(container, query) ||
	       (id && strlen(id) >= CONTAINER_PREFIX_MIN && !strncmp(container->id, id, strlen(id)));
}

struct match {
	struct container container;
	pid_t pid;
	size_t rank; /* of a container that does not match, see rank() */
};

struct search {
	struct container_cache *cache;
	const char *query;
	struct match *matches;
	size_t count, room;
	struct match *others; /* running containers that do not match */
	size_t nr_others, others_room;
	bool exactly;       /* all matches are exact */
	struct intern seen; /* char *: each /proc/PID/cgroup; all processes of a container have the same */
};

/* Adds to a list, unless the container is in it: of two runtimes, each may have one with the same ID. */
static int add_to(struct match **list, size_t *count, size_t *room, const struct container *container, pid_t pid)
{
	for (size_t i = 0; i < *count; i++) {
		const struct container *known = &(*list)[i].container;

		if (!strcmp(known->id, container->id) && !strcmp(known->runtime, container->runtime))
			return 0;
	}
	if (array_reserve(list, room, *count + 1, sizeof(**list)))
		return -ENOMEM;
	(*list)[(*count)++] = (struct match){.container = *container, .pid = pid};
	return 0;
}

static int add_match(struct search *search, const struct container *container, pid_t pid)
{
	bool exactly = is_exactly(container, search->query);

	if (!container_matches(container, search->query))
		return pid ? add_to(&search->others, &search->nr_others, &search->others_room, container, pid) : 0;
	if (search->exactly && !exactly)
		return 0;
	/* A complete match takes precedence over IDs that merely begin with the query. */
	if (exactly && !search->exactly) {
		search->exactly = true;
		search->count = 0;
	}
	return add_to(&search->matches, &search->count, &search->room, container, pid);
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
	struct search *search = arg;
	struct container container;
	struct cgroup_line line;
	char *text;
	int err;

	/* A process may have ended since the scan. A kernel thread cannot be in a container. */
	if (process->kernel_thread || cgroup_read_text(process->pid, &text))
		return 0;
	err = see(search, text);
	if (err <= 0) {
		free(text);
		return err;
	}
	err = 0;
	for (const char *rest = text; !err && cgroup_next_line(&rest, &line);)
		for (size_t at = 0;
		     !err && container_next(search->cache, line.path, line.path_len, &at, process->pid, &container);)
			err = add_match(search, &container, process->pid);
	free(text);
	return err;
}

static int visit_stored(const struct container *container, const char *cgroup, void *arg)
{
	(void)cgroup;
	return add_match(arg, container, 0);
}

/* Finds the container's group: in v2 if that is mounted, else in the first v1 hierarchy that knows the container. */
static int group_of(const struct container_cache *cache, const struct match *match, struct cgroup *group,
		    struct error *error)
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
			while (container_next(cache, line.path, line.path_len, &at, match->pid, &container)) {
				if (strcmp(container.id, match->container.id) != 0 ||
				    strcmp(container.runtime, match->container.runtime) != 0)
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

		error_append(error, "%s%.*s%s (%s, %s)", i ? "; " : "", CONTAINER_SHORT_ID, container->id,
			     strlen(container->id) > CONTAINER_SHORT_ID ? "..." : "", container->name,
			     container->runtime);
	}
	error_append(error, "%s; give more of the ID, or RUNTIME:NAME", search->count > MATCHES_SHOWN ? "; ..." : "");
	return error->code;
}

/* Returns the edits (characters added, removed or replaced) that lead from one text to the other. */
static size_t distance(const char *a, const char *b)
{
	size_t row[sizeof(((struct container *)NULL)->name) + 1], len = strlen(b);

	for (size_t j = 0; j <= len; j++)
		row[j] = j;
	for (size_t i = 0; a[i]; i++) {
		size_t diagonal = row[0];

		row[0] = i + 1;
		for (size_t j = 0; j < len; j++) {
			size_t above = row[j + 1], best = diagonal + (a[i] != b[j]);

			best = row[j] + 1 < best ? row[j] + 1 : best;
			row[j + 1] = above + 1 < best ? above + 1 : best;
			diagonal = above;
		}
	}
	return row[len];
}

/*
 * Returns how far the container's name is from the query: the edits between them for a name that is near, FAR and more
 * for others.
 */
static size_t rank(const struct container *container, const char *query)
{
	const char *slash = strchr(container->name, '/'), *name = slash ? slash + 1 : container->name;
	const char *colon = strchr(query, ':');
	size_t edits;

	query = colon ? colon + 1 : query;
	edits = distance(query, name);
	if (query[0] &&
	    (strcasestr(container->name, query) || strcasestr(query, name) || edits <= (strlen(query) > 4 ? 2 : 1)))
		return edits;
	return FAR + edits;
}

static int by_rank(const void *a, const void *b)
{
	const struct match *one = a, *other = b;

	return one->rank != other->rank ? (one->rank < other->rank ? -1 : 1)
					: strcmp(one->container.name, other->container.name);
}

/* Names the containers that run: those with a name near the query's, or all if none is near. */
static void list_others(const struct search *search, struct error *error)
{
	size_t shown = 0, most;
	bool near;

	for (size_t i = 0; i < search->nr_others; i++)
		search->others[i].rank = rank(&search->others[i].container, search->query);
	if (search->nr_others)
		qsort(search->others, search->nr_others, sizeof(*search->others), by_rank);
	near = search->nr_others && search->others[0].rank < FAR;
	most = near ? NEAR_SHOWN : OTHERS_SHOWN;
	for (; shown < search->nr_others && shown < most && near == (search->others[shown].rank < FAR); shown++)
		error_append(error, "%s%s (%s)",
			     shown  ? ", "
			     : near ? "; did you mean "
				    : "; running are ",
			     search->others[shown].container.name, search->others[shown].container.runtime);
	if (near)
		error_append(error, "?");
	else if (search->nr_others > shown)
		error_append(error, " and %zu more; see `pybpf ps`", search->nr_others - shown);
	else if (!shown)
		error_append(error, "; no container that pybpf recognizes is running, see `pybpf doctor`");
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
	error_set(error, -ENOENT, "container %s: ", search->query);
	if (container_is_pattern(search->query))
		error_append(error, "no running container has a name like that");
	else if (strlen(search->query) < CONTAINER_PREFIX_MIN)
		error_append(error, "no running container has this name, and an ID takes %d characters at least",
			     CONTAINER_PREFIX_MIN);
	else
		error_append(error, "no running container has this name or an ID that begins so");
	list_others(search, error);
	return -ENOENT;
}

/* Finds the groups of the matches, without those of containers that have ended meanwhile. */
static int find_groups(const struct search *search, struct container_found *out, size_t room, size_t *count,
		       struct error *error)
{
	int err = 0, last = 0;

	for (size_t i = 0; i < search->count && *count < room; i++) {
		err = group_of(search->cache, &search->matches[i], &out[*count].group, error);
		if (err) {
			last = err;
			continue;
		}
		out[(*count)++].container = search->matches[i].container;
	}
	return *count ? 0 : last;
}

static void free_search(struct search *search)
{
	for (uint32_t i = 0; i < search->seen.count; i++)
		free(*(char **)intern_item(&search->seen, i));
	intern_free(&search->seen);
	free(search->matches);
	free(search->others);
}

int container_find(struct container_cache *cache, const char *query, struct container_found *out, size_t room,
		   size_t *count, struct error *error)
{
	struct search search = {.cache = cache, .query = query, .seen = INTERN_INIT(sizeof(char *), INTERN_TEXT)};
	int err;

	*count = 0;
	error_clear(error);
	container_refresh_own(cache);
	err = scan_each_process(visit_process, &search, NULL);
	if (!err && !search.count)
		err = say_none(&search, error);
	else if (!err && search.count > 1 && !container_is_pattern(query))
		err = say_many(&search, error);
	else if (!err && search.count > room)
		err = error_set(error, -E2BIG, "container %s: %zu match it, and %zu are the most that pybpf takes",
				query, search.count, room);
	else if (!err)
		err = find_groups(&search, out, room, count, error);
	if (!err)
		error_clear(error);
	else if (!error->code)
		error_set(error, err, "container %s: cannot look for it: %s", query, strerror(-err));
	free_search(&search);
	return err;
}

static void count_name(const struct match *match, struct container_names *out)
{
	const bool nameless = container_is_nameless(&match->container);

	out->containers++;
	out->nameless += nameless;
	if (nameless && !out->example[0])
		snprintf(out->example, sizeof(out->example), "%.12s (%s)", match->container.id,
			 match->container.runtime);
}

int container_count_names(struct container_cache *cache, struct container_names *out)
{
	/* No name matches it: all running containers are others. */
	struct search search = {.cache = cache, .query = "/", .seen = INTERN_INIT(sizeof(char *), INTERN_TEXT)};
	int err;

	*out = (struct container_names){.containers = 0};
	container_refresh_own(cache);
	err = scan_each_process(visit_process, &search, NULL);
	for (size_t i = 0; i < search.nr_others; i++)
		count_name(&search.others[i], out);
	snprintf(out->root, sizeof(out->root), "%s", state_get_root());
	free_search(&search);
	return err;
}

// SPDX-License-Identifier: Apache-2.0
/* Parses the mounts of cgroup hierarchies and /proc/PID/cgroup, and finds the directories of groups. */
#include "container/cgroup.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/procfs.h"
#include "container/mountinfo.h"

#define CGROUP_MAX (256 * 1024)
/* Hybrid hosts have 15 hierarchies. */
#define MOUNTS_MAX 64

/* Returns whether path is dir or below it. */
static bool is_below(const char *path, size_t len, const char *dir)
{
	size_t dir_len = strlen(dir);

	if (dir_len == 1)
		return len && path[0] == '/';
	return len >= dir_len && !memcmp(path, dir, dir_len) && (len == dir_len || path[dir_len] == '/');
}

static bool in_list(const char *list, size_t len, const char *name)
{
	size_t name_len = strlen(name);

	for (const char *p = list, *end = list + len; p < end;) {
		const char *comma = memchr(p, ',', end - p);
		size_t n = (comma ?: end) - p;

		if (n == name_len && !memcmp(p, name, n))
			return true;
		p += n + 1;
	}
	return false;
}

/* Copies the controllers among a v1 mount's options (cgroup1_show_options(), kernel/cgroup/cgroup-v1.c). */
static void take_controllers(char *options, char *out, size_t size)
{
	static const char others[] = "rw,ro,noprefix,xattr,clone_children,cpuset_v2_mode,favordynmods,seclabel";
	char *saved;
	size_t len = 0;

	out[0] = '\0';
	for (char *option = strtok_r(options, ",", &saved); option; option = strtok_r(NULL, ",", &saved)) {
		if (in_list(others, strlen(others), option) || !strncmp(option, "release_agent=", 14))
			continue;
		if (len < size)
			len += snprintf(out + len, size - len, "%s%s", len ? "," : "", option);
	}
}

/* Order in which hierarchies are searched for a group, lowest first: v2, then v1 by controller. */
static int rank(const struct cgroup_mount *mount)
{
	static const char *const order[] = {"memory", "pids", "cpu", "freezer", "devices", "blkio"};
	const int last = sizeof(order) / sizeof(order[0]);

	if (!mount->v1)
		return -1;
	for (int i = 0; i < last; i++)
		if (in_list(mount->controllers, strlen(mount->controllers), order[i]))
			return i;
	return strncmp(mount->controllers, "name=", 5) ? last : last + 1;
}

static int by_rank(const void *a, const void *b)
{
	return rank(a) - rank(b);
}

/*
 * Returns the entry for a mount at this point, or NULL when there is no room. It replaces an earlier mount at the same
 * point, which the new one hides.
 */
static struct cgroup_mount *place_for(struct cgroup_mounts *mounts, const char *point)
{
	for (size_t i = 0; i < mounts->count; i++) {
		if (!strcmp(mounts->mounts[i].point, point)) {
			free(mounts->mounts[i].root);
			free(mounts->mounts[i].point);
			return &mounts->mounts[i];
		}
	}
	return mounts->count < MOUNTS_MAX ? &mounts->mounts[mounts->count++] : NULL;
}

int cgroup_mounts_parse(char *text, struct cgroup_mounts *out)
{
	struct mountinfo mount;

	*out = (struct cgroup_mounts){.mounts = calloc(MOUNTS_MAX, sizeof(*out->mounts))};
	if (!out->mounts)
		return -ENOMEM;
	while (mountinfo_next(&text, &mount)) {
		struct cgroup_mount *place;

		if (strcmp(mount.type, "cgroup") && strcmp(mount.type, "cgroup2"))
			continue;
		place = place_for(out, mount.point);
		if (!place)
			break;
		*place = (struct cgroup_mount){
			.v1 = !mount.type[6], .root = strdup(mount.root), .point = strdup(mount.point)};
		if (place->v1)
			take_controllers(mount.options, place->controllers, sizeof(place->controllers));
		if (!place->root || !place->point) {
			cgroup_mounts_free(out);
			return -ENOMEM;
		}
	}
	qsort(out->mounts, out->count, sizeof(*out->mounts), by_rank);
	return 0;
}

int cgroup_mounts_read(struct cgroup_mounts *out)
{
	char *text;
	int err = mountinfo_read(getpid(), &text);

	*out = (struct cgroup_mounts){0};
	if (err)
		return err;
	err = cgroup_mounts_parse(text, out);
	free(text);
	return err;
}

void cgroup_mounts_free(struct cgroup_mounts *mounts)
{
	for (size_t i = 0; i < mounts->count; i++) {
		free(mounts->mounts[i].root);
		free(mounts->mounts[i].point);
	}
	free(mounts->mounts);
	*mounts = (struct cgroup_mounts){0};
}

/* Writes the mounts as "/sys/fs/cgroup/unified, /sys/fs/cgroup/memory (memory)". */
static void list_mounts(const struct cgroup_mounts *mounts, char *out, size_t size)
{
	size_t len = 0;

	snprintf(out, size, "none");
	for (size_t i = 0; i < mounts->count && len < size; i++) {
		const struct cgroup_mount *mount = &mounts->mounts[i];

		len += snprintf(out + len, size - len, "%s%s%s%s%s", i ? ", " : "", mount->point, mount->v1 ? " (" : "",
				mount->controllers, mount->v1 ? ")" : "");
	}
}

/*
 * Fills *out for a directory below the mount. Returns 0, -ENOTSUP in a v1 hierarchy without controllers, or another
 * negative errno.
 */
static int fill(const struct cgroup_mount *mount, const char *directory, struct cgroup *out)
{
	const char *rest = directory + (mount->point[1] ? strlen(mount->point) : 0);
	struct stat st;

	*out = (struct cgroup){.v1 = mount->v1};
	if (stat(directory, &st))
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	out->id = st.st_ino;
	if ((size_t)snprintf(out->path, sizeof(out->path), "%s%s", mount->root[1] ? mount->root : "", rest) >=
		    sizeof(out->path) ||
	    (size_t)snprintf(out->directory, sizeof(out->directory), "%s", directory) >= sizeof(out->directory))
		return -ENAMETOOLONG;
	if (!out->path[0])
		strcpy(out->path, "/");
	if (mount->v1)
		snprintf(out->controller, sizeof(out->controller), "%.*s", (int)strcspn(mount->controllers, ","),
			 mount->controllers);
	return mount->v1 && !strncmp(mount->controllers, "name=", 5) ? -ENOTSUP : 0;
}

/* Returns the mount that contains a directory, whose path has no links, or NULL. */
static const struct cgroup_mount *mount_of(const struct cgroup_mounts *mounts, const char *directory)
{
	const struct cgroup_mount *found = NULL;

	for (size_t i = 0; i < mounts->count; i++) {
		const struct cgroup_mount *mount = &mounts->mounts[i];

		if (is_below(directory, strlen(directory), mount->point) &&
		    (!found || strlen(mount->point) > strlen(found->point)))
			found = mount;
	}
	return found;
}

/*
 * Fills *out for a path inside the hierarchy of one mount. Returns 0, -ENOENT when it does not exist, or another
 * negative errno.
 */
static int fill_inside(const struct cgroup_mounts *mounts, const struct cgroup_mount *mount, const char *path,
		       size_t len, struct cgroup *out)
{
	char wanted[PATH_MAX], real[PATH_MAX];
	size_t skip = mount->root[1] ? strlen(mount->root) : 0;

	if (!is_below(path, len, mount->root))
		return -ENOENT;
	if ((size_t)snprintf(wanted, sizeof(wanted), "%s/%.*s", mount->point, (int)(len - skip), path + skip) >=
	    sizeof(wanted))
		return -ENAMETOOLONG;
	if (!realpath(wanted, real))
		return -errno;
	return mount_of(mounts, real) == mount ? fill(mount, real, out) : -ENOENT;
}

static int say_resolve(int err, const struct cgroup_mounts *mounts, const char *path, bool exists,
		       const struct cgroup *found, struct error *error)
{
	int code = err == -ENOENT && exists ? -EXDEV : err;
	char places[1024];

	list_mounts(mounts, places, sizeof(places));
	if (!mounts->count)
		error_set(error, code,
			  "cgroup %s: no cgroup hierarchy is mounted here; in a container, give it "
			  "`-v /sys/fs/cgroup:/sys/fs/cgroup:ro --cgroupns=host`",
			  path);
	else if (err == -ENOTDIR)
		error_set(error, code, "cgroup %s: it is a file; a cgroup is a directory", path);
	else if (err == -ENOTSUP)
		error_set(error, code,
			  "cgroup %s: it is in the hierarchy %s, which has no controller; name the group in another "
			  "one: %s",
			  path, found->controller, places);
	else if (err == -ENOENT && exists)
		error_set(error, code, "cgroup %s: it is outside the cgroup hierarchies, which are mounted at %s", path,
			  places);
	else if (err == -ENOENT)
		error_set(error, code,
			  "cgroup %s: there is none of that name in the hierarchies, which are mounted at %s", path,
			  places);
	else
		error_set(error, code, "cgroup %s: %s", path, strerror(-err));
	return code;
}

int cgroup_resolve(const struct cgroup_mounts *mounts, const char *path, struct cgroup *out, struct error *error)
{
	const struct cgroup_mount *mount;
	char real[PATH_MAX], inside[PATH_MAX];
	bool exists = realpath(path, real);
	int err = exists || errno == ENOTDIR ? -ENOENT : -errno;

	*out = (struct cgroup){.id = 0};
	error_clear(error);
	mount = exists ? mount_of(mounts, real) : NULL;
	if (mount) {
		err = fill(mount, real, out);
		return err ? say_resolve(err, mounts, path, true, out, error) : 0;
	}
	if (path[0] &&
	    (size_t)snprintf(inside, sizeof(inside), "%s%s", path[0] == '/' ? "" : "/", path) < sizeof(inside)) {
		for (size_t i = 0; i < mounts->count; i++) {
			int found = fill_inside(mounts, &mounts->mounts[i], inside, strlen(inside), out);

			if (!found)
				return 0;
			if (found != -ENOENT)
				err = found;
		}
	}
	return say_resolve(err, mounts, path, exists, out, error);
}

bool cgroup_find_path(const struct cgroup_mounts *mounts, const char *directory, char *out, size_t size)
{
	const struct cgroup_mount *mount = mount_of(mounts, directory);

	if (!mount)
		return false;
	return (size_t)snprintf(out, size, "%s%s", mount->root[1] ? mount->root : "",
				directory + (mount->point[1] ? strlen(mount->point) : 0)) < size;
}

bool cgroup_next_line(const char **text, struct cgroup_line *out)
{
	static const char deleted[] = " (deleted)";

	while (**text) {
		const char *line = *text, *end = line + strcspn(line, "\n");
		const char *first = memchr(line, ':', end - line);
		const char *second = first ? memchr(first + 1, ':', end - first - 1) : NULL;

		*text = *end ? end + 1 : end;
		if (!second || second[1] != '/')
			continue;
		*out = (struct cgroup_line){.v1 = second != first + 1,
					    .controllers = first + 1,
					    .controllers_len = second - first - 1,
					    .path = second + 1,
					    .path_len = end - second - 1};
		if (out->path_len > strlen(deleted) && !memcmp(end - strlen(deleted), deleted, strlen(deleted)))
			out->path_len -= strlen(deleted);
		return true;
	}
	return false;
}

bool cgroup_matches_line(const struct cgroup_mount *mount, const struct cgroup_line *line)
{
	char first[sizeof(mount->controllers)];

	if (mount->v1 != line->v1)
		return false;
	snprintf(first, sizeof(first), "%.*s", (int)strcspn(mount->controllers, ","), mount->controllers);
	return !mount->v1 || in_list(line->controllers, line->controllers_len, first);
}

int cgroup_locate(const struct cgroup_mounts *mounts, const struct cgroup_line *line, size_t path_len,
		  struct cgroup *out, struct error *error)
{
	int err = -ENOENT;

	for (size_t i = 0; i < mounts->count && err == -ENOENT; i++)
		if (cgroup_matches_line(&mounts->mounts[i], line))
			err = fill_inside(mounts, &mounts->mounts[i], line->path, path_len, out);
	if (err)
		error_set(error, err,
			  "the directory of cgroup %.*s is in no mount of its hierarchy%s: %s; when pybpf runs in a "
			  "container, start that with `-v /sys/fs/cgroup:/sys/fs/cgroup:ro --cgroupns=host`",
			  (int)path_len, line->path,
			  path_len > 3 && !memcmp(line->path, "/../", 4)
				  ? ", as pybpf is in a cgroup namespace of its own"
				  : "",
			  strerror(-err));
	return err;
}

int cgroup_read_text(pid_t pid, char **text)
{
	return procfs_read(procfs_task(pid, NULL) ?: pid, "cgroup", CGROUP_MAX, text, NULL);
}

bool cgroup_holds(const struct cgroup *group, const char *text)
{
	struct cgroup_line line;

	while (cgroup_next_line(&text, &line))
		if (line.v1 == group->v1 &&
		    (!line.v1 || in_list(line.controllers, line.controllers_len, group->controller)))
			return is_below(line.path, line.path_len, group->path);
	return false;
}

int cgroup_check_hierarchy(const struct cgroup *groups, size_t count, struct error *error)
{
	for (size_t i = 1; i < count; i++) {
		const struct cgroup *a = &groups[0], *b = &groups[i];

		if (a->v1 == b->v1 && !strcmp(a->controller, b->controller))
			continue;
		return error_set(
			error, -EXDEV,
			"cgroups %s and %s are in two hierarchies (%s and %s), of which the kernel's filter can follow "
			"one; "
			"give groups of one, or make two runs",
			a->directory, b->directory, a->v1 ? a->controller : "v2", b->v1 ? b->controller : "v2");
	}
	return 0;
}

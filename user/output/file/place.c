// SPDX-License-Identifier: Apache-2.0
/* Walks a path by descriptors to the folder in which an output file belongs, past no stranger's links. */
#include "output/file/place.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

/* The number of symbolic links that the kernel follows: path_resolution(7). */
#define LINKS_MOST 40

struct walk {
	const struct caller *caller;
	struct output_place *place; /* its folder is the one that the walk has reached */
	char rest[2 * PATH_MAX];    /* the rest of the path, from that folder on */
	unsigned links;
	struct error *error;
};

/* Replaces the folder that the walk has reached. */
static int step_to(struct walk *w, int folder)
{
	if (folder < 0)
		return -errno;
	close(w->place->folder);
	w->place->folder = folder;
	return 0;
}

/* Returns whether a stranger put the thing into a folder in which others than its owner may create files. */
static bool put_by_stranger(const struct caller *caller, const struct stat *folder, const struct stat *thing)
{
	return !caller_trusts(caller, thing->st_uid) && thing->st_uid != folder->st_uid &&
	       folder->st_mode & (S_IWGRP | S_IWOTH);
}

/*
 * Checks the folders above one that the walk did not reach by names. A folder that cannot be read ends the check.
 */
static int look_above(struct walk *w)
{
	int at = fcntl(w->place->folder, F_DUPFD_CLOEXEC, 0), parent;
	struct stat below, above;
	bool top = false;

	if (at < 0 || fstat(at, &below)) {
		int err = -errno;

		if (at >= 0)
			close(at);
		return err;
	}
	while (!top && !w->place->planted) {
		parent = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		close(at);
		at = parent;
		if (at < 0 || fstat(at, &above))
			break;
		w->place->planted = put_by_stranger(w->caller, &above, &below);
		top = above.st_dev == below.st_dev && above.st_ino == below.st_ino;
		below = above;
	}
	if (at >= 0)
		close(at);
	return 0;
}

/* Puts the target of a link before the rest of the path. */
static int prepend(struct walk *w, const char *text, const char *after)
{
	char joined[sizeof(w->rest)];

	if (snprintf(joined, sizeof(joined), "%s%s", text, after) >= (int)sizeof(joined))
		return -ENAMETOOLONG;
	memcpy(w->rest, joined, strlen(joined) + 1);
	return *text == '/' ? step_to(w, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)) : 0;
}

/* Returns whether the walk is in the folder of this process's descriptors (/proc/self/fd), by whatever path. */
static bool among_descriptors(const struct walk *w)
{
	int own = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat a, b;
	bool same = own >= 0 && !fstat(own, &a) && !fstat(w->place->folder, &b) && a.st_dev == b.st_dev &&
		    a.st_ino == b.st_ino;

	if (own >= 0)
		close(own);
	return same;
}

/* Follows a link of procfs. Its target may have no path, so the kernel has to follow it. */
static int follow_in_proc(struct walk *w, const char *name, const char *after, bool *arrived)
{
	struct output_place *place = w->place;
	struct stat status;

	if (!arrived) {
		memmove(w->rest, after, strlen(after) + 1);
		return step_to(w, openat(place->folder, name, O_PATH | O_DIRECTORY | O_CLOEXEC)) ?: look_above(w);
	}
	/* Checked before the opening, which may affect a device, and after it: the link may have changed. */
	if (fstatat(place->folder, name, &status, 0))
		return -errno;
	if (!S_ISREG(status.st_mode)) {
		/* O_NONBLOCK keeps the opening from blocking. */
		place->descriptor = openat(place->folder, name, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		if (place->descriptor < 0 || fstat(place->descriptor, &status))
			return -errno;
	}
	if (S_ISREG(status.st_mode))
		return error_set(w->error, -EINVAL,
				 "it is the open file of another process; give the path of the file");
	*arrived = true;
	return fcntl(place->descriptor, F_SETFL, 0) ? -errno : 0;
}

/* Follows a link. arrived: NULL if the link is not the last name of the path. */
static int follow(struct walk *w, int link, uid_t owner, const char *name, const char *after, bool *arrived)
{
	struct statfs system;
	char text[PATH_MAX];
	ssize_t length;

	if (++w->links > LINKS_MOST)
		return -ELOOP;
	if (!caller_trusts(w->caller, owner))
		return error_set(
			w->error, -EACCES,
			"the link %s belongs to user %u, who can lead it anywhere; give the path that it leads to",
			name, owner);
	if (fstatfs(link, &system))
		return -errno;
	if (system.f_type == PROC_SUPER_MAGIC)
		return follow_in_proc(w, name, after, arrived);
	length = readlinkat(link, "", text, sizeof(text));
	if (length < 0)
		return -errno;
	if (length == 0 || length == sizeof(text))
		return length ? -ENAMETOOLONG : -ENOENT;
	text[length] = '\0';
	return prepend(w, text, after);
}

/* Takes a descriptor that pybpf was started with: pybpf's own have FD_CLOEXEC, inherited ones cannot have it. */
static int take_descriptor(const char *name)
{
	int fd = atoi(name), flags = fcntl(fd, F_GETFD);

	if (flags >= 0 && !(flags & FD_CLOEXEC))
		return fcntl(fd, F_DUPFD_CLOEXEC, 0);
	errno = EBADF;
	return -1;
}

/* Opens the last name of the path; if it is a link, its target becomes the rest of the path. */
static int arrive(struct walk *w, const char *name, const char *after, bool *arrived)
{
	struct output_place *place = w->place;
	int fd = openat(place->folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), err;

	if (fd < 0 && errno != ENOENT)
		return -errno;
	if (fd >= 0 && fstat(fd, &place->status)) {
		err = -errno;
		close(fd);
		return err;
	}
	if (fd >= 0 && S_ISLNK(place->status.st_mode)) {
		if (among_descriptors(w)) {
			place->descriptor = take_descriptor(name);
			*arrived = true;
			err = place->descriptor < 0 ? -errno : 0;
		} else {
			err = follow(w, fd, place->status.st_uid, name, after, arrived);
		}
		close(fd);
		return err;
	}
	/* open(2) with O_CREAT returns the same error for "name/". */
	if (*after) {
		bool folder = fd < 0 || S_ISDIR(place->status.st_mode);

		if (fd >= 0)
			close(fd);
		return folder ? -EISDIR : -ENOTDIR;
	}
	place->there = fd;
	memcpy(place->name, name, strlen(name) + 1);
	*arrived = true;
	return fstat(place->folder, &place->folder_status) ? -errno : 0;
}

/* Steps into a name that is not the last: a folder, or a link to one. */
static int pass(struct walk *w, const char *name, const char *after)
{
	/* O_DIRECTORY triggers automounts (autofs), which O_PATH alone does not. */
	int fd = openat(w->place->folder, name, O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC), err;
	struct stat parent, status;

	if (fd >= 0) {
		if (fstat(w->place->folder, &parent) || fstat(fd, &status)) {
			err = -errno;
			close(fd);
			return err;
		}
		if (strcmp(name, "..") != 0)
			w->place->planted |= put_by_stranger(w->caller, &parent, &status);
		memmove(w->rest, after, strlen(after) + 1);
		return step_to(w, fd);
	}
	if (errno != ENOTDIR)
		return -errno;
	fd = openat(w->place->folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &status))
		err = -errno;
	else
		err = S_ISLNK(status.st_mode) ? follow(w, fd, status.st_uid, name, after, NULL) : -ENOTDIR;
	close(fd);
	return err;
}

static int walk(struct walk *w)
{
	bool arrived = false;
	int err = 0;

	while (!err && !arrived) {
		const char *from = w->rest + strspn(w->rest, "/");
		size_t length = strcspn(from, "/");
		char name[NAME_MAX + 1];

		if (length > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(name, from, length);
		name[length] = '\0';
		if (!length || ((strcmp(name, ".") == 0 || strcmp(name, "..") == 0) && !from[length]))
			return -EISDIR;
		if (from[length + strspn(from + length, "/")])
			err = pass(w, name, from + length);
		else
			err = arrive(w, name, from + length, &arrived);
	}
	return err;
}

int output_place_find(const char *path, const struct caller *caller, struct output_place *place, struct error *error)
{
	struct walk w = {.caller = caller, .place = place, .error = error};
	int err;

	*place = (struct output_place){.descriptor = -1, .folder = -1, .there = -1};
	error_clear(error);
	if (!*path)
		err = -ENOENT;
	else if (strlen(path) >= PATH_MAX)
		err = -ENAMETOOLONG;
	else {
		place->folder = open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
		memcpy(w.rest, path, strlen(path) + 1);
		err = place->folder < 0 ? -errno : *path == '/' ? 0 : look_above(&w);
		if (!err)
			err = walk(&w);
	}
	if (err) {
		output_place_close(place);
		if (!error->code)
			error_set(error, err, "%s", strerror(-err));
	}
	return err;
}

bool output_place_is_planted(const struct output_place *place, const struct caller *caller)
{
	if (place->there < 0)
		return false;
	return put_by_stranger(caller, &place->folder_status, &place->status) ||
	       (place->planted && !caller_trusts(caller, place->status.st_uid));
}

void output_place_close(struct output_place *place)
{
	if (place->folder >= 0)
		close(place->folder);
	if (place->there >= 0)
		close(place->there);
	if (place->descriptor >= 0)
		close(place->descriptor);
	place->folder = place->there = place->descriptor = -1;
}

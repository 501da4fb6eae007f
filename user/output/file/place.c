// SPDX-License-Identifier: Apache-2.0
/* Finds the folder in which an output file belongs, past no stranger's links. */
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

#include "base/path_walk.h"

struct search {
	const struct caller *caller;
	struct output_place *place;
	struct error *error;
};

/* Returns whether a stranger put the thing into a folder in which others than its owner may create files. */
static bool put_by_stranger(const struct caller *caller, const struct stat *folder, const struct stat *thing)
{
	return !caller_trusts(caller, thing->st_uid) && thing->st_uid != folder->st_uid &&
	       folder->st_mode & (S_IWGRP | S_IWOTH);
}

/*
 * Checks the folders above one that the walk did not reach by names. A folder that cannot be read ends the check.
 */
static int look_above(struct path_walk *w)
{
	int at = fcntl(w->folder, F_DUPFD_CLOEXEC, 0), parent;
	const struct search *search = w->context;
	struct output_place *place = search->place;
	struct stat below, above;
	bool top = false;

	if (at < 0 || fstat(at, &below)) {
		int err = -errno;

		if (at >= 0)
			close(at);
		return err;
	}
	while (!top && !place->planted) {
		parent = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		close(at);
		at = parent;
		if (at < 0 || fstat(at, &above))
			break;
		place->planted = put_by_stranger(search->caller, &above, &below);
		top = above.st_dev == below.st_dev && above.st_ino == below.st_ino;
		below = above;
	}
	if (at >= 0)
		close(at);
	return 0;
}

/* Returns whether the walk is in the folder of this process's descriptors (/proc/self/fd), by whatever path. */
static bool among_descriptors(const struct path_walk *w)
{
	int own = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat a, b;
	bool same =
		own >= 0 && !fstat(own, &a) && !fstat(w->folder, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;

	if (own >= 0)
		close(own);
	return same;
}

/* Takes a descriptor that pybpf was started with: pybpf's own have FD_CLOEXEC, inherited ones cannot have it. */
static int take_descriptor(struct output_place *place, const char *name)
{
	int fd = atoi(name), flags = fcntl(fd, F_GETFD);

	if (flags < 0 || flags & FD_CLOEXEC)
		return -EBADF;
	place->descriptor = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return place->descriptor < 0 ? -errno : 1;
}

/* Follows a link of procfs. Its target may have no path, so the kernel has to follow it. */
static int follow_in_proc(struct path_walk *w, const char *name)
{
	const struct search *search = w->context;
	struct output_place *place = search->place;
	struct stat status;

	if (*w->rest)
		return path_walk_move(w, openat(w->folder, name, O_PATH | O_DIRECTORY | O_CLOEXEC)) ?: look_above(w);
	/* Checked before the opening, which may affect a device, and after it: the link may have changed. */
	if (fstatat(w->folder, name, &status, 0))
		return -errno;
	if (!S_ISREG(status.st_mode)) {
		/* O_NONBLOCK keeps the opening from blocking. */
		place->descriptor = openat(w->folder, name, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		if (place->descriptor < 0 || fstat(place->descriptor, &status))
			return -errno;
	}
	if (S_ISREG(status.st_mode))
		return error_set(search->error, -EINVAL,
				 "it is the open file of another process; give the path of the file");
	return fcntl(place->descriptor, F_SETFL, 0) ? -errno : 1;
}

static int follow(struct path_walk *w, const char *name, int link, const struct stat *status)
{
	const struct search *search = w->context;
	struct statfs system;
	int err;

	if (!*w->rest && among_descriptors(w))
		return take_descriptor(search->place, name);
	if (!caller_trusts(search->caller, status->st_uid))
		return error_set(
			search->error, -EACCES,
			"the link %s belongs to user %u, who can lead it anywhere; give the path that it leads to",
			name, status->st_uid);
	if (fstatfs(link, &system))
		return -errno;
	if (system.f_type == PROC_SUPER_MAGIC)
		return follow_in_proc(w, name);
	err = path_walk_follow(w, link);
	return err > 0 ? path_walk_move(w, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)) : err;
}

static int arrive(struct path_walk *w, const char *name, int file)
{
	const struct search *search = w->context;
	struct output_place *place = search->place;

	place->there = file;
	/* open(2) with O_CREAT returns the same error for "name/". */
	if (*w->rest || !strcmp(name, "."))
		return -EISDIR;
	if (file >= 0 && fstat(file, &place->status))
		return -errno;
	memcpy(place->name, name, strlen(name) + 1);
	return fstat(w->folder, &place->folder_status) ? -errno : 1;
}

static int enter(struct path_walk *w, const char *name, int folder)
{
	const struct search *search = w->context;
	struct stat parent, status;
	int err;

	(void)name;
	if (fstat(w->folder, &parent) || fstat(folder, &status)) {
		err = -errno;
		close(folder);
		return err;
	}
	search->place->planted |= put_by_stranger(search->caller, &parent, &status);
	return path_walk_move(w, folder);
}

static int go_up(struct path_walk *w)
{
	return path_walk_move(w, openat(w->folder, "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

int output_place_find(const char *path, const struct caller *caller, struct output_place *place, struct error *error)
{
	static const struct path_walk_rules rules = {.up = go_up, .enter = enter, .link = follow, .arrive = arrive};
	struct search search = {.caller = caller, .place = place, .error = error};
	struct path_walk w = {.rules = &rules, .context = &search};
	int err;

	*place = (struct output_place){.descriptor = -1, .folder = -1, .there = -1};
	error_clear(error);
	w.folder = open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	err = w.folder < 0 ? -errno : *path == '/' ? 0 : look_above(&w);
	if (!err)
		err = path_walk(&w, path);
	place->folder = w.folder;
	if (err < 0) {
		output_place_close(place);
		if (!error->code)
			error_set(error, err, "%s", strerror(-err));
		return err;
	}
	return 0;
}

/* Opens the folder of that place. Returns a descriptor or negative errno. */
static int open_folder(const struct output_place *place)
{
	int fd = -1;

	if (place->there >= 0 || !mkdirat(place->folder, place->name, 0700))
		fd = openat(place->folder, place->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Others could put files into the folder, or have another one in the place of one within it. */
static int check_folder(int folder, struct error *error)
{
	struct stat status;

	if (fstat(folder, &status))
		return error_set(error, -errno, "%s", strerror(errno));
	if (status.st_uid && status.st_uid != geteuid())
		return error_set(error, -EACCES,
				 "it belongs to user %u, who could change what is written there; give a folder of your "
				 "own",
				 status.st_uid);
	if (status.st_mode & (S_IWGRP | S_IWOTH))
		return error_set(error, -EACCES, "others may write to it (mode %04o); `chmod go-w` ends that",
				 status.st_mode & 07777);
	return 0;
}

int output_place_open_folder(const char *path, struct error *error)
{
	struct output_place place;
	char text[PATH_MAX];
	struct caller caller;
	size_t size = strlen(path);
	int fd, err;

	while (size > 1 && path[size - 1] == '/')
		size--;
	if ((size_t)snprintf(text, sizeof(text), "%.*s", (int)size, path) >= sizeof(text))
		return error_set(error, -ENAMETOOLONG, "%s", strerror(ENAMETOOLONG));
	caller_find(&caller);
	fd = output_place_find(text, &caller, &place, error);
	if (fd)
		return fd;
	fd = open_folder(&place);
	output_place_close(&place);
	if (fd < 0)
		return error_set(error, fd, "%s", strerror(-fd));
	err = check_folder(fd, error);
	if (err)
		close(fd);
	return err ?: fd;
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

// SPDX-License-Identifier: Apache-2.0
/* Walks a path name by name, by descriptors. */
#include "base/path_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Most links that are followed, the kernel's limit: path_resolution(7). */
#define LINKS_MOST 40

int path_walk_move(struct path_walk *w, int folder)
{
	if (folder < 0)
		return -errno;
	if (w->folder >= 0)
		close(w->folder);
	w->folder = folder;
	return 0;
}

int path_walk_follow(struct path_walk *w, int link)
{
	char text[PATH_MAX], joined[sizeof(w->rest)];
	ssize_t length;

	if (++w->links > LINKS_MOST)
		return -ELOOP;
	length = readlinkat(link, "", text, sizeof(text));
	if (length < 0)
		return -errno;
	if (length == 0 || length == sizeof(text))
		return length ? -ENAMETOOLONG : -ENOENT;
	text[length] = '\0';
	if (snprintf(joined, sizeof(joined), "%s%s", text, w->rest) >= (int)sizeof(joined))
		return -ENAMETOOLONG;
	memcpy(w->rest, joined, strlen(joined) + 1);
	return *text == '/';
}

/* Takes the next name off the rest; "" if there is none. Returns 0 or -ENAMETOOLONG. */
static int take_name(struct path_walk *w, char name[NAME_MAX + 1])
{
	size_t begin = strspn(w->rest, "/"), length = strcspn(w->rest + begin, "/");

	if (length > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, w->rest + begin, length);
	name[length] = '\0';
	memmove(w->rest, w->rest + begin + length, strlen(w->rest + begin + length) + 1);
	return 0;
}

static int look_at(struct path_walk *w, const char *name, int fd)
{
	bool last = !*w->rest;
	struct stat status;
	int err;

	if (fstat(fd, &status))
		err = -errno;
	else if (S_ISLNK(status.st_mode))
		err = w->rules->link(w, name, fd, &status);
	else if (last)
		return w->rules->arrive(w, name, fd);
	else
		/* A folder here is one that may not be entered. */
		err = S_ISDIR(status.st_mode) ? -EACCES : -ENOTDIR;
	close(fd);
	return err;
}

static int step(struct path_walk *w, const char *name)
{
	int fd;

	/* "name/" is a folder. O_DIRECTORY triggers mounts on the way (autofs), which O_PATH alone does not. */
	if (*w->rest) {
		fd = openat(w->folder, name, O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0)
			return w->rules->enter(w, name, fd);
	}
	fd = openat(w->folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		return look_at(w, name, fd);
	if (errno == ENOENT && !w->rest[strspn(w->rest, "/")])
		return w->rules->arrive(w, name, -1);
	return -errno;
}

int path_walk(struct path_walk *w, const char *path)
{
	char name[NAME_MAX + 1];
	int err = 0, fd;

	if (!*path || strlen(path) >= PATH_MAX)
		return *path ? -ENAMETOOLONG : -ENOENT;
	memcpy(w->rest, path, strlen(path) + 1);
	while (!err) {
		err = take_name(w, name);
		if (err || !strcmp(name, "."))
			continue;
		if (!*name) {
			fd = openat(w->folder, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
			return fd < 0 ? -errno : w->rules->arrive(w, ".", fd);
		}
		err = strcmp(name, "..") != 0 ? step(w, name) : w->rules->up(w);
	}
	return err;
}

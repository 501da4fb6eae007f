// SPDX-License-Identifier: Apache-2.0
/* Reads which epochs are in a folder, and tells which of them are parts of others. */
#include "archive/list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"

int archive_list_add(struct archive_list *list, const struct archive_epoch *epoch)
{
	if (array_reserve(&list->epochs, &list->room, list->count + 1, sizeof(*list->epochs)))
		return -ENOMEM;
	list->epochs[list->count++] = *epoch;
	return 0;
}

/* Orders epochs by their first number; a merged one comes before its parts. */
static int compare(const void *a, const void *b)
{
	const struct archive_span *one = &((const struct archive_epoch *)a)->span;
	const struct archive_span *other = &((const struct archive_epoch *)b)->span;

	if (one->first != other->first)
		return one->first < other->first ? -1 : 1;
	if (one->last != other->last)
		return one->last > other->last ? -1 : 1;
	return one->begin_ms < other->begin_ms ? -1 : one->begin_ms > other->begin_ms;
}

/* Likewise, hour by hour. */
static int compare_hours(const void *a, const void *b)
{
	uint64_t one = archive_hour_of(a), other = archive_hour_of(b);

	return one == other ? compare(a, b) : one < other ? -1 : 1;
}

static bool is_part_of(const struct archive_epoch *epoch, const struct archive_epoch *merged)
{
	return merged && merged->span.last > merged->span.first && epoch->span.last <= merged->span.last &&
	       archive_hour_of(epoch) == archive_hour_of(merged);
}

void archive_list_sort(struct archive_list *list)
{
	const struct archive_epoch *longest = NULL;

	if (!list->count)
		return;
	/* What is merged began in one hour. Another agent's files, as of a backup, may have the same numbers. */
	qsort(list->epochs, list->count, sizeof(*list->epochs), compare_hours);
	for (size_t i = 0; i < list->count; i++) {
		struct archive_epoch *epoch = &list->epochs[i];

		epoch->is_part = is_part_of(epoch, longest);
		if (!epoch->is_part)
			longest = epoch;
	}
	qsort(list->epochs, list->count, sizeof(*list->epochs), compare);
}

/* Adds the file if it is an epoch. */
static int add_file(struct archive_list *list, int folder, const char *name)
{
	struct archive_epoch epoch = {0};
	struct stat status;

	if (!archive_name_read(name, &epoch.span))
		return 0;
	if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : -errno;
	epoch.size = (uint64_t)status.st_size;
	return S_ISREG(status.st_mode) ? archive_list_add(list, &epoch) : 0;
}

int archive_list_read(struct archive_list *list, int folder)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	*list = (struct archive_list){0};
	if (!dir) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	while (!err && (errno = 0, entry = readdir(dir)))
		err = add_file(list, folder, entry->d_name);
	if (!err && errno)
		err = -errno;
	closedir(dir);
	archive_list_sort(list);
	return err;
}

uint64_t archive_list_next_number(const struct archive_list *list)
{
	uint64_t next = 1;

	for (size_t i = 0; i < list->count; i++) {
		if (list->epochs[i].span.last >= next)
			next = list->epochs[i].span.last + 1;
	}
	return next;
}

void archive_list_free(struct archive_list *list)
{
	free(list->epochs);
	*list = (struct archive_list){0};
}

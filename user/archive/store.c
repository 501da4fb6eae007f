// SPDX-License-Identifier: Apache-2.0
/* Opens and locks a folder of epochs, and makes, names, merges and removes its files. */
#include "archive/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/merge.h"
#include "output/file/place.h"
#include "profile/saved.h"

static int lock_folder(int folder, const char *path, struct error *error)
{
	if (!flock(folder, LOCK_EX | LOCK_NB))
		return 0;
	if (errno == EWOULDBLOCK)
		return error_set(error, -EBUSY, "another agent writes to %s: end it, or give this one another --dir",
				 path);
	return error_set(error, -errno, "cannot lock %s: %s", path, strerror(errno));
}

int archive_store_open(struct archive_store *store, const char *path, struct error *error)
{
	struct error why;
	int folder = output_place_open_folder(path, &why);

	*store = (struct archive_store){.folder = folder < 0 ? -1 : folder};
	if (folder < 0)
		return error_set(error, folder, "cannot use %s: %s", path, why.text);
	return lock_folder(folder, path, error);
}

static void remove_unfinished(int folder)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(dir))) {
		if (strncmp(entry->d_name, ARCHIVE_UNFINISHED, strlen(ARCHIVE_UNFINISHED)) == 0)
			unlinkat(folder, entry->d_name, 0);
	}
	closedir(dir);
}

int archive_store_begin(struct archive_store *store, struct error *error)
{
	int err;

	remove_unfinished(store->folder);
	err = archive_list_read(&store->list, store->folder);
	return err ? error_set(error, err, "cannot read the folder of --dir: %s", strerror(-err)) : 0;
}

void archive_store_close(struct archive_store *store)
{
	archive_list_free(&store->list);
	if (store->folder >= 0)
		close(store->folder);
	store->folder = -1;
}

int archive_store_make(const struct archive_store *store, struct archive_file *file)
{
	uint64_t random;

	file->fd = -1;
	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -errno;
	snprintf(file->name, sizeof(file->name), ARCHIVE_UNFINISHED "%016" PRIx64, random);
	file->fd = openat(store->folder, file->name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
	return file->fd < 0 ? -errno : 0;
}

void archive_store_discard(const struct archive_store *store, struct archive_file *file)
{
	if (file->fd < 0)
		return;
	unlinkat(store->folder, file->name, 0);
	close(file->fd);
	file->fd = -1;
}

int archive_store_commit(struct archive_store *store, struct archive_file *file, const struct archive_span *span)
{
	struct archive_epoch epoch = {.span = *span};
	char name[ARCHIVE_NAME_MAX];
	struct stat status = {.st_size = 0};
	int err;

	if (!span->last)
		epoch.span.first = epoch.span.last = archive_list_next_number(&store->list);
	archive_name_write(&epoch.span, name);
	err = fsync(file->fd) || fstat(file->fd, &status) ? -errno : 0;
	epoch.size = (uint64_t)status.st_size;
	/* Before it has its name: what is in the folder is in the list, whether there is memory or not. */
	err = err ?: archive_list_add(&store->list, &epoch);
	if (!err && renameat(store->folder, file->name, store->folder, name)) {
		err = -errno;
		store->list.count--;
	}
	if (err) {
		archive_store_discard(store, file);
		return err;
	}
	close(file->fd);
	file->fd = -1;
	/* Without it, a power failure could undo the new name. Other files are not concerned. */
	fsync(store->folder);
	archive_list_sort(&store->list);
	return 0;
}

int archive_store_copy(const struct profile *profile, int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0), err;
	FILE *out = copy < 0 ? NULL : fdopen(copy, "w");

	if (!out) {
		err = -errno;
		if (copy >= 0)
			close(copy);
		return err;
	}
	err = profile_save(profile, out);
	if (!err && ferror(out))
		err = -EIO;
	return fclose(out) && !err ? -errno : err;
}

/* Writes the sum of epochs in their place. */
static int write_merged(struct archive_store *store, const struct archive_span *span, bool is_apart,
			const struct profile *all, struct error *error)
{
	struct archive_file file = {.fd = -1};
	int err = archive_store_make(store, &file);

	err = err ?: archive_store_copy(all, file.fd);
	err = err ?: archive_store_commit(store, &file, span);
	archive_store_discard(store, &file);
	for (size_t i = 0; i < store->list.count && !err; i++) {
		struct archive_epoch *epoch = &store->list.epochs[i];

		if (epoch->span.first == span->first && epoch->span.last == span->last)
			epoch->is_apart = is_apart;
	}
	return err ? error_set(error, err, "cannot write merged epochs: %s", strerror(-err)) : 0;
}

static bool is_refusal(int err)
{
	return err == -EROFS || err == -EACCES || err == -EPERM;
}

/* Says that the folder refuses every change, unless that was said. Returns err. */
static int note_shut(struct archive_store *store, int err, struct error *error)
{
	if (store->is_shut)
		*error = (struct error){.code = 0};
	else
		error_set(error, err,
			  "cannot remove or merge epochs: the folder lets no file come or go (%s); it is tried again "
			  "after each epoch",
			  strerror(-err));
	store->is_shut = true;
	return err;
}

/* Makes a file and removes it. Returns the negative errno by which the folder refuses either, or 0. */
static int find_refusal(const struct archive_store *store)
{
	struct archive_file file;
	int err = archive_store_make(store, &file);

	if (!err) {
		err = unlinkat(store->folder, file.name, 0) ? -errno : 0;
		close(file.fd);
	}
	return is_refusal(err) ? err : 0;
}

/* Without memory or room it is tried again after the next start; what cannot be added up is marked by archive_load().
 */
static int merge(struct archive_store *store, const struct archive_step *step, struct archive_limits *limits,
		 struct error *error)
{
	struct archive_epoch *first = &store->list.epochs[step->first], *last = &store->list.epochs[step->last];
	const struct archive_span span = archive_span_of(first, last);
	const bool is_apart = first->is_apart;
	struct profile *all;
	/* Adding up takes long, for nothing while the folder takes no file. */
	int err = store->is_shut ? find_refusal(store) : 0;

	if (err)
		return note_shut(store, err, error);
	all = archive_load(store->folder, first, last, error);
	err = all ? write_merged(store, &span, is_apart, all, error) : error->code;
	if (all && is_refusal(err))
		note_shut(store, err, error);
	else if (all ? err : err == -ENOMEM)
		limits->merge_from = span.last + 1;
	if (all && !err)
		store->is_shut = false;
	profile_free(all);
	return err;
}

static int remove_epoch(struct archive_store *store, size_t index, struct error *error)
{
	struct archive_list *list = &store->list;
	char name[ARCHIVE_NAME_MAX];
	int err;

	archive_name_write(&list->epochs[index].span, name);
	err = unlinkat(store->folder, name, 0) ? -errno : 0;
	if (is_refusal(err) && find_refusal(store))
		return note_shut(store, err, error);
	store->is_shut = false;
	if (err && err != -ENOENT) {
		list->epochs[index].is_stuck = true;
		return error_set(error, err, "cannot remove %s: %s; the next agent tries again", name, strerror(-err));
	}
	memmove(&list->epochs[index], &list->epochs[index + 1], (list->count - index - 1) * sizeof(*list->epochs));
	list->count--;
	return 0;
}

int archive_store_retain(struct archive_store *store, struct archive_limits *limits, uint64_t now_ms,
			 struct error *error)
{
	const struct archive_step step = archive_retain(&store->list, limits, now_ms);

	if (step.kind == ARCHIVE_NOTHING)
		return 0;
	if (step.kind == ARCHIVE_REMOVE)
		return remove_epoch(store, step.first, error) ?: 1;
	return merge(store, &step, limits, error) ?: 1;
}

uint64_t archive_store_size(const struct archive_store *store)
{
	uint64_t size = 0;

	for (size_t i = 0; i < store->list.count; i++)
		size += store->list.epochs[i].size;
	return size;
}

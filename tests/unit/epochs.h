// SPDX-License-Identifier: Apache-2.0
/* A folder of epochs that are made by hand, and what an agent and a reader do with it. */
#ifndef EPOCHS_H
#define EPOCHS_H

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "profiles.h"
#include "archive/merge.h"
#include "archive/store.h"
#include "profile/edit.h"
#include "profile/saved.h"

#define MINUTE_MS 60000ull
#define HOUR_MS   (60 * MINUTE_MS)
/* The beginning of an hour of 2026. */
#define START_MS (495000 * HOUR_MS)

static char folder[] = "/tmp/pybpf-archive-XXXXXX", path[64];

static inline int make_folder(void **unused)
{
	(void)unused;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/epochs", folder);
	return 0;
}

static inline void empty(void)
{
	char name[512];
	struct dirent *entry;
	DIR *dir = opendir(path);

	while (dir && (entry = readdir(dir))) {
		snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
		unlink(name);
	}
	if (dir)
		closedir(dir);
	rmdir(path);
}

static inline int remove_folder(void **unused)
{
	(void)unused;
	empty();
	return rmdir(folder);
}

static inline void open_store(struct archive_store *store)
{
	struct error error;

	error_clear(&error);
	if (archive_store_open(store, path, &error) || archive_store_begin(store, &error))
		fail_msg("%s", error.text);
}

/* Adds an epoch of a minute. */
static inline void commit_epoch(struct archive_store *store, const struct profile *p, uint64_t begin_ms)
{
	const struct archive_span span = {.begin_ms = begin_ms, .length_ms = MINUTE_MS};
	struct archive_file file;
	FILE *out;

	assert_int_equal(archive_store_make(store, &file), 0);
	out = fdopen(dup(file.fd), "w");
	assert_non_null(out);
	assert_int_equal(profile_save(p, out), 0);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(archive_store_commit(store, &file, &span), 0);
}

/* Does all that is due. Returns the number of steps. */
static inline unsigned retain(struct archive_store *store, struct archive_limits *limits, uint64_t now_ms)
{
	struct error error;
	unsigned steps = 0;
	int done;

	while ((done = archive_store_retain(store, limits, now_ms, &error)) == 1)
		steps++;
	if (done)
		fail_msg("%s", error.text);
	return steps;
}

/* All that a reader finds in the folder. */
static inline struct profile *read_all(void)
{
	struct archive_list list;
	struct profile *all = new_profile();
	struct error error;
	int fd = open(path, O_RDONLY | O_DIRECTORY);

	assert_true(fd >= 0);
	assert_int_equal(archive_list_read(&list, fd), 0);
	for (size_t i = 0; i < list.count; i++) {
		struct profile *one;

		if (list.epochs[i].is_part)
			continue;
		one = archive_load(fd, &list.epochs[i], &list.epochs[i], &error);
		if (!one || profile_edit_add(all, one, NULL, &error))
			fail_msg("%s", error.text);
		profile_free(one);
	}
	archive_list_free(&list);
	close(fd);
	return all;
}

#endif

// SPDX-License-Identifier: Apache-2.0
/* Loads epochs one by one into one profile. */
#include "archive/merge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "profile/edit.h"
#include "profile/profile.h"
#include "profile/saved.h"

static int load_one(int folder, const char *name, struct profile **one, struct error *error)
{
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), err;
	FILE *in = fd < 0 ? NULL : fdopen(fd, "r");

	if (!in) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return error_set(error, err, "%s cannot be read: %s", name, strerror(-err));
	}
	err = profile_load_stream(in, name, one, error);
	fclose(in);
	return err;
}

/* Adds one to the sum of those before it. Returns 0 or negative errno. */
static int add_one(int folder, const struct archive_epoch *epoch, struct profile *all, bool *is_read,
		   struct error *error)
{
	struct profile *one = NULL;
	char name[ARCHIVE_NAME_MAX];
	struct error why;
	int err;

	archive_name_write(&epoch->span, name);
	err = load_one(folder, name, &one, error);
	*is_read = !err;
	if (err)
		return err;
	err = profile_edit_add(all, one, NULL, &why);
	profile_free(one);
	return err ? error_set(error, err, "%s cannot be added to those before it: %s", name, why.text) : 0;
}

struct profile *archive_load(int folder, struct archive_epoch *first, struct archive_epoch *last, struct error *error)
{
	struct profile *all = profile_new();
	bool is_read;
	int err = all ? 0 : error_set(error, -ENOMEM, "out of memory while epochs were merged");

	for (struct archive_epoch *epoch = first; epoch <= last && !err; epoch++) {
		err = add_one(folder, epoch, all, &is_read, error);
		if (!err || err == -ENOMEM)
			continue;
		epoch->is_apart = true;
		if ((!is_read || epoch == first) && epoch < last)
			epoch[1].is_apart = true;
		error_append(error, "; it is not merged with others, and stays as it is");
	}
	if (!err)
		return all;
	profile_free(all);
	return NULL;
}

struct archive_span archive_span_of(const struct archive_epoch *first, const struct archive_epoch *last)
{
	uint64_t begin_ms = UINT64_MAX, end_ms = 0;

	/* A clock that was set back has the first one begin after others. */
	for (const struct archive_epoch *epoch = first; epoch <= last; epoch++) {
		const uint64_t epoch_end_ms = epoch->span.begin_ms + epoch->span.length_ms;

		begin_ms = epoch->span.begin_ms < begin_ms ? epoch->span.begin_ms : begin_ms;
		end_ms = epoch_end_ms > end_ms ? epoch_end_ms : end_ms;
	}
	return (struct archive_span){
		.begin_ms = begin_ms,
		.length_ms = end_ms - begin_ms,
		.first = first->span.first,
		.last = last->span.last,
	};
}

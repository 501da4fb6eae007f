// SPDX-License-Identifier: Apache-2.0
/* Loads epochs one by one into one profile. */
#include "archive/merge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

int archive_load(int folder, const struct archive_epoch *epochs, size_t count, const struct profile_edit *edit,
		 struct profile *to, struct error *error)
{
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		struct profile *one = NULL;
		char name[ARCHIVE_NAME_MAX];
		struct error why;

		archive_name_write(&epochs[i].span, name);
		err = load_one(folder, name, &one, error);
		if (err)
			break;
		err = profile_edit_add(to, one, edit, &why);
		profile_free(one);
		if (err)
			error_set(error, err, "%s cannot be added to those before it: %s", name, why.text);
	}
	return err;
}

struct archive_span archive_span_of(const struct archive_epoch *first, const struct archive_epoch *last)
{
	uint64_t end = last->span.begin_ms + last->span.length_ms;

	return (struct archive_span){
		.begin_ms = first->span.begin_ms,
		.length_ms = end > first->span.begin_ms ? end - first->span.begin_ms : 0,
		.first = first->span.first,
		.last = last->span.last,
	};
}

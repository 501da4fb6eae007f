// SPDX-License-Identifier: Apache-2.0
#include "output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int output_file_open(struct output_file *file, const char *path)
{
	struct stat st;
	int fd, err;
	mode_t mask;

	memset(file, 0, sizeof(*file));
	if (!*path)
		return -ENOENT;
	/* What is no regular file (a terminal, /dev/null, a pipe) is written as it is. */
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		if (S_ISDIR(st.st_mode))
			return -EISDIR;
		file->stream = fopen(path, "we");
		return file->stream ? 0 : -errno;
	}
	/* What a link points to is replaced, not the link. */
	file->path = realpath(path, NULL);
	if (!file->path)
		file->path = strdup(path);
	if (!file->path || asprintf(&file->temporary, "%s.XXXXXX", file->path) < 0) {
		file->temporary = NULL;
		output_file_discard(file);
		return -ENOMEM;
	}
	fd = mkostemp(file->temporary, O_CLOEXEC);
	if (fd < 0) {
		err = -errno;
		free(file->temporary);
		file->temporary = NULL;
		output_file_discard(file);
		return err;
	}
	file->stream = fdopen(fd, "w");
	if (!file->stream) {
		err = -errno;
		close(fd);
		output_file_discard(file);
		return err;
	}
	/* mkstemp makes it private; a profile is an ordinary file. */
	mask = umask(0);
	umask(mask);
	fchmod(fd, 0666 & ~mask);
	return 0;
}

int output_file_commit(struct output_file *file)
{
	int err = 0;

	errno = 0;
	if (fflush(file->stream) || ferror(file->stream))
		err = errno ? -errno : -EIO;
	if (fclose(file->stream) && !err)
		err = -errno;
	file->stream = NULL;
	if (!err && file->temporary && rename(file->temporary, file->path))
		err = -errno;
	if (!err && file->temporary) {
		free(file->temporary);
		file->temporary = NULL;
	}
	output_file_discard(file);
	return err;
}

void output_file_discard(struct output_file *file)
{
	if (file->stream)
		fclose(file->stream);
	if (file->temporary)
		unlink(file->temporary);
	free(file->temporary);
	free(file->path);
	memset(file, 0, sizeof(*file));
}

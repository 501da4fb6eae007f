// SPDX-License-Identifier: Apache-2.0
#include "rights/secret_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "rights/caller.h"

/* A bundle of all authorities has some 250 KiB. */
#define FILE_MAX ((size_t)4 << 20)

/* Checks an open file before it is read. */
static int check(int fd, const char *what, const char *path, bool is_secret, struct error *error)
{
	struct caller caller;
	struct stat status;

	caller_find(&caller);
	if (fstat(fd, &status))
		return error_set(error, -errno, "cannot look at %s: %s", path, strerror(errno));
	if (!S_ISREG(status.st_mode))
		return error_set(error, -EINVAL, "%s, the file with the %s, is not a file", path, what);
	if (is_secret && status.st_mode & (S_IRWXG | S_IRWXO))
		return error_set(error, -EPERM, "others than its owner may use %s, the file with the %s: chmod 600 it",
				 path, what);
	if (is_secret && !caller_trusts(&caller, status.st_uid))
		return error_set(error, -EPERM,
				 "%s, the file with the %s, belongs to user %u, who could choose it: chown it", path,
				 what, status.st_uid);
	return 0;
}

static int read_all(int fd, const char *path, char **text, struct error *error)
{
	char *bytes = malloc(FILE_MAX + 1);
	ssize_t size = bytes ? io_read_at(fd, bytes, FILE_MAX, 0) : -ENOMEM;

	if (size < 0 || (size_t)size == FILE_MAX) {
		int err = size < 0 ? (int)size : -EFBIG;

		free(bytes);
		return error_set(error, err, "cannot read %s: %s", path, strerror(-err));
	}
	bytes[size] = '\0';
	if (strlen(bytes) != (size_t)size) {
		explicit_bzero(bytes, (size_t)size);
		free(bytes);
		return error_set(error, -EINVAL, "%s has a NUL byte, which no text has", path);
	}
	*text = realloc(bytes, (size_t)size + 1) ?: bytes;
	return 0;
}

int secret_file_read(const char *what, const char *path, bool is_secret, char **text, struct error *error)
{
	int fd, err;

	if (!path)
		return 0;
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return error_set(error, -errno, "cannot open %s, the file with the %s: %s", path, what,
				 strerror(errno));
	err = check(fd, what, path, is_secret, error);
	err = err ?: read_all(fd, path, text, error);
	close(fd);
	return err;
}

void secret_file_free(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
}

// SPDX-License-Identifier: Apache-2.0
#include "rights/secret_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "rights/caller.h"

int secret_file_check(int fd, const char *what, const char *path, bool is_secret, struct error *error)
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

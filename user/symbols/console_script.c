// SPDX-License-Identifier: Apache-2.0
/* Tells the programs that installers make in an environment's bin folder from those that people write. */
#include "symbols/console_script.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path_below.h"

/*
 * Such a program imports one function of a package, calls it and exits with its result: pip's and uv's have some 250
 * bytes, those of old setuptools 1,000, and the path of the interpreter has 256 at most.
 */
#define SIZE_MAX_BYTES 1280

static bool stat_below(int root, const char *path, struct stat *st)
{
	int fd = path_below_open(root, path, O_PATH | O_CLOEXEC);
	bool done = fd >= 0 && !fstat(fd, st);

	if (fd >= 0)
		close(fd);
	return done;
}

static bool ends_with(const char *text, size_t length, const char *end)
{
	size_t n = strlen(end);

	return length >= n && memcmp(text + length - n, end, n) == 0;
}

/* Returns whether an interpreter installs programs in the folder. */
static bool is_of_environment(int root, const char *folder, size_t length)
{
	static const char *const signs[] = {"../pyvenv.cfg", "python3", "python"};
	char path[PATH_MAX];
	struct stat st;

	/* Those that a distribution's Python in /usr/bin has for an administrator, and for each user. */
	if (ends_with(folder, length, "/usr/local/bin") || ends_with(folder, length, "/.local/bin"))
		return true;
	for (size_t i = 0; i < sizeof(signs) / sizeof(*signs); i++) {
		if (snprintf(path, sizeof(path), "%.*s/%s", (int)length, folder, signs[i]) < (int)sizeof(path) &&
		    stat_below(root, path, &st))
			return true;
	}
	return false;
}

bool console_script_may_be(const char *path)
{
	const char *slash = strrchr(path, '/');

	return *path == '/' && slash[1] && ends_with(path, (size_t)(slash - path), "/bin") &&
	       !ends_with(slash, strlen(slash), ".py");
}

bool console_script_is(int root, const char *path)
{
	struct stat st;

	return console_script_may_be(path) && stat_below(root, path, &st) && S_ISREG(st.st_mode) &&
	       st.st_size <= SIZE_MAX_BYTES && is_of_environment(root, path, (size_t)(strrchr(path, '/') - path));
}

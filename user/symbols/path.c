// SPDX-License-Identifier: Apache-2.0
/* Cuts source paths down to their importable part. */
#include "symbols/pysym.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/procfs.h"
#include "symbols/console_script.h"

static bool ends_with(const char *name, size_t len, const char *suffix)
{
	size_t n = strlen(suffix);

	return len > n && memcmp(name + len - n, suffix, n) == 0;
}

static bool is_archive(const char *name, size_t len)
{
	return ends_with(name, len, ".zip") || ends_with(name, len, ".egg") || ends_with(name, len, ".whl") ||
	       ends_with(name, len, ".pyz");
}

/* Matches "python3.11", "python2.7", "python3.13t". */
static bool is_python_lib(const char *name, size_t len)
{
	size_t i = strlen("python");

	if (len <= i || memcmp(name, "python", i) != 0 || !isdigit((unsigned char)name[i]))
		return false;
	while (i < len && (isalnum((unsigned char)name[i]) || name[i] == '.'))
		i++;
	return i == len;
}

/* Matches "lib" and "lib64", which contain the directory of the standard library. */
static bool is_lib(const char *name, size_t len)
{
	return len >= 3 && memcmp(name, "lib", 3) == 0 && strspn(name + 3, "0123456789") >= len - 3;
}

/* Matches the directories of installed packages. */
static bool is_site(const char *name, size_t len)
{
	static const char site[] = "site-packages", dist[] = "dist-packages";

	return (len == sizeof(site) - 1 && memcmp(name, site, len) == 0) ||
	       (len == sizeof(dist) - 1 && memcmp(name, dist, len) == 0);
}

/* Matches the directory of the standard library. parent: the component before it, with its slash. */
static bool is_stdlib(const char *parent, const char *name, size_t len)
{
	return parent < name && is_lib(parent, (size_t)(name - 1 - parent)) && is_python_lib(name, len);
}

/* Matches "python311.zip", which an embedded Python has in place of that directory. */
static bool is_stdlib_archive(const char *name, size_t len)
{
	static const char python[] = "python";
	const size_t begin = sizeof(python) - 1;

	return len > begin && memcmp(name, python, begin) == 0 && isdigit((unsigned char)name[begin]) &&
	       ends_with(name, len, ".zip");
}

/* Returns whether Python looks for modules in the directory name. parent: as above. */
static bool is_search_dir(const char *parent, const char *name, size_t len)
{
	return is_site(name, len) || is_stdlib(parent, name, len) || is_archive(name, len);
}

enum profile_origin pysym_origin(const char *path)
{
	static const char frozen[] = "<frozen ";
	enum profile_origin origin = strncmp(path, frozen, sizeof(frozen) - 1) == 0 ? PROFILE_STDLIB : PROFILE_OWN;
	const char *parent = path;

	for (const char *name = path, *slash; (slash = strchr(name, '/')); parent = name, name = slash + 1) {
		size_t len = (size_t)(slash - name);

		if (is_site(name, len) || ends_with(name, len, ".egg") || ends_with(name, len, ".whl"))
			origin = PROFILE_THIRD_PARTY;
		else if (is_stdlib(parent, name, len) || is_stdlib_archive(name, len))
			origin = PROFILE_STDLIB;
	}
	return origin;
}

/* Returns the rest of the path after the last directory that Python looks for modules in, or NULL. */
static const char *below_search_dir(const char *path)
{
	const char *found = NULL, *parent = path + 1;

	for (const char *name = path + 1, *slash; (slash = strchr(name, '/')); parent = name, name = slash + 1) {
		if (is_search_dir(parent, name, (size_t)(slash - name)) && slash[1])
			found = slash + 1;
	}
	return found;
}

static bool is_package(const char *root, const char *path, size_t len)
{
	char init[4096];

	return root && snprintf(init, sizeof(init), "%s%.*s/__init__.py", root, (int)len, path) < (int)sizeof(init) &&
	       access(init, F_OK) == 0;
}

/*
 * Returns the rest of the path behind a file, which is an archive of modules: a zipapp may have any name. NULL if there
 * is none.
 */
static const char *below_archive(const char *root, const char *path)
{
	size_t length = root ? strlen(root) : 0;
	char part[4096], *slash;
	struct stat st;

	if (!root || snprintf(part, sizeof(part), "%s%s", root, path) >= (int)sizeof(part) || !stat(part, &st) ||
	    errno != ENOTDIR)
		return NULL;
	while ((slash = strrchr(part + length, '/'))) {
		*slash = '\0';
		if (!stat(part, &st))
			return S_ISREG(st.st_mode) ? path + (slash - part) - length + 1 : NULL;
	}
	return NULL;
}

const char *pysym_short_path(const char *path, const char *root)
{
	const char *found, *base;

	if (path[0] == '.' && path[1] == '/' && path[2])
		return path + 2;
	if (path[0] != '/')
		return path;
	found = below_search_dir(path) ?: below_archive(root, path);
	if (found && *found)
		return found;
	base = strrchr(path, '/') + 1;
	while (base > path + 1 && is_package(root, path, (size_t)(base - 1 - path))) {
		base--;
		while (base > path && base[-1] != '/')
			base--;
	}
	return *base ? base : path;
}

bool pysym_path_needs_look(const char *path)
{
	return path[0] == '/' && !below_search_dir(path);
}

int pysym_look_at_path(pid_t pid, const char *path, struct pysym_file *out)
{
	char root[64];
	int fd;

	snprintf(root, sizeof(root), "/proc/%d/root", procfs_task(pid, NULL) ?: pid);
	fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -ESRCH;
	*out = (struct pysym_file){
		.shown = (uint32_t)(pysym_short_path(path, root) - path),
		.console_script = console_script_is(fd, path),
	};
	close(fd);
	return 0;
}

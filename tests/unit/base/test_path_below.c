// SPDX-License-Identifier: Apache-2.0
/* Each path is opened as openat2(2) opens it, where that is there; and links lead nowhere outside of the root. */
#include "base/path_below.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

static char top[] = "/tmp/pybpf-below-XXXXXX";

static void write_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	close(fd);
}

static int make_tree(void **state)
{
	static const char *const links[][2] = {
		{"file", "link"},
		{"/file", "absolute"},
		{"../../file", "up"},
		{"../outside", "out"},
		{"loop", "loop"},
		{"loop-b", "loop-a"},
		{"loop-a", "loop-b"},
		{"a/b/", "folder"},
		{"nowhere", "broken"},
		{"a/b/../b/c/.././c", "way"},
		{"/a/deep/file", "a/b/back"},
	};

	*state = mkdtemp(top);
	assert_non_null(*state);
	assert_int_equal(chdir(top), 0);
	write_file("outside");
	assert_int_equal(mkdir("root", 0700), 0);
	assert_int_equal(chdir("root"), 0);
	assert_int_equal(mkdir("a", 0700), 0);
	assert_int_equal(mkdir("a/b", 0700), 0);
	assert_int_equal(mkdir("a/deep", 0700), 0);
	write_file("file");
	write_file("a/b/c");
	write_file("a/deep/file");
	assert_int_equal(mkfifo("fifo", 0600), 0);
	for (size_t i = 0; i < sizeof(links) / sizeof(*links); i++)
		assert_int_equal(symlink(links[i][0], links[i][1]), 0);
	return 0;
}

static int remove_tree(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", top);
	return chdir("/") || system(command);
}

/* dev, inode and mode, or the error. */
static void describe(int fd, char *out, size_t size)
{
	struct stat st;

	if (fd < 0) {
		snprintf(out, size, "%s", strerror(-fd));
		return;
	}
	assert_int_equal(fstat(fd, &st), 0);
	snprintf(out, size, "%lu:%lu %x", (unsigned long)st.st_dev, (unsigned long)st.st_ino,
		 (unsigned)(fcntl(fd, F_GETFL) & (O_ACCMODE | O_PATH)));
	close(fd);
}

static void test_as_the_kernel(void **state)
{
	static const char *const paths[] = {
		"/",      "//",         "file",   "/file",    "file/",   "file/x",   "link",     "absolute",     "up",
		"out",    "loop",       "loop-a", "folder",   "folder/", "folder/c", "broken",   "a/../../file", "..",
		"../..",  "../outside", "./file", "a//b///c", "way",     "way/",     "a/b/back", "folder/back",  "none",
		"none/x", "a/none",     "fifo",   "",         "a/.",     "a/b/..",   "a/b/../",  "../up",        ".",
	};
	static const int flags[] = {O_RDONLY, O_PATH, O_RDONLY | O_NOFOLLOW, O_PATH | O_DIRECTORY,
				    O_RDONLY | O_DIRECTORY};
	int root = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char ours[256], theirs[256];

	(void)state;
	assert_true(root >= 0);
	for (size_t f = 0; f < sizeof(flags) / sizeof(*flags); f++) {
		struct open_how how = {.flags = (uint64_t)(flags[f] | O_CLOEXEC | (flags[f] & O_PATH ? 0 : O_NONBLOCK)),
				       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};

		for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
			long fd = syscall(SYS_openat2, root, paths[i], &how, sizeof(how));

			if (fd < 0 && errno == ENOSYS)
				skip();
			describe(fd < 0 ? -errno : (int)fd, theirs, sizeof(theirs));
			describe(path_below_open(root, paths[i], flags[f]), ours, sizeof(ours));
			if (strcmp(ours, theirs))
				fail_msg("%s, flags %o: %s instead of %s", paths[i], (unsigned)flags[f], ours, theirs);
		}
	}
	close(root);
}

static void test_no_link_of_procfs(void **state)
{
	int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	assert_int_equal(path_below_open(root, "/proc/self/root/etc", O_PATH), -ELOOP);
	close(root);
}

static void test_long_ways(void **state)
{
	static char path[4096];
	int root = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC), fd;

	(void)state;
	/* As many steps as a path has room for: it is refused or opened, and soon. */
	while (strlen(path) < sizeof(path) - 16)
		strcat(path, "a/../");
	strcat(path, "file");
	fd = path_below_open(root, path, O_PATH);
	assert_true(fd >= 0);
	close(fd);
	memset(path, 'x', sizeof(path) - 1);
	assert_int_equal(path_below_open(root, path, O_PATH), -ENAMETOOLONG);
	close(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_the_kernel),
		cmocka_unit_test(test_no_link_of_procfs),
		cmocka_unit_test(test_long_ways),
	};

	return cmocka_run_group_tests(tests, make_tree, remove_tree);
}

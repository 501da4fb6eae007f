// SPDX-License-Identifier: Apache-2.0
/* Files that appear whole or not at all. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
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
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "output/file/file.h"

static char dir[256];

static int make_dir(void **unused)
{
	const char *base = getenv("TMPDIR");

	(void)unused;
	snprintf(dir, sizeof(dir), "%s/pybpf-output-XXXXXX", base ? base : "/tmp");
	return mkdtemp(dir) ? 0 : -1;
}

static const char *in_dir(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

/* How many entries the folder has; removes them. */
static int empty_dir(bool remove_them)
{
	DIR *d = opendir(dir);
	struct dirent *entry;
	int n = 0;

	assert_non_null(d);
	while ((entry = readdir(d))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		n++;
		if (remove_them)
			assert_int_equal(remove(in_dir(entry->d_name)), 0);
	}
	closedir(d);
	return n;
}

static int remove_dir(void **unused)
{
	(void)unused;
	empty_dir(true);
	return rmdir(dir);
}

static void assert_content(const char *path, const char *want)
{
	char got[128] = "";
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	got[fread(got, 1, sizeof(got) - 1, f)] = '\0';
	fclose(f);
	assert_string_equal(got, want);
}

static int open_file(struct output_file *file, const char *path)
{
	struct error error;
	int err = output_file_open(file, path, &error);

	if (err)
		assert_true(error.text[0]);
	return err;
}

static void make_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static bool nameless(void)
{
	int fd = open(dir, O_TMPFILE | O_WRONLY, 0600);

	if (fd >= 0)
		close(fd);
	else
		print_message("no O_TMPFILE in %s\n", dir);
	return fd >= 0;
}

static void test_file_appears_at_commit(void **unused)
{
	struct output_file file;
	const char *path = in_dir("p.folded");

	(void)unused;
	assert_int_equal(open_file(&file, path), 0);
	fputs("new\n", file.stream);
	fflush(file.stream);
	assert_int_equal(access(path, F_OK), -1);
	/* A process that is killed now leaves nothing, where files without a name can be. */
	assert_int_equal(empty_dir(false), nameless() ? 0 : 1);
	assert_int_equal(output_file_commit(&file), 0);
	assert_content(path, "new\n");
	assert_int_equal(empty_dir(false), 1);
	output_file_discard(&file);
	assert_content(path, "new\n");
}

static void test_file_replaces_an_old_one_whole(void **unused)
{
	struct output_file file;
	const char *path = in_dir("p.folded");
	struct stat before, after;

	(void)unused;
	make_file(path, "old and longer than the new one\n");
	assert_int_equal(stat(path, &before), 0);
	assert_int_equal(open_file(&file, path), 0);
	fputs("new\n", file.stream);
	fflush(file.stream);
	assert_content(path, "old and longer than the new one\n");
	assert_int_equal(output_file_commit(&file), 0);
	assert_content(path, "new\n");
	assert_int_equal(stat(path, &after), 0);
	/* Another inode: who reads the old one goes on reading the old one. */
	assert_int_not_equal(before.st_ino, after.st_ino);
	assert_int_equal(empty_dir(false), 1);
}

static void test_discard_leaves_nothing(void **unused)
{
	struct output_file file;
	const char *path = in_dir("p.folded");

	(void)unused;
	assert_int_equal(open_file(&file, path), 0);
	fputs("half", file.stream);
	output_file_discard(&file);
	assert_int_equal(empty_dir(false), 0);
	output_file_discard(&file);
	memset(&file, 0, sizeof(file));
	output_file_discard(&file);

	make_file(path, "old");
	assert_int_equal(open_file(&file, path), 0);
	fputs("half", file.stream);
	output_file_discard(&file);
	output_file_discard(&file);
	assert_content(path, "old");
	assert_int_equal(empty_dir(false), 1);
}

static void test_bad_places(void **unused)
{
	static const struct {
		const char *path;
		int err;
	} places[] = {
		{".", -EISDIR},         {"./", -EISDIR},
		{"../", -EISDIR},       {"missing/", -EISDIR},
		{"missing/.", -ENOENT}, {"missing/p.folded", -ENOENT},
		{"plain/", -ENOTDIR},   {"plain/p.folded", -ENOTDIR},
		{"round", -ELOOP},      {"round/p.folded", -ELOOP},
	};
	struct output_file file;
	char name[300];

	(void)unused;
	make_file(in_dir("plain"), "");
	assert_int_equal(symlink("round", in_dir("round")), 0);
	assert_int_equal(open_file(&file, dir), -EISDIR);
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		assert_int_equal(open_file(&file, in_dir(places[i].path)), places[i].err);
		output_file_discard(&file);
	}
	assert_int_equal(open_file(&file, ""), -ENOENT);
	output_file_discard(&file);
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(open_file(&file, in_dir(name)), -ENAMETOOLONG);
	output_file_discard(&file);
	assert_int_equal(empty_dir(false), 2);
}

static void test_full_disk(void **unused)
{
	struct output_file file;

	(void)unused;
	if (access("/dev/full", W_OK)) {
		print_message("there is no /dev/full here\n");
		skip();
	}
	assert_int_equal(open_file(&file, "/dev/full"), 0);
	fputs("text", file.stream);
	assert_int_equal(output_file_commit(&file), -ENOSPC);
	output_file_discard(&file);

	/* More than the stream's buffer: the error comes before the end, and is not forgotten. */
	assert_int_equal(open_file(&file, "/dev/full"), 0);
	for (int i = 0; i < 100000; i++)
		fputs("text", file.stream);
	assert_true(output_file_commit(&file) < 0);
	assert_int_equal(access("/dev/full", W_OK), 0);
	assert_int_equal(empty_dir(false), 0);
}

/* What is no regular file is written in place, and stays what it is. */
static void test_devices_and_pipes(void **unused)
{
	struct output_file file;
	struct stat st;

	(void)unused;
	assert_int_equal(open_file(&file, "/dev/null"), 0);
	fputs("text", file.stream);
	assert_int_equal(output_file_commit(&file), 0);
	assert_int_equal(stat("/dev/null", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(open_file(&file, "/dev/null"), 0);
	output_file_discard(&file);
	assert_int_equal(stat("/dev/null", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
}

static mode_t mode_written(mode_t mask)
{
	struct output_file file;
	const char *path = in_dir("p.folded");
	mode_t old = umask(mask);
	struct stat st;
	int err = open_file(&file, path);

	assert_int_equal(umask(old), mask);
	assert_int_equal(err, 0);
	assert_int_equal(output_file_commit(&file), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, geteuid());
	return st.st_mode & 07777;
}

static void test_permissions(void **unused)
{
	static const mode_t masks[] = {0, 022, 077, 0777};

	(void)unused;
	for (size_t i = 0; i < sizeof(masks) / sizeof(*masks); i++) {
		assert_int_equal(mode_written(masks[i]), 0600);
		assert_int_equal(unlink(in_dir("p.folded")), 0);
	}
	make_file(in_dir("p.folded"), "old");
	assert_int_equal(chmod(in_dir("p.folded"), 0645), 0);
	assert_int_equal(mode_written(077), 0645);
	assert_int_equal(mode_written(0), 0645);
}

static void test_links(void **unused)
{
	struct output_file file;

	(void)unused;
	make_file(in_dir("old"), "old");
	assert_int_equal(symlink("./one/../two", in_dir("one")), 0);
	assert_int_equal(open_file(&file, in_dir("one")), -ELOOP);
	assert_int_equal(unlink(in_dir("one")), 0);
	assert_int_equal(symlink("two", in_dir("one")), 0);
	assert_int_equal(symlink("old", in_dir("two")), 0);
	assert_int_equal(open_file(&file, in_dir("one/")), -ENOTDIR);
	assert_int_equal(open_file(&file, in_dir("one/x")), -ENOTDIR);
	assert_int_equal(open_file(&file, in_dir("one")), 0);
	fputs("new", file.stream);
	assert_int_equal(output_file_commit(&file), 0);
	assert_content(in_dir("old"), "new");
	assert_int_equal(empty_dir(false), 3);
	output_file_discard(&file);
}

static bool are_same(const char *first, const char *second)
{
	struct output_file a, b;
	char path[512];
	bool same;

	snprintf(path, sizeof(path), "%s", in_dir(first));
	assert_int_equal(open_file(&a, path), 0);
	assert_int_equal(open_file(&b, in_dir(second)), 0);
	same = output_file_same(&a, &b);
	assert_int_equal(output_file_same(&b, &a), same);
	output_file_discard(&a);
	output_file_discard(&b);
	return same;
}

static void test_same_file(void **unused)
{
	struct output_file a, b;
	char path[512];

	(void)unused;
	make_file(in_dir("old"), "");
	make_file(in_dir("other"), "");
	snprintf(path, sizeof(path), "%s", in_dir("old"));
	assert_int_equal(link(path, in_dir("hard")), 0);
	assert_int_equal(symlink("old", in_dir("soft")), 0);
	assert_int_equal(symlink("new", in_dir("dangling")), 0);
	assert_true(are_same("new", "new"));
	assert_true(are_same("new", ".//./new"));
	assert_true(are_same("new", "dangling"));
	assert_true(are_same("old", "soft"));
	assert_true(are_same("old", "hard"));
	assert_false(are_same("new", "neu"));
	assert_false(are_same("old", "other"));
	assert_false(are_same("old", "new"));
	assert_int_equal(open_file(&a, "/dev/null"), 0);
	assert_int_equal(open_file(&b, "/dev/null"), 0);
	assert_false(output_file_same(&a, &b));
	output_file_discard(&a);
	output_file_discard(&b);
}

static void test_fifo(void **unused)
{
	struct output_file file;
	char path[512], got[16] = "";
	int reader;

	(void)unused;
	snprintf(path, sizeof(path), "%s", in_dir("pipe"));
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(open_file(&file, path), -ENXIO);
	reader = open(path, O_RDONLY | O_NONBLOCK);
	assert_true(reader >= 0);
	assert_int_equal(open_file(&file, path), 0);
	/* A reader that is slow is waited for. */
	assert_false(fcntl(fileno(file.stream), F_GETFL) & O_NONBLOCK);
	fputs("new", file.stream);
	assert_int_equal(output_file_commit(&file), 0);
	assert_int_equal(read(reader, got, sizeof(got)), 3);
	assert_string_equal(got, "new");
	close(reader);
	assert_int_equal(empty_dir(false), 1);
}

static void test_descriptor(void **unused)
{
	struct output_file file;
	char path[64];
	int ends[2];
	char got[16] = "";

	(void)unused;
	assert_int_equal(pipe(ends), 0);
	snprintf(path, sizeof(path), "/dev/fd/%d", ends[1]);
	assert_int_equal(open_file(&file, path), 0);
	fputs("new", file.stream);
	assert_int_equal(output_file_commit(&file), 0);
	assert_int_equal(read(ends[0], got, sizeof(got)), 3);
	/* Ours is still open. */
	assert_int_equal(write(ends[1], "x", 1), 1);
	snprintf(path, sizeof(path), "/dev/fd/%d", ends[0]);
	assert_int_equal(open_file(&file, path), -EBADF);
	close(ends[0]);
	close(ends[1]);
	assert_true(open_file(&file, path) < 0);
}

#define NOT_NEEDED 99

static void keep_only(unsigned override, unsigned fowner)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {{0}};

	sets[0].permitted = sets[0].effective = override << CAP_DAC_OVERRIDE | fowner << CAP_FOWNER;
	if (syscall(SYS_capset, &header, sets))
		_exit(100);
}

/*
 * Opens with all rights and commits with what the file is said to need, or without one of them. Returns what the commit
 * returned, or NOT_NEEDED.
 */
static int commit_without(const char *path, char without)
{
	struct output_file file;
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		bool override, fowner;

		if (open_file(&file, path))
			_exit(101);
		override = output_file_needs_override(&file);
		fowner = output_file_needs_fowner(&file);
		if ((without == 'o' && !override) || (without == 'f' && !fowner)) {
			output_file_discard(&file);
			_exit(NOT_NEEDED);
		}
		keep_only(override && without != 'o', fowner && without != 'f');
		_exit(-output_file_commit(&file));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 100);
	return WEXITSTATUS(status) == NOT_NEEDED ? NOT_NEEDED : -WEXITSTATUS(status);
}

/* Root without its rights is a user like others. */
static void test_commit_with_what_it_needs(void **unused)
{
	enum {
		OTHER = 3141592
	};
	/* Not below /tmp alone, where another user's folder is planted. */
	char inner[512], path[520];

	(void)unused;
	if (geteuid()) {
		print_message("not root here\n");
		skip();
	}
	snprintf(inner, sizeof(inner), "%s", in_dir("inner"));
	assert_int_equal(mkdir(inner, 0700), 0);
	snprintf(path, sizeof(path), "%s/new", inner);
	make_file(path, "old");
	for (int owner = 0; owner < 2; owner++) {
		static const mode_t modes[] = {0700, 0755, 0777, 01777, 0500};

		for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
			assert_int_equal(chmod(inner, modes[i]), 0);
			assert_int_equal(chown(inner, owner ? OTHER : 0, 0), 0);
			for (int kept = 0; kept < 2; kept++) {
				/* Another user's file is kept by the folder's owner only; else it would be refused. */
				assert_int_equal(chown(path, kept && owner ? OTHER : 0, 0), 0);
				assert_int_equal(chmod(path, 0600), 0);
				assert_int_equal(commit_without(path, 0), 0);
				assert_int_not_equal(commit_without(path, 'o'), 0);
				assert_int_not_equal(commit_without(path, 'f'), 0);
			}
		}
	}
	assert_int_equal(unlink(path), 0);
}

/* As a user without capabilities sees it; root has them all, and is asked as if it had none. */
static void test_needs(void **unused)
{
	struct output_file file;

	(void)unused;
	assert_int_equal(open_file(&file, in_dir("new")), 0);
	assert_false(output_file_needs_override(&file));
	assert_false(output_file_needs_fowner(&file));
	file.folder_status.st_mode = S_IFDIR | 0500;
	assert_true(output_file_needs_override(&file));
	file.folder_status.st_mode = S_IFDIR | 01777;
	file.folder_status.st_uid = geteuid() + 1;
	assert_false(output_file_needs_override(&file));
	assert_false(output_file_needs_fowner(&file));
	file.status.st_uid = geteuid() + 1;
	assert_true(output_file_needs_fowner(&file));
	file.folder_status.st_mode = S_IFDIR | 0755;
	assert_true(output_file_needs_override(&file));
	assert_false(output_file_needs_fowner(&file));
	output_file_discard(&file);
	assert_false(output_file_needs_override(&file));
	assert_int_equal(open_file(&file, "/dev/null"), 0);
	assert_false(output_file_needs_override(&file));
	assert_false(output_file_needs_fowner(&file));
	output_file_discard(&file);
}

#define FILE_TEST(f) cmocka_unit_test_setup_teardown(f, make_dir, remove_dir)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FILE_TEST(test_file_appears_at_commit),
		FILE_TEST(test_file_replaces_an_old_one_whole),
		FILE_TEST(test_discard_leaves_nothing),
		FILE_TEST(test_bad_places),
		FILE_TEST(test_full_disk),
		FILE_TEST(test_devices_and_pipes),
		FILE_TEST(test_permissions),
		FILE_TEST(test_links),
		FILE_TEST(test_same_file),
		FILE_TEST(test_fifo),
		FILE_TEST(test_descriptor),
		FILE_TEST(test_needs),
		FILE_TEST(test_commit_with_what_it_needs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

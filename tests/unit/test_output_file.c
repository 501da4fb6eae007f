// SPDX-License-Identifier: Apache-2.0
/* Files that appear whole or not at all. */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "output_file.h"

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

static void make_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void test_file_appears_at_commit(void **unused)
{
	struct output_file file;
	const char *path = in_dir("p.folded");

	(void)unused;
	assert_int_equal(output_file_open(&file, path), 0);
	fputs("new\n", file.stream);
	fflush(file.stream);
	assert_int_equal(access(path, F_OK), -1);
	/* It lies in the same folder, for a rename must not cross file systems. */
	assert_int_equal(empty_dir(false), 1);
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
	assert_int_equal(output_file_open(&file, path), 0);
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
	assert_int_equal(output_file_open(&file, path), 0);
	fputs("half", file.stream);
	output_file_discard(&file);
	assert_int_equal(empty_dir(false), 0);
	output_file_discard(&file);
	memset(&file, 0, sizeof(file));
	output_file_discard(&file);

	make_file(path, "old");
	assert_int_equal(output_file_open(&file, path), 0);
	fputs("half", file.stream);
	output_file_discard(&file);
	output_file_discard(&file);
	assert_content(path, "old");
	assert_int_equal(empty_dir(false), 1);
}

static void test_bad_places(void **unused)
{
	struct output_file file;
	char name[300];

	(void)unused;
	assert_int_equal(output_file_open(&file, dir), -EISDIR);
	output_file_discard(&file);
	assert_int_equal(output_file_open(&file, in_dir("missing/p.folded")), -ENOENT);
	output_file_discard(&file);
	make_file(in_dir("plain"), "");
	assert_int_equal(output_file_open(&file, in_dir("plain/p.folded")), -ENOTDIR);
	output_file_discard(&file);
	assert_int_equal(output_file_open(&file, ""), -ENOENT);
	output_file_discard(&file);
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(output_file_open(&file, in_dir(name)), -ENAMETOOLONG);
	output_file_discard(&file);
	assert_int_equal(empty_dir(false), 1);
}

static void test_full_disk(void **unused)
{
	struct output_file file;

	(void)unused;
	if (access("/dev/full", W_OK)) {
		print_message("there is no /dev/full here\n");
		skip();
	}
	assert_int_equal(output_file_open(&file, "/dev/full"), 0);
	fputs("text", file.stream);
	assert_int_equal(output_file_commit(&file), -ENOSPC);
	output_file_discard(&file);

	/* More than the stream's buffer: the error comes before the end, and is not forgotten. */
	assert_int_equal(output_file_open(&file, "/dev/full"), 0);
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
	assert_int_equal(output_file_open(&file, "/dev/null"), 0);
	fputs("text", file.stream);
	assert_int_equal(output_file_commit(&file), 0);
	assert_int_equal(stat("/dev/null", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(output_file_open(&file, "/dev/null"), 0);
	output_file_discard(&file);
	assert_int_equal(stat("/dev/null", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
}

static void assert_mode(mode_t mask, mode_t want)
{
	struct output_file file;
	const char *path = in_dir("p.folded");
	mode_t old = umask(mask);
	struct stat st;
	int err = output_file_open(&file, path);

	assert_int_equal(umask(old), mask);
	assert_int_equal(err, 0);
	assert_int_equal(output_file_commit(&file), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, want);
}

static void test_permissions(void **unused)
{
	(void)unused;
	assert_mode(022, 0644);
	assert_mode(077, 0600);
	assert_mode(0, 0666);
	assert_mode(027, 0640);
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* Bodies on the disk: what an earlier process has left is found, whatever became of some of it. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "push/internal.h"

#define BODIES 5
#define BODY   300u
#define FIRST  "segment-0.spool"

static char folder[64];

static int make_folder(void **unused)
{
	(void)unused;
	snprintf(folder, sizeof(folder), "/tmp/pybpf-spool-XXXXXX");
	return !mkdtemp(folder);
}

static int remove_folder(void **unused)
{
	char path[128];

	(void)unused;
	for (int i = 0; i < PUSH_SPOOL_SEGMENTS; i++) {
		snprintf(path, sizeof(path), "%s/segment-%d.spool", folder, i);
		unlink(path);
	}
	return rmdir(folder);
}

static void open_spool(struct push_spool *spool)
{
	struct error error;

	assert_int_equal(push_spool_open(spool, folder, 8 << 20, &error), 0);
	assert_int_equal(push_spool_scan(spool), 0);
}

static void put(struct push_spool *spool, unsigned i)
{
	char bytes[BODY];
	struct push_body body = {.message = {.size = BODY}, .bytes = bytes};

	memset(bytes, 'a' + (int)i, sizeof(bytes));
	assert_int_equal(push_spool_put(spool, &body), 0);
}

/* Leaves BODIES bodies in the first file, of `first` and the letters behind it. Returns the bytes of each. */
static uint64_t leave(unsigned first)
{
	struct push_spool spool;
	uint64_t size;

	open_spool(&spool);
	for (unsigned i = 0; i < BODIES; i++)
		put(&spool, first + i);
	size = spool.used[0] / spool.count;
	push_spool_close(&spool);
	return size;
}

static void change(uint64_t offset, const char *bytes, size_t size)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/" FIRST, folder);
	fd = open(path, O_WRONLY);
	assert_true(fd >= 0);
	if (bytes)
		assert_int_equal(pwrite(fd, bytes, size, (off_t)offset), size);
	else
		assert_int_equal(ftruncate(fd, (off_t)offset), 0);
	close(fd);
}

/* Opens the spool again: it has these bodies, and so many are counted as lost. */
static void assert_found(const char *letters, unsigned lost)
{
	struct push_spool spool;
	struct push_body *body;

	open_spool(&spool);
	assert_int_equal(spool.count, strlen(letters));
	assert_int_equal(spool.dropped_error, lost);
	assert_int_equal(spool.last_error != 0, lost != 0);
	for (; *letters; letters++) {
		body = push_spool_get(&spool);
		assert_non_null(body);
		assert_int_equal(body->message.size, BODY);
		for (unsigned i = 0; i < BODY; i++)
			assert_int_equal(((const char *)body->bytes)[i], *letters);
		push_body_free(body);
		push_spool_done(&spool);
	}
	assert_null(push_spool_get(&spool));
	assert_int_equal(spool.dropped_error, lost);
	push_spool_close(&spool);
}

static void test_whole(void **unused)
{
	(void)unused;
	leave(0);
	assert_found("abcde", 0);
	assert_found("", 0);
}

/* A body, a head, and a size that leads beyond the file: only those are lost. */
static void test_damage_in_the_middle(void **unused)
{
	uint64_t size;

	(void)unused;
	size = leave(0);
	change(2 * size - 5, "?", 1);
	assert_found("acde", 1);
	size = leave(0);
	change(size, "?", 1);
	change(3 * size, "????????????????????????????????????", 36);
	assert_found("ace", 2);
	size = leave(0);
	for (unsigned i = 0; i < 3; i++)
		change((1 + i) * size, "????????????????????????????????????", 36);
	assert_found("ae", 3);
}

static void test_damage_at_the_ends(void **unused)
{
	uint64_t size;

	(void)unused;
	leave(0);
	change(3, "?", 1);
	assert_found("bcde", 1);
	size = leave(0);
	change(5 * size - 1, NULL, 0);
	assert_found("abcd", 1);
	size = leave(0);
	change(4 * size, "?", 1);
	assert_found("abcd", 1);
}

/* What is written later comes behind what was found. */
static void test_goes_on_behind_the_damage(void **unused)
{
	struct push_spool spool;
	uint64_t size;

	(void)unused;
	size = leave(0);
	change(4 * size + 9, "?????????????????????????????", 29);
	change(size, "?", 1);
	open_spool(&spool);
	assert_int_equal(spool.count, 3);
	put(&spool, 25);
	push_spool_close(&spool);
	assert_found("acdz", 1);
}

/* The same record a second time, as a file system that replays its log may leave it, is not sent twice. */
static void test_a_record_that_is_there_twice(void **unused)
{
	char path[128], record[4096];
	uint64_t size;
	int fd;

	(void)unused;
	size = leave(0);
	assert_true(size <= sizeof(record));
	snprintf(path, sizeof(path), "%s/" FIRST, folder);
	fd = open(path, O_RDONLY);
	assert_int_equal(pread(fd, record, size, (off_t)size), size);
	close(fd);
	change(3 * size, record, size);
	assert_found("abce", 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_whole),
		TEST(test_damage_in_the_middle),
		TEST(test_damage_at_the_ends),
		TEST(test_goes_on_behind_the_damage),
		TEST(test_a_record_that_is_there_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* What is remembered of files: the last 8,192, whatever came before them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "discovery/internal.h"

#define MOST 8192

static struct stat of_inode(uint64_t inode)
{
	return (struct stat){.st_dev = 1, .st_ino = inode};
}

static void forgets_the_oldest(void **unused)
{
	struct discovery_cache cache;

	(void)unused;
	discovery_cache_init(&cache);
	for (uint64_t inode = 1; inode <= 4 * MOST + 5; inode++) {
		struct discovery_file file = {.kind = DISCOVERY_FILE_REFUSED, .refusal = strdup("for a test")};
		struct stat st = of_inode(inode), gone = of_inode(inode - MOST), kept = of_inode(inode - MOST + 1);
		const struct discovery_file *known;

		file.copied_runtime = inode;
		known = discovery_cache_add(&cache, &st, &file);
		assert_non_null(known);
		assert_int_equal(known->copied_runtime, inode);
		if (inode > MOST)
			assert_null(discovery_cache_find(&cache, &gone));
		if (inode < MOST)
			continue;
		known = discovery_cache_find(&cache, &kept);
		assert_non_null(known);
		assert_int_equal(known->copied_runtime, inode - MOST + 1);
	}
	for (uint64_t inode = 3 * MOST + 6; inode <= 4 * MOST + 5; inode++) {
		struct stat st = of_inode(inode);

		assert_non_null(discovery_cache_find(&cache, &st));
	}
	discovery_cache_free(&cache);
}

/* One of these differs where a file was written anew in its place, or is another one. */
static void tells_files_apart(void **unused)
{
	const struct stat file = {.st_dev = 1,
				  .st_ino = 2,
				  .st_size = 3,
				  .st_ctim = {.tv_sec = 4, .tv_nsec = 5},
				  .st_atim = {.tv_sec = 6}};
	struct stat others[] = {file, file, file, file, file}, same = file;
	struct discovery_file what = {.kind = DISCOVERY_FILE_REFUSED, .refusal = strdup("for a test")};
	struct discovery_cache cache;

	(void)unused;
	others[0].st_dev++;
	others[1].st_ino++;
	others[2].st_size++;
	others[3].st_ctim.tv_sec++;
	others[4].st_ctim.tv_nsec++;
	same.st_atim.tv_sec++;
	discovery_cache_init(&cache);
	assert_non_null(discovery_cache_add(&cache, &file, &what));
	assert_non_null(discovery_cache_find(&cache, &same));
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_null(discovery_cache_find(&cache, &others[i]));
	discovery_cache_free(&cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(forgets_the_oldest), cmocka_unit_test(tells_files_apart)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

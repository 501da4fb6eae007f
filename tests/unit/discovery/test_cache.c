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

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(forgets_the_oldest)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* Reads through the cache are those of the memory below, and of each page there is one. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "symbols/walk/page_cache.h"

#define PAGE  4096u
#define PAGES 600u
#define HOLE  7u /* an unmapped page */

static uint8_t content(uint64_t addr)
{
	return (uint8_t)(addr * 31 + addr / 251);
}

struct below {
	unsigned reads;
};

static int read_below(void *source, uint64_t addr, void *dst, size_t size)
{
	struct below *below = source;
	uint8_t *to = dst;

	below->reads++;
	if (addr > (uint64_t)PAGES * PAGE || addr + size > (uint64_t)PAGES * PAGE ||
	    (addr / PAGE <= HOLE && (addr + size - 1) / PAGE >= HOLE))
		return -EFAULT;
	for (size_t i = 0; i < size; i++)
		to[i] = content(addr + i);
	return 0;
}

static void check(const struct walk_memory *memory, uint64_t addr, size_t size)
{
	uint8_t *bytes = malloc(size + 1);

	assert_non_null(bytes);
	assert_int_equal(memory->read(memory->source, addr, bytes, size), 0);
	for (size_t i = 0; i < size; i++)
		assert_int_equal(bytes[i], content(addr + i));
	free(bytes);
}

static void test_reads(void **unused)
{
	struct below below = {0};
	const struct walk_memory memory = {.read = read_below, .source = &below};
	struct page_cache *cache = page_cache_new(&memory);
	struct walk_memory cached;
	unsigned before;
	uint8_t bytes[8];
	(void)unused;

	assert_non_null(cache);
	page_cache_memory(cache, &cached);
	check(&cached, 0, 8);
	before = below.reads;
	for (uint64_t at = 0; at + 100 < PAGE; at += 97)
		check(&cached, at, 100);
	assert_int_equal(below.reads, before);
	/* Across the border of two pages, beyond what is cached, and a whole page. */
	check(&cached, 2 * PAGE - 3, 8);
	check(&cached, 20 * PAGE + 1, PAGE);
	check(&cached, 20 * PAGE, 5 * PAGE);
	check(&cached, 30 * PAGE, 0);
	/* What is not there is -EFAULT, also where only its end is not. */
	assert_int_equal(cached.read(cached.source, HOLE * PAGE + 5, bytes, 1), -EFAULT);
	assert_int_equal(cached.read(cached.source, HOLE * PAGE - 4, bytes, 8), -EFAULT);
	assert_int_equal(cached.read(cached.source, UINT64_MAX - 3, bytes, 8), -EFAULT);
	check(&cached, HOLE * PAGE - 8, 8);
	check(&cached, (HOLE + 1) * PAGE, 8);
	/* More pages than it has places, in an order in which each drives another one out. */
	for (unsigned round = 0; round < 2; round++) {
		for (uint64_t page = HOLE + 1; page < PAGES; page++)
			check(&cached, page * PAGE + page % 4000, 16);
	}
	page_cache_free(cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* Keeps pages in a table in which each has one place. */
#include "symbols/walk/page_cache.h"

#include <stdlib.h>
#include <string.h>

/* Size of a read, no larger than the pages of any machine: a part of a larger page is readable if the page is. */
#define PAGE   4096u
#define PLACES 128u

struct page_cache {
	struct walk_memory below;
	uint64_t numbers[PLACES]; /* of the pages, from 1 on; 0: none */
	uint8_t bytes[PLACES][PAGE];
};

struct page_cache *page_cache_new(const struct walk_memory *memory)
{
	struct page_cache *cache = malloc(sizeof(*cache));

	if (!cache)
		return NULL;
	cache->below = *memory;
	memset(cache->numbers, 0, sizeof(cache->numbers));
	return cache;
}

void page_cache_free(struct page_cache *cache)
{
	free(cache);
}

/* Returns the bytes of a page, or NULL where it cannot be read. */
static const uint8_t *find(struct page_cache *cache, uint64_t page)
{
	size_t place = page % PLACES;

	if (cache->numbers[place] != page + 1) {
		cache->numbers[place] = 0;
		if (cache->below.read(cache->below.source, page * PAGE, cache->bytes[place], PAGE))
			return NULL;
		cache->numbers[place] = page + 1;
	}
	return cache->bytes[place];
}

static int read_cached(void *source, uint64_t addr, void *dst, size_t size)
{
	struct page_cache *cache = source;
	uint8_t *to = dst;

	/* Long texts would only drive others out. */
	if (size > PAGE || addr + size < addr)
		return cache->below.read(cache->below.source, addr, dst, size);
	while (size) {
		size_t offset = addr % PAGE, part = PAGE - offset < size ? PAGE - offset : size;
		const uint8_t *page = find(cache, addr / PAGE);

		/* Its error, as if there were no cache. */
		if (!page)
			return cache->below.read(cache->below.source, addr, to, size);
		memcpy(to, page + offset, part);
		addr += part;
		to += part;
		size -= part;
	}
	return 0;
}

void page_cache_memory(struct page_cache *cache, struct walk_memory *memory)
{
	*memory = (struct walk_memory){.read = read_cached, .source = cache};
}

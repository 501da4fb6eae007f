// SPDX-License-Identifier: Apache-2.0
/*
 * Memory that is read page by page, each once: for what does not change meanwhile, or where it is proved afterwards
 * that it has not. A read costs some microseconds however small it is, and objects that belong together lie close
 * together.
 */
#ifndef SYMBOLS_PAGE_CACHE_H
#define SYMBOLS_PAGE_CACHE_H

#include "symbols/walk/walk_user.h"

struct page_cache;

/* Returns a cache of that memory, which outlives it, or NULL without memory. */
struct page_cache *page_cache_new(const struct walk_memory *memory);
/* Accepts NULL. */
void page_cache_free(struct page_cache *cache);
/* Makes *memory the cached memory, valid as long as the cache. */
void page_cache_memory(struct page_cache *cache, struct walk_memory *memory);

#endif

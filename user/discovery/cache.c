// SPDX-License-Identifier: Apache-2.0
/* Cache of analysed files, also of those without a Python, which are most of what any process maps. */
#include <sys/auxv.h>

#include "discovery/internal.h"
#include "base/siphash.h"

/*
 * Most files in the cache. A machine with many containers maps some thousand distinct libraries. An entry takes about
 * 400 bytes.
 */
#define DISCOVERY_CACHE_MAX 8192

struct cache_key {
	uint64_t dev, inode, size;
	int64_t ctime_seconds, ctime_nanoseconds;
};

struct cache_entry {
	struct cache_key key;
	struct discovery_file file;
};

/*
 * Returns the id of a file: a hash whose key is the random bytes that the kernel gave the program at its start
 * (AT_RANDOM). Processes forked from one have the same bytes, so helpers agree on the id, and nobody else knows them.
 */
static uint64_t id_of(const struct cache_key *key)
{
	const uint8_t *random = (const uint8_t *)getauxval(AT_RANDOM); // NOLINT(performance-no-int-to-ptr)

	return siphash(random, key, sizeof(*key));
}

static void key_from_stat(struct cache_key *key, const struct stat *st)
{
	*key = (struct cache_key){.dev = st->st_dev,
				  .inode = st->st_ino,
				  .size = st->st_size,
				  .ctime_seconds = st->st_ctim.tv_sec,
				  .ctime_nanoseconds = st->st_ctim.tv_nsec};
}

static struct discovery_file *file_at(const struct discovery_cache *cache, uint32_t index)
{
	return &((struct cache_entry *)intern_item(&cache->files, index))->file;
}

void discovery_cache_init(struct discovery_cache *cache)
{
	cache->oldest = 0;
	intern_init(&cache->files, sizeof(struct cache_entry), sizeof(struct cache_key));
}

const struct discovery_file *discovery_cache_find(const struct discovery_cache *cache, const struct stat *st)
{
	struct cache_key key;
	uint32_t i;

	key_from_stat(&key, st);
	i = intern_find(&cache->files, &key);
	return i == INTERN_NONE ? NULL : file_at(cache, i);
}

const struct discovery_file *discovery_cache_add(struct discovery_cache *cache, const struct stat *st,
						 struct discovery_file *file)
{
	struct cache_entry entry = {.file = *file};
	uint32_t i;
	bool fresh;

	key_from_stat(&entry.key, st);
	entry.file.id = id_of(&entry.key);
	if (cache->files.count >= DISCOVERY_CACHE_MAX) {
		discovery_file_clear(file_at(cache, cache->oldest));
		intern_remove_oldest(&cache->files, &cache->oldest);
	}
	i = intern_add(&cache->files, &entry, &fresh);
	if (i != INTERN_NONE)
		return file_at(cache, i);
	discovery_file_clear(file);
	return NULL;
}

void discovery_cache_free(struct discovery_cache *cache)
{
	for (uint32_t i = 0; i < cache->files.count; i++)
		discovery_file_clear(file_at(cache, i));
	intern_free(&cache->files);
	cache->oldest = 0;
}

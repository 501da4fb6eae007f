// SPDX-License-Identifier: Apache-2.0
/* Cache of analysed files, also of those without a Python, which are most of what any process maps. */
#include <sys/auxv.h>

#include "discovery/internal.h"
#include "base/intern.h"
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

static struct intern cache = INTERN_INIT(sizeof(struct cache_entry), sizeof(struct cache_key));
/* Index of the oldest entry, once the cache is full. */
static uint32_t oldest;

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

static void remove_entry(uint32_t index)
{
	struct cache_entry *entry = intern_item(&cache, index);

	discovery_file_clear(&entry->file);
	intern_remove(&cache, index);
}

/*
 * Removes the oldest entry. The newest entry, which is the last, moves into its place, so the entries before it form a
 * ring.
 */
static void remove_oldest(void)
{
	remove_entry(oldest);
	oldest = (oldest + 1) % (DISCOVERY_CACHE_MAX - 1);
}

const struct discovery_file *discovery_cache_find(const struct stat *st)
{
	struct cache_key key;
	uint32_t i;

	key_from_stat(&key, st);
	i = intern_find(&cache, &key);
	return i == INTERN_NONE ? NULL : &((struct cache_entry *)intern_item(&cache, i))->file;
}

const struct discovery_file *discovery_cache_add(const struct stat *st, struct discovery_file *file)
{
	struct cache_entry entry = {.file = *file};
	uint32_t i;
	bool fresh;

	key_from_stat(&entry.key, st);
	entry.file.id = id_of(&entry.key);
	if (cache.count >= DISCOVERY_CACHE_MAX)
		remove_oldest();
	i = intern_add(&cache, &entry, &fresh);
	if (i != INTERN_NONE)
		return &((struct cache_entry *)intern_item(&cache, i))->file;
	discovery_file_clear(file);
	return NULL;
}

void discovery_free(void)
{
	while (cache.count)
		remove_entry(cache.count - 1);
	intern_free(&cache);
	oldest = 0;
}

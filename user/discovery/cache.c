// SPDX-License-Identifier: Apache-2.0
/* Files that were analysed, also those that are no Python: most of what any process maps. */
#include <sys/auxv.h>

#include "discovery/internal.h"
#include "base/intern.h"
#include "base/siphash.h"

/* A machine with many containers maps some thousand distinct libraries. About 400 bytes each. */
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
/* When the cache is full: the index of the oldest entry. */
static uint32_t oldest;

/*
 * The same in every process that was forked from one, so that helpers agree on it, and known to nobody else: the key is
 * what the kernel gave the program at its start.
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

/* The newest entry, which is the last, takes the oldest one's place: those before it are a ring. */
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

// SPDX-License-Identifier: Apache-2.0
/* Files that were analysed, also those that are no Python: most of what any process maps. */
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include <uthash.h>

#include "discovery/internal.h"
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
	UT_hash_handle hh;
};

static struct cache_entry *cache;

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

static void remove_entry(struct cache_entry *entry)
{
	HASH_DEL(cache, entry);
	discovery_file_clear(&entry->file);
	free(entry);
}

const struct discovery_file *discovery_cache_find(const struct stat *st)
{
	struct cache_entry *entry;
	struct cache_key key;

	key_from_stat(&key, st);
	HASH_FIND(hh, cache, &key, sizeof(key), entry);
	return entry ? &entry->file : NULL;
}

const struct discovery_file *discovery_cache_add(const struct stat *st, struct discovery_file *file)
{
	struct cache_entry *entry = calloc(1, sizeof(*entry));

	if (!entry)
		goto fail;
	/* uthash keeps the order of insertion: the head is the oldest. */
	if (HASH_COUNT(cache) >= DISCOVERY_CACHE_MAX)
		remove_entry(cache);
	key_from_stat(&entry->key, st);
	HASH_ADD(hh, cache, key, sizeof(entry->key), entry);
	if (!entry->hh.tbl)
		goto fail;
	entry->file = *file;
	entry->file.id = id_of(&entry->key);
	return &entry->file;
fail:
	free(entry);
	discovery_file_clear(file);
	return NULL;
}

void discovery_free(void)
{
	struct cache_entry *entry, *next;

	HASH_ITER (hh, cache, entry, next)
		remove_entry(entry);
}

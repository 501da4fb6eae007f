// SPDX-License-Identifier: Apache-2.0
/*
 * Mappings that show no Python, for the time of one look at many processes. What is kept longer goes by device, inode,
 * size and change time, which takes opening the file: most of what such a look would cost.
 */
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "discovery/internal.h"

/* Device and inode alone are not enough: btrfs shows one device for all subvolumes, whose inodes have the same numbers.
 */
struct memo_key {
	uint64_t inode, offset, length, path;
	uint32_t dev_major, dev_minor;
};

struct memo_entry {
	struct memo_key key;
	UT_hash_handle hh;
};

/* Some 8 MiB: a process can map as many files as it likes. */
#define MEMO_MAX 65536

static struct memo_entry *memo;
static bool memo_on;

static void memo_key(struct memo_key *key, const struct procfs_map *map)
{
	*key = (struct memo_key){.inode = map->inode,
				 .offset = map->offset,
				 .length = map->end - map->start,
				 .path = 0xcbf29ce484222325,
				 .dev_major = map->dev_major,
				 .dev_minor = map->dev_minor};
	/* FNV-1a. */
	for (const char *p = map->path; *p; p++)
		key->path = (key->path ^ (unsigned char)*p) * 0x100000001b3;
}

void discovery_memo_begin(void)
{
	memo_on = true;
}

void discovery_memo_end(void)
{
	struct memo_entry *entry, *next;

	memo_on = false;
	/* NOLINTBEGIN(clang-analyzer-unix.Malloc): the analyser loses sight of what HASH_DEL does to the table. */
	HASH_ITER (hh, memo, entry, next) {
		HASH_DEL(memo, entry);
		free(entry);
	}
	/* NOLINTEND(clang-analyzer-unix.Malloc) */
}

bool discovery_memo_has(const struct procfs_map *map)
{
	struct memo_entry *entry;
	struct memo_key key;

	if (!memo_on)
		return false;
	memo_key(&key, map);
	HASH_FIND(hh, memo, &key, sizeof(key), entry);
	return entry;
}

void discovery_memo_add(const struct procfs_map *map)
{
	struct memo_entry *entry = memo_on && HASH_COUNT(memo) < MEMO_MAX ? calloc(1, sizeof(*entry)) : NULL;

	/* Without room the file is opened again. */
	if (!entry)
		return;
	memo_key(&entry->key, map);
	HASH_ADD(hh, memo, key, sizeof(entry->key), entry);
	if (!entry->hh.tbl)
		free(entry);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Remembers mappings without a Python for the time of one pass over many processes. The cache (cache.c), which lasts
 * longer, looks a file up by device, inode, size and change time, for which the file must be opened: most of what such
 * a pass would cost.
 */
#include "discovery/internal.h"

#include <string.h>

#include "base/siphash.h"

/* Device and inode alone are not enough: btrfs shows one device for all subvolumes, whose inodes have the same numbers.
 */
struct memo_key {
	uint64_t inode, offset, length, path;
	uint32_t dev_major, dev_minor;
};

/* Most mappings that are remembered, some 8 MiB: a process can map as many files as it likes. */
#define MEMO_MAX 65536

static void make_key(struct memo_key *key, const struct procfs_map *map)
{
	*key = (struct memo_key){.inode = map->inode,
				 .offset = map->offset,
				 .length = map->end - map->start,
				 .path = siphash(siphash_process_key(), map->path, strlen(map->path)),
				 .dev_major = map->dev_major,
				 .dev_minor = map->dev_minor};
}

void discovery_memo_init(struct discovery_memo *memo)
{
	memo->on = false;
	intern_init(&memo->mappings, sizeof(struct memo_key), sizeof(struct memo_key));
}

void discovery_memo_free(struct discovery_memo *memo)
{
	memo->on = false;
	intern_free(&memo->mappings);
}

bool discovery_memo_has(const struct discovery_memo *memo, const struct procfs_map *map)
{
	struct memo_key key;

	if (!memo->on)
		return false;
	make_key(&key, map);
	return intern_find(&memo->mappings, &key) != INTERN_NONE;
}

void discovery_memo_add(struct discovery_memo *memo, const struct procfs_map *map)
{
	struct memo_key key;
	bool fresh;

	if (!memo->on || memo->mappings.count >= MEMO_MAX)
		return;
	make_key(&key, map);
	/* Without memory for it the file is opened the next time, too. */
	intern_add(&memo->mappings, &key, &fresh);
}

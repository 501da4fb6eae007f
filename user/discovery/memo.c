// SPDX-License-Identifier: Apache-2.0
/*
 * Remembers mappings without a Python for the time of one pass over many processes. The cache (cache.c), which lasts
 * longer, looks a file up by device, inode, size and change time, for which the file must be opened: most of what such
 * a pass would cost.
 */
#include "discovery/internal.h"
#include "base/intern.h"

/* Device and inode alone are not enough: btrfs shows one device for all subvolumes, whose inodes have the same numbers.
 */
struct memo_key {
	uint64_t inode, offset, length, path;
	uint32_t dev_major, dev_minor;
};

/* Most mappings that are remembered, some 8 MiB: a process can map as many files as it likes. */
#define MEMO_MAX 65536

static struct intern memo = INTERN_INIT(sizeof(struct memo_key), sizeof(struct memo_key));
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
	memo_on = false;
	intern_free(&memo);
}

bool discovery_memo_has(const struct procfs_map *map)
{
	struct memo_key key;

	if (!memo_on)
		return false;
	memo_key(&key, map);
	return intern_find(&memo, &key) != INTERN_NONE;
}

void discovery_memo_add(const struct procfs_map *map)
{
	struct memo_key key;
	bool fresh;

	if (!memo_on || memo.count >= MEMO_MAX)
		return;
	memo_key(&key, map);
	/* Without memory for it the file is opened the next time, too. */
	intern_add(&memo, &key, &fresh);
}

// SPDX-License-Identifier: Apache-2.0
#include "native/debug_cache.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "native/debug_file.h"

/* Each may be an open file, of which a helper has 64. */
#define KEPT_MAX 16
/* Bytes that were unpacked: what unpacking the largest and reading its names leave of a helper's 128 MiB. */
#define BYTES_MAX ((size_t)16 << 20)

struct kept {
	struct native_identity of;
	struct native_debug debug; /* elf NULL: the place is free */
	uint64_t used;             /* number of the look-up that used it last */
};

static struct kept kept[KEPT_MAX];
static uint64_t look_ups;

static struct kept *find_kept(const struct native_identity *of)
{
	for (size_t i = 0; i < KEPT_MAX; i++) {
		if (kept[i].debug.elf && !memcmp(&kept[i].of, of, sizeof(*of)))
			return &kept[i];
	}
	return NULL;
}

/* Returns a free place, or the one that was used longest ago. */
static struct kept *find_oldest(void)
{
	struct kept *oldest = &kept[0];

	for (size_t i = 0; i < KEPT_MAX; i++) {
		if (!kept[i].debug.elf)
			return &kept[i];
		if (kept[i].used < oldest->used)
			oldest = &kept[i];
	}
	return oldest;
}

/* Returns the place of unpacked symbols that was used longest ago, or NULL. */
static struct kept *find_oldest_unpacked(size_t *bytes)
{
	struct kept *oldest = NULL;

	*bytes = 0;
	for (size_t i = 0; i < KEPT_MAX; i++) {
		*bytes += kept[i].debug.size;
		if (kept[i].debug.size && (!oldest || kept[i].used < oldest->used))
			oldest = &kept[i];
	}
	return oldest;
}

struct elf_file *native_debug_find(const struct native_identity *of, struct elf_file *elf, pid_t pid, const char *path)
{
	struct kept *found = find_kept(of);

	if (!found) {
		found = find_oldest();
		native_debug_close(&found->debug);
		if (native_debug_open(elf, pid, path, &found->debug))
			return NULL;
		found->of = *of;
	}
	found->used = ++look_ups;
	return found->debug.elf;
}

void native_debug_trim(void)
{
	struct kept *oldest;
	size_t bytes;

	while ((oldest = find_oldest_unpacked(&bytes)) && bytes > BYTES_MAX)
		native_debug_close(&oldest->debug);
}

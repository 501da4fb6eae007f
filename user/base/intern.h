// SPDX-License-Identifier: Apache-2.0
/*
 * Things that are there once each: items in an array, found through an open-addressing table of their indexes, so that
 * they cost a few bytes beside their content.
 */
#ifndef BASE_INTERN_H
#define BASE_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returned instead of an index. */
#define INTERN_NONE UINT32_MAX

/* Instead of a key's size: the item begins with a char *, and the text there is its key. */
#define INTERN_TEXT 0
/* Likewise: it begins with a struct intern_bytes. */
#define INTERN_BYTES UINT16_MAX

struct intern_bytes {
	const void *bytes;
	size_t size;
};

struct intern {
	void *items;
	uint32_t *slots; /* index + 1; 0: empty */
	uint32_t count, capacity, mask;
	uint16_t item_size, key_size;
};

/*
 * The key of an item is its first key_size bytes, which have no padding, or what INTERN_TEXT and INTERN_BYTES say.
 * Nothing is allocated before the first item is added.
 */
#define INTERN_INIT(item, key)                                                                                         \
	{                                                                                                              \
		.item_size = (item), .key_size = (key)                                                                 \
	}
void intern_init(struct intern *t, size_t item_size, size_t key_size);
/* Frees items and table, not what items point to. */
void intern_free(struct intern *t);

/* The index of the item that has the key of *item, or INTERN_NONE. */
uint32_t intern_find(const struct intern *t, const void *item);

/*
 * The index of the item that has the key of *item, which is appended where there is none (*fresh tells). INTERN_NONE
 * when memory is exhausted. Indexes stay as they are until something is removed; pointers to items, until one is added.
 */
uint32_t intern_add(struct intern *t, const void *item, bool *fresh);

/* Removes the item at the index; the last one takes its place. A table that is empty then holds no memory. */
void intern_remove(struct intern *t, uint32_t index);

static inline void *intern_item(const struct intern *t, uint32_t index)
{
	return (char *)t->items + (size_t)index * t->item_size;
}

#endif

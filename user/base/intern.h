// SPDX-License-Identifier: Apache-2.0
/*
 * Tables of unique items: an array of items, found through an open-addressing table of their indexes, so that an item
 * costs a few bytes beside its content.
 */
#ifndef BASE_INTERN_H
#define BASE_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returned instead of an index when there is no item. */
#define INTERN_NONE UINT32_MAX

/* Passed as key size: the item begins with a char *, and the text that it points to is the key. */
#define INTERN_TEXT 0
/* Passed as key size: the item begins with a struct intern_bytes, which is the key. */
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
 * The key of an item is its first key_size bytes, which have no padding, or as INTERN_TEXT and INTERN_BYTES say. No
 * memory is allocated before the first item is added.
 */
#define INTERN_INIT(item, key)                                                                                         \
	{                                                                                                              \
		.item_size = (item), .key_size = (key)                                                                 \
	}
void intern_init(struct intern *t, size_t item_size, size_t key_size);
/* Frees the items and the table, but not the memory that items point to. */
void intern_free(struct intern *t);

/* Returns the index of the item that has the key of *item, or INTERN_NONE. */
uint32_t intern_find(const struct intern *t, const void *item);

/*
 * Returns the index of the item that has the key of *item. If the table has none, appends *item and sets *fresh.
 * Returns INTERN_NONE when memory is exhausted. Indexes stay valid until an item is removed, and pointers to items
 * until one is added.
 */
uint32_t intern_add(struct intern *t, const void *item, bool *fresh);

/* Removes the item at the index; the last item takes its place. An empty table holds no memory. */
void intern_remove(struct intern *t, uint32_t index);

/* Puts *item, whose key no item of the table has, in place of the item at the index. */
void intern_replace(struct intern *t, uint32_t index, const void *item);

/*
 * Removes the oldest item, to make room for one that is added next, in a table that never has more items than now. Only
 * this function may remove items from the table. *oldest: the index of the item to remove; 0 the first time.
 */
void intern_remove_oldest(struct intern *t, uint32_t *oldest);

static inline void *intern_item(const struct intern *t, uint32_t index)
{
	return (char *)t->items + (size_t)index * t->item_size;
}

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Tables of unique items, by open addressing. Most keys are chosen by strangers: the hash has a key, so that they
 * cannot choose items for one place, which would be compared with each other.
 */
#include "base/intern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/siphash.h"

#define FIRST_SLOTS 4

void intern_init(struct intern *t, size_t item_size, size_t key_size)
{
	*t = (struct intern){.item_size = (uint16_t)item_size, .key_size = (uint16_t)key_size};
}

void intern_free(struct intern *t)
{
	free(t->items);
	free(t->slots);
	intern_init(t, t->item_size, t->key_size);
}

static struct intern_bytes key_of(const struct intern *t, const void *item)
{
	struct intern_bytes key = {.bytes = item, .size = t->key_size};

	if (t->key_size == INTERN_TEXT) {
		key.bytes = *(const char *const *)item;
		key.size = strlen(key.bytes);
	} else if (t->key_size == INTERN_BYTES) {
		key = *(const struct intern_bytes *)item;
	}
	return key;
}

static uint64_t hash_of(const struct intern *t, const void *item)
{
	struct intern_bytes key = key_of(t, item);

	return siphash(siphash_process_key(), key.bytes, key.size);
}

static bool equal(const struct intern *t, const void *a, const void *b)
{
	struct intern_bytes x = key_of(t, a), y = key_of(t, b);

	return x.size == y.size && memcmp(x.bytes, y.bytes, x.size) == 0;
}

/* Returns the slot of the item with that key, or the empty slot for it. The table always has an empty slot. */
static uint32_t slot_of(const struct intern *t, const void *item)
{
	uint32_t at = (uint32_t)hash_of(t, item) & t->mask;

	while (t->slots[at] && !equal(t, intern_item(t, t->slots[at] - 1), item))
		at = (at + 1) & t->mask;
	return at;
}

static int reserve_item(struct intern *t)
{
	size_t room = t->capacity;

	if (t->count >= UINT32_MAX / 4 || array_reserve(&t->items, &room, (size_t)t->count + 1, t->item_size))
		return -ENOMEM;
	t->capacity = (uint32_t)room;
	return 0;
}

/* Keeps the table at most half full. */
static int reserve_slot(struct intern *t)
{
	uint32_t size = t->slots ? (t->mask + 1) * 2 : FIRST_SLOTS;
	uint32_t *slots;

	if (t->slots && ((uint64_t)t->count + 1) * 2 <= (uint64_t)t->mask + 1)
		return 0;
	slots = calloc(size, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(t->slots);
	t->slots = slots;
	t->mask = size - 1;
	for (uint32_t i = 0; i < t->count; i++) {
		uint32_t at = (uint32_t)hash_of(t, intern_item(t, i)) & t->mask;

		while (slots[at])
			at = (at + 1) & t->mask;
		slots[at] = i + 1;
	}
	return 0;
}

uint32_t intern_find(const struct intern *t, const void *item)
{
	return t->slots ? t->slots[slot_of(t, item)] - 1 : INTERN_NONE;
}

uint32_t intern_add(struct intern *t, const void *item, bool *fresh)
{
	uint32_t at;

	*fresh = false;
	if (reserve_slot(t) || reserve_item(t))
		return INTERN_NONE;
	at = slot_of(t, item);
	if (t->slots[at])
		return t->slots[at] - 1;
	memcpy(intern_item(t, t->count), item, t->item_size);
	t->slots[at] = ++t->count;
	*fresh = true;
	return t->count - 1;
}

/* Empties a slot, and moves up the items behind it that would not be found any more. */
static void empty_slot(struct intern *t, uint32_t hole)
{
	for (uint32_t at = (hole + 1) & t->mask; t->slots[at]; at = (at + 1) & t->mask) {
		uint32_t home = (uint32_t)hash_of(t, intern_item(t, t->slots[at] - 1)) & t->mask;

		if (((at - home) & t->mask) >= ((at - hole) & t->mask)) {
			t->slots[hole] = t->slots[at];
			hole = at;
		}
	}
	t->slots[hole] = 0;
}

void intern_remove(struct intern *t, uint32_t index)
{
	uint32_t last = t->count - 1;

	empty_slot(t, slot_of(t, intern_item(t, index)));
	if (index != last) {
		t->slots[slot_of(t, intern_item(t, last))] = index + 1;
		memcpy(intern_item(t, index), intern_item(t, last), t->item_size);
	}
	t->count--;
	if (!t->count)
		intern_free(t);
}

void intern_replace(struct intern *t, uint32_t index, const void *item)
{
	empty_slot(t, slot_of(t, intern_item(t, index)));
	memcpy(intern_item(t, index), item, t->item_size);
	t->slots[slot_of(t, item)] = index + 1;
}

/*
 * The newest item, which is the last, takes the place of the removed one, and the item that is added next is the last:
 * so all items but the last form a ring, in order of their age.
 */
void intern_remove_oldest(struct intern *t, uint32_t *oldest)
{
	intern_remove(t, *oldest);
	*oldest = t->count ? (*oldest + 1) % t->count : 0;
}

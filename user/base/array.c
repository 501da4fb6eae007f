// SPDX-License-Identifier: Apache-2.0
/* Grows arrays. */
#include "base/array.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 4

/* A pointer to items of any type. */
typedef void *__attribute__((may_alias)) any_pointer;

int array_reserve(void *array, size_t *room, size_t count, size_t item_size)
{
	size_t grown = *room <= SIZE_MAX / 2 ? *room + *room / 2 : count;
	any_pointer *items = array;
	void *moved;

	if (count <= *room)
		return 0;
	if (grown < FIRST_ROOM)
		grown = FIRST_ROOM;
	if (grown < count)
		grown = count;
	moved = reallocarray(*items, grown, item_size);
	if (!moved)
		return -ENOMEM;
	*items = moved;
	*room = grown;
	return 0;
}

size_t array_count_up_to(const void *items, size_t count, size_t item_size, size_t offset, uint64_t most)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		uint64_t number;

		memcpy(&number, (const char *)items + middle * item_size + offset, sizeof(number));
		if (number <= most)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

// SPDX-License-Identifier: Apache-2.0
/* Grows arrays. */
#include "base/array.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

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

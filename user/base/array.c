// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 4

int array_reserve(void *array, size_t *room, size_t count, size_t item_size)
{
	size_t grown = *room <= SIZE_MAX / 2 ? *room + *room / 2 : count;
	void *items;

	if (count <= *room)
		return 0;
	if (grown < FIRST_ROOM)
		grown = FIRST_ROOM;
	if (grown < count)
		grown = count;
	/* Through its bytes: it is a pointer to whatever the items are. */
	memcpy(&items, array, sizeof(items));
	items = reallocarray(items, grown, item_size);
	if (!items)
		return -ENOMEM;
	memcpy(array, &items, sizeof(items));
	*room = grown;
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stddef.h>

/*
 * Makes an array take at least count items of item_size bytes. array: the address of the pointer to it, of NULL at
 * first; room: the items that it takes, 0 at first. It grows by half at least, so that appending n items copies a few
 * n. Returns 0, or -ENOMEM with the array as it was.
 */
int array_reserve(void *array, size_t *room, size_t count, size_t item_size);

#endif

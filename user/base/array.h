// SPDX-License-Identifier: Apache-2.0
/* Arrays that grow, and the search in sorted ones. */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stddef.h>
#include <stdint.h>

/*
 * Makes an array take at least count items of item_size bytes. array: address of the pointer to the items, which is
 * NULL at first. room: number of items that the array takes, 0 at first. The array grows by half at least, so that
 * appending n items one by one copies a few times n items. Returns 0, or -ENOMEM with the array as it was.
 */
int array_reserve(void *array, size_t *room, size_t count, size_t item_size);

/*
 * Returns how many items of an array have a number of at most `most`, by which the items are sorted: a uint64_t at
 * offset in each item of item_size bytes.
 */
size_t array_count_up_to(const void *items, size_t count, size_t item_size, size_t offset, uint64_t most);

#endif

// SPDX-License-Identifier: Apache-2.0
/* The number of bytes that are allocated, for tests that look for leaks. */
#ifndef ALLOCATED_H
#define ALLOCATED_H

#include <stddef.h>

/* From sanitizer/allocator_interface.h: returns the bytes that were allocated and not freed. */
/* NOLINTNEXTLINE(bugprone-reserved-identifier): the sanitizer's own. */
size_t __sanitizer_get_current_allocated_bytes(void);

static inline size_t allocated_bytes(void)
{
	return __sanitizer_get_current_allocated_bytes();
}

#endif

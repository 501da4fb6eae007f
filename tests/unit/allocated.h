// SPDX-License-Identifier: Apache-2.0
#ifndef ALLOCATED_H
#define ALLOCATED_H

#include <stddef.h>

/* Of sanitizer/allocator_interface.h: bytes that malloc has given out and that were not freed. */
/* NOLINTNEXTLINE(bugprone-reserved-identifier): the sanitizer's own. */
size_t __sanitizer_get_current_allocated_bytes(void);

static inline size_t allocated_bytes(void)
{
	return __sanitizer_get_current_allocated_bytes();
}

#endif

// SPDX-License-Identifier: Apache-2.0
/* What is left of a number. */
#ifndef BASE_BEYOND_H
#define BASE_BEYOND_H

#include <stdint.h>

/* Returns all - part, or 0 where the part is more: numbers that change meanwhile are not read at one moment. */
static inline uint64_t beyond(uint64_t all, uint64_t part)
{
	return all > part ? all - part : 0;
}

#endif

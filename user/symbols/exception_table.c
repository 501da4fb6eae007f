// SPDX-License-Identifier: Apache-2.0
/* Reads the table as InternalDocs/exception_handling.md of CPython describes it. */
#include "symbols/exception_table.h"

#include <stdbool.h>

/* A number is in bytes of 6 bits, the highest first; bit 6 says that another one follows. Bit 7 begins an entry. */
#define VALUE_BITS 6
#define VALUE_MASK 0x3f
#define GOES_ON    0x40
#define BYTES_MAX  6

struct reader {
	const uint8_t *at, *end;
};

static bool read_number(struct reader *r, uint32_t *out)
{
	*out = 0;
	for (int i = 0; i < BYTES_MAX && r->at < r->end; i++) {
		uint8_t byte = *r->at++;

		*out = *out << VALUE_BITS | (byte & VALUE_MASK);
		if (!(byte & GOES_ON))
			return true;
	}
	return false;
}

uint32_t py_exception_depth(const uint8_t *table, size_t size, uint32_t instruction)
{
	struct reader r = {.at = table, .end = table + size};
	uint32_t start, length, target, depth;

	while (r.at < r.end) {
		if (!read_number(&r, &start) || !read_number(&r, &length) || !read_number(&r, &target) ||
		    !read_number(&r, &depth))
			return 0;
		if (instruction >= start && instruction - start < length)
			return depth >> 1; /* bit 0: whether the instruction's number is pushed, too */
	}
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* The code of a file that has no call frame information, and where functions begin in it. */
#ifndef NATIVE_FLOW_CODE_H
#define NATIVE_FLOW_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/elf_file.h"
#include "native/eh_frame.h"

/* What begins at an address, in order of certainty. */
enum flow_begin {
	FLOW_BEGIN_NONE,
	FLOW_BEGIN_PERHAPS, /* its address is taken */
	FLOW_BEGIN_FUNCTION,
	FLOW_BEGIN_ENDLESS, /* a function that never returns */
};

/* Code that no function covers. */
struct flow_gap {
	uint64_t start, end;
	uint8_t *code;
	uint8_t *begins; /* enum flow_begin of each byte */
};

struct flow_code {
	struct elf_file *elf;
	struct flow_gap *gaps; /* in order */
	size_t nr_gaps, gaps_room;
	const struct eh_frame_function *covered; /* in order */
	size_t nr_covered;
	uint64_t *starts; /* addresses at which something begins, in the order in which they were found */
	size_t nr_starts, starts_room;
	uint64_t left; /* bytes of covered functions that may still be decoded */
	int err;       /* 0 or -ENOMEM */
};

/* Finds and reads what the functions leave over of the file's code. Sets c->err. */
void flow_code_open(struct flow_code *c, struct elf_file *elf, const struct eh_frame_function *covered, size_t count);
void flow_code_close(struct flow_code *c);

/* Notes what begins in gaps by what the rest of the file says. Sets c->err. */
void flow_code_find_starts(struct flow_code *c);
/* Notes what begins at an address, if that is in a gap. Sets c->err. */
void flow_code_note(struct flow_code *c, uint64_t address, enum flow_begin how);

/* Returns the gap that has an address, or NULL. */
const struct flow_gap *flow_code_gap(const struct flow_code *c, uint64_t address);
enum flow_begin flow_code_begin_at(const struct flow_code *c, uint64_t address);
/* Returns the covered function that has the address, or NULL. */
const struct eh_frame_function *flow_code_covered(const struct flow_code *c, uint64_t address);

#endif

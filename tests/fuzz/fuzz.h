// SPDX-License-Identifier: Apache-2.0
/* What the fuzz targets share: input taken from the front, layouts to choose from, memory that is the input. */
#ifndef FUZZ_H
#define FUZZ_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "discovery/layout.h"
#include "symbols/walk_user.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CHECK(condition)                                                                                          \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                        \
			abort();                                                                                       \
		}                                                                                                      \
	} while (0)

struct fuzz_input {
	const uint8_t *data;
	size_t size;
};

/* Copies size bytes from the front; what the input does not have is 0. */
static inline void fuzz_take(struct fuzz_input *in, void *dst, size_t size)
{
	size_t have = size < in->size ? size : in->size;

	memset(dst, 0, size);
	memcpy(dst, in->data, have);
	in->data += have;
	in->size -= have;
}

static inline uint8_t fuzz_take_u8(struct fuzz_input *in)
{
	uint8_t value;

	fuzz_take(in, &value, sizeof(value));
	return value;
}

/* A layout of any kind there is: the tables', and what the debug offsets in tests/data give. */
static inline void fuzz_layout(uint8_t which, struct pybpf_layout *out)
{
	static const int tables[][2] = {{2, 7}, {3, 6}, {3, 7}, {3, 8}, {3, 9}, {3, 10}, {3, 11}, {3, 12}};
	static const char *const files[] = {"3.13", "3.13-debug", "3.14", "3.14t", "3.15", "3.15t"};
	enum {
		TABLES = 2 * sizeof(tables) / sizeof(tables[0]),
		FILES = sizeof(files) / sizeof(files[0])
	};
	static struct pybpf_layout known[TABLES + FILES];
	static bool ready;

	for (int i = 0; !ready && i < TABLES + FILES; i++) {
		struct layout_build build;

		if (i < TABLES) {
			FUZZ_CHECK(!layout_from_table(tables[i / 2][0], tables[i / 2][1], i % 2, &build));
		} else {
			uint8_t bytes[LAYOUT_DEBUG_OFFSETS_MAX];
			char path[128];
			struct error error;
			size_t len;
			FILE *f;

			snprintf(path, sizeof(path), "tests/data/debug-offsets-%s.bin", files[i - TABLES]);
			f = fopen(path, "rb");
			if (!f) {
				fprintf(stderr, "%s is missing: run it in the project's folder\n", path);
				exit(1);
			}
			len = fread(bytes, 1, sizeof(bytes), f);
			fclose(f);
			FUZZ_CHECK(!layout_from_debug_offsets(bytes, len, &build, &error));
		}
		known[i] = build.layout;
	}
	ready = true;
	*out = known[which % (TABLES + FILES)];
}

/*
 * Memory that is the input over and over: nearly every address is readable, so that nearly every number is a pointer.
 * Addresses with bit 60 set are not mapped.
 */
struct fuzz_memory {
	const uint8_t *data;
	size_t size;
};

#define FUZZ_UNMAPPED (1ULL << 60)

static inline int fuzz_read(void *source, uint64_t addr, void *dst, size_t size)
{
	struct fuzz_memory *memory = (struct fuzz_memory *)source;
	uint8_t *to = (uint8_t *)dst;

	if (addr & FUZZ_UNMAPPED || !memory->size)
		return -EFAULT;
	while (size) {
		size_t at = addr % memory->size, some = memory->size - at < size ? memory->size - at : size;

		memcpy(to, memory->data + at, some);
		to += some;
		addr += some;
		size -= some;
	}
	return 0;
}

static inline void fuzz_check_stack(const struct walk_stack *stack)
{
	const uint32_t flags = PYBPF_STACK_CUT | PYBPF_STACK_NO_ROOT | PYBPF_STACK_FAULT | PYBPF_STACK_NOT_CODE |
			       PYBPF_STACK_CYCLE | PYBPF_STACK_NO_CALLERS;

	FUZZ_CHECK(stack->depth <= PYBPF_MAX_WALK);
	FUZZ_CHECK(!(stack->flags & ~flags));
	FUZZ_CHECK((stack->depth > PYBPF_MAX_FRAMES) == !!(stack->flags & PYBPF_STACK_CUT));
}

/* Is it UTF-8 of scalar values, without a NUL? (strlen() has found its end.) */
static inline bool fuzz_is_utf8(const char *text)
{
	const uint8_t *p = (const uint8_t *)text;

	while (*p) {
		int more = *p < 0x80 ? 0 : *p >= 0xf0 ? 3 : *p >= 0xe0 ? 2 : 1;
		uint32_t cp = more == 0 ? *p : *p & (0x3fu >> more);
		static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};

		if ((*p >= 0x80 && *p < 0xc2) || *p > 0xf4)
			return false;
		p++;
		for (int i = 0; i < more; i++, p++) {
			if ((*p & 0xc0) != 0x80)
				return false;
			cp = cp << 6 | (*p & 0x3f);
		}
		if (cp < least[more] || cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
			return false;
	}
	return true;
}

#endif

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

#include "cpython/layout.h"
#include "known_pythons.h"
#include "symbols/walk/walk_user.h"

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

/* Copies the last bytes of the input, and takes them away from it. */
static inline void fuzz_take_end(struct fuzz_input *in, void *dst, size_t size)
{
	size_t have = size < in->size ? size : in->size;

	memset(dst, 0, size);
	in->size -= have;
	memcpy(dst, in->data + in->size, have);
}

static inline uint8_t fuzz_take_u8(struct fuzz_input *in)
{
	uint8_t value;

	fuzz_take(in, &value, sizeof(value));
	return value;
}

/* Reads one of known_debug_offsets. Returns its size. */
static inline size_t fuzz_read_offsets(size_t which, uint8_t bytes[LAYOUT_DEBUG_OFFSETS_MAX])
{
	char path[128];
	size_t len;
	FILE *f;

	snprintf(path, sizeof(path), "tests/data/debug-offsets-%s.bin", known_debug_offsets[which]);
	f = fopen(path, "rb");
	if (!f) {
		fprintf(stderr, "%s is missing: run it in the project's folder\n", path);
		exit(1);
	}
	len = fread(bytes, 1, LAYOUT_DEBUG_OFFSETS_MAX, f);
	fclose(f);
	return len;
}

/* A layout of any kind there is: the tables', and what the debug offsets in tests/data give. */
static inline void fuzz_layout(uint8_t which, struct pybpf_layout *out)
{
	enum {
		TABLES = 2 * KNOWN_TABLES,
		LAYOUTS = TABLES + KNOWN_DEBUG_OFFSETS
	};
	static struct pybpf_layout known[LAYOUTS];
	static bool ready;

	for (int i = 0; !ready && i < LAYOUTS; i++) {
		struct layout_build build;

		if (i < TABLES) {
			FUZZ_CHECK(!layout_from_table(known_tables[i / 2][0], known_tables[i / 2][1], i % 2, &build));
		} else {
			uint8_t bytes[LAYOUT_DEBUG_OFFSETS_MAX];
			size_t len = fuzz_read_offsets(i - TABLES, bytes);
			struct error error;

			FUZZ_CHECK(!layout_from_debug_offsets(bytes, len, &build, &error));
		}
		known[i] = build.layout;
	}
	ready = true;
	*out = known[which % LAYOUTS];
}

/*
 * Likewise, of the first byte of the input; with its highest bit set, what debug offsets give that lie: so many of
 * their words, each by its place and its value, are what the process made of them. Returns false where they are
 * refused.
 */
#define FUZZ_LIES 0x80
static inline bool fuzz_take_layout(struct fuzz_input *in, struct pybpf_layout *out)
{
	static uint8_t known[KNOWN_DEBUG_OFFSETS][LAYOUT_DEBUG_OFFSETS_MAX];
	static size_t sizes[KNOWN_DEBUG_OFFSETS];
	uint8_t which = fuzz_take_u8(in), *bytes;
	uint8_t copy[LAYOUT_DEBUG_OFFSETS_MAX];
	struct layout_build build;
	struct error error;
	size_t words;

	if (!(which & FUZZ_LIES)) {
		fuzz_layout(which, out);
		return true;
	}
	which = (which & ~FUZZ_LIES) % KNOWN_DEBUG_OFFSETS;
	bytes = known[which];
	if (!sizes[which])
		sizes[which] = fuzz_read_offsets(which, bytes);
	memcpy(copy, bytes, sizes[which]);
	words = sizes[which] / sizeof(uint64_t);
	for (uint8_t i = fuzz_take_u8(in) % 8; i; i--) {
		uint8_t at = fuzz_take_u8(in);
		uint16_t value;

		fuzz_take(in, &value, sizeof(value));
		memcpy(copy + at % words * sizeof(uint64_t), &(uint64_t){value}, sizeof(uint64_t));
	}
	if (layout_from_debug_offsets(copy, sizes[which], &build, &error))
		return false;
	*out = build.layout;
	return true;
}

/*
 * Memory that is the input over and over: nearly every address is readable, so that nearly every number is a pointer.
 * Addresses with bit 60 set are not mapped.
 */
struct fuzz_memory {
	const uint8_t *data;
	size_t size;
	uint64_t base; /* address of its first byte */
};

#define FUZZ_UNMAPPED (1ULL << 60)

static inline int fuzz_read(void *source, uint64_t addr, void *dst, size_t size)
{
	struct fuzz_memory *memory = (struct fuzz_memory *)source;
	uint8_t *to = (uint8_t *)dst;

	if (addr & FUZZ_UNMAPPED || !memory->size)
		return -EFAULT;
	while (size) {
		size_t at = (addr - memory->base) % memory->size,
		       some = memory->size - at < size ? memory->size - at : size;

		memcpy(to, memory->data + at, some);
		to += some;
		addr += some;
		size -= some;
	}
	return 0;
}

/*
 * Memory that its process changes while it is read: a read can answer otherwise than the one before. What it answers
 * depends on its number and on the seed alone, so that an input that fails fails again.
 */
#define FUZZ_WORDS 64
#define FUZZ_ODDS  64
struct fuzz_changing {
	struct walk_memory below;
	uint64_t seed;
	uint32_t odds;              /* so many of FUZZ_ODDS reads are changed */
	uint32_t reads, most;       /* after most reads the process has ended; 0: it does not end */
	uint64_t words[FUZZ_WORDS]; /* that were read lately: other pointers, sizes and flags of this process */
};

static inline uint64_t fuzz_mix(uint64_t value)
{
	value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
	value = (value ^ value >> 27) * 0x94d049bb133111ebu;
	return value ^ value >> 31;
}

/* Returns what is in place of a word. */
static inline uint64_t fuzz_change(const struct fuzz_changing *memory, uint64_t hash, uint64_t word)
{
	switch (hash & 7) {
	case 0:
		return 0;
	case 1:
		return UINT64_MAX;
	case 2:
		return word + (hash & 8 ? 1 : UINT64_MAX);
	case 3:
		return word ^ 1ull << (hash >> 4 & 63);
	case 4:
		return hash >> 4 & 0xfff;
	default:
		return memory->words[hash >> 4 & (FUZZ_WORDS - 1)];
	}
}

static inline int fuzz_read_changing(void *source, uint64_t addr, void *dst, size_t size)
{
	struct fuzz_changing *memory = (struct fuzz_changing *)source;
	uint64_t hash = fuzz_mix(memory->seed + ++memory->reads), word = 0;
	size_t part = size < sizeof(word) ? size : sizeof(word), at;
	bool changes = hash % FUZZ_ODDS < memory->odds;

	if ((memory->most && memory->reads > memory->most) ||
	    memory->below.read(memory->below.source, addr, dst, size) || (changes && !(hash >> 8 & 7)))
		return -EFAULT;
	at = (hash >> 16) % (size / sizeof(word) + 1) * sizeof(word);
	at = at + part > size ? 0 : at;
	memcpy(&word, (uint8_t *)dst + at, part);
	if (changes) {
		word = fuzz_change(memory, hash >> 32, word);
		memcpy((uint8_t *)dst + at, &word, part);
	} else if (part == sizeof(word)) {
		memory->words[memory->reads % FUZZ_WORDS] = word;
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

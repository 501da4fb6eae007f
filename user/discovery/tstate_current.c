// SPDX-License-Identifier: Apache-2.0
/*
 * Where 3.7 to 3.11 keep the thread state that holds the GIL, _PyRuntime.gilstate.tstate_current. It comes after the
 * GIL's mutexes, whose size is the C library's: glibc's have 40 bytes on x86-64 and 48 on arm64, musl's 40. So on arm64
 * the code that returns it tells it: _PyThreadState_UncheckedGet().
 */
#include "discovery/internal.h"

/* Instructions of the function that are read: bti, adrp, up to two ldr or add, ldr, ret. */
#define CODE_MAX 6
/* Bytes by which it may lie behind its place on x86-64. */
#define SHIFT_MAX 64

#define BTI_C 0xd503245fu
#define RET   0xd65f03c0u
/* adrp xN, page */
#define ADRP      0x90000000u
#define ADRP_MASK 0x9f000000u
/* add xN, xM, #immediate; ldr xN, [xM, #8 * immediate] */
#define ADD            0x91000000u
#define LDR            0xf9400000u
#define IMMEDIATE_MASK 0xffc00000u

static uint32_t target_of(uint32_t instruction)
{
	return instruction & 31;
}

static uint32_t base_of(uint32_t instruction)
{
	return instruction >> 5 & 31;
}

static uint64_t immediate_of(uint32_t instruction)
{
	return instruction >> 10 & 0xfff;
}

/* Returns what adrp at this address puts into its register: the address of a page. */
static uint64_t page_of(uint32_t instruction, uint64_t at)
{
	uint64_t pages = (uint64_t)(instruction >> 5 & 0x7ffff) << 2 | (instruction >> 29 & 3);

	/* 21 bits with a sign */
	pages = (pages ^ 1u << 20) - (1u << 20);
	return (at & ~0xfffull) + (pages << 12);
}

uint64_t discovery_decode_tstate_current(const uint32_t *code, size_t count, uint64_t at, uint64_t runtime)
{
	size_t i = count && code[0] == BTI_C;
	uint64_t value;

	if (i >= count || (code[i] & ADRP_MASK) != ADRP)
		return 0;
	value = page_of(code[i], at + i * sizeof(*code));
	for (i++; i + 1 < count && base_of(code[i]) == target_of(code[i - 1]); i++) {
		bool loads = (code[i] & IMMEDIATE_MASK) == LDR;

		if (loads && code[i + 1] == RET)
			return value + 8 * immediate_of(code[i]);
		if (loads)
			value = runtime; /* from the global offset table */
		else if ((code[i] & IMMEDIATE_MASK) == ADD)
			value += immediate_of(code[i]);
		else
			break;
	}
	return 0;
}

void discovery_find_tstate_current(const struct discovery_symbols *symbols, struct discovery_runtime *runtime,
				   uint64_t address)
{
	uint32_t code[CODE_MAX], *offset = &runtime->build.runtime_tstate_current, usual = *offset;
	struct elf_symbol function;
	uint64_t found = 0;
	ssize_t n;

	if (usual == LAYOUT_NONE)
		return;
	*offset = LAYOUT_NONE;
	if (!discovery_symbol(symbols, "_PyThreadState_UncheckedGet", &function))
		return;
	n = elf_file_read(symbols->elf, function.value, code, sizeof(code));
	if (n > 0)
		found = discovery_decode_tstate_current(code, (size_t)n / sizeof(*code), function.value, address);
	if (found - address - usual <= SHIFT_MAX && found % 8 == 0)
		*offset = (uint32_t)(found - address);
}

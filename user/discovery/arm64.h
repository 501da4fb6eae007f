// SPDX-License-Identifier: Apache-2.0
/* Instructions of arm64 by which code reaches a variable or returns: compiled everywhere, so that tests can play them.
 */
#ifndef DISCOVERY_ARM64_H
#define DISCOVERY_ARM64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARM64_BTI_C 0xd503245fu
#define ARM64_RET   0xd65f03c0u
/* adrp xN, page */
#define ARM64_ADRP      0x90000000u
#define ARM64_ADRP_MASK 0x9f000000u
/* add xN, xM, #immediate; ldr xN, [xM, #8 * immediate]; str xN, [xM, #8 * immediate]; sub xN, xM, #immediate */
#define ARM64_ADD            0x91000000u
#define ARM64_LDR            0xf9400000u
#define ARM64_STR            0xf9000000u
#define ARM64_SUB            0xd1000000u
#define ARM64_IMMEDIATE_MASK 0xffc00000u

static inline uint32_t arm64_target(uint32_t instruction)
{
	return instruction & 31;
}

static inline uint32_t arm64_base(uint32_t instruction)
{
	return instruction >> 5 & 31;
}

static inline uint64_t arm64_immediate(uint32_t instruction)
{
	return instruction >> 10 & 0xfff;
}

static inline bool arm64_is_adrp(uint32_t instruction)
{
	return (instruction & ARM64_ADRP_MASK) == ARM64_ADRP;
}

/* Returns whether it is ARM64_ADD, _LDR, _STR or _SUB. */
static inline bool arm64_is(uint32_t instruction, uint32_t kind)
{
	return (instruction & ARM64_IMMEDIATE_MASK) == kind;
}

/* Returns what adrp at this address puts into its register: the address of a page of 4 KiB, whatever the kernel's. */
static inline uint64_t arm64_page(uint32_t instruction, uint64_t at)
{
	uint64_t pages = (uint64_t)(instruction >> 5 & 0x7ffff) << 2 | (instruction >> 29 & 3);

	/* 21 bits with a sign */
	pages = (pages ^ 1u << 20) - (1u << 20);
	return (at & ~0xfffull) + (pages << 12);
}

/*
 * variables_arm64.c: returns the address of the variable that a function, whose code is at `at`, loads first; 0: its
 * code begins with something else.
 */
uint64_t discovery_decode_first_load(const uint32_t *code, size_t count, uint64_t at);
/* Returns whether code at `at` stores a register to the variable at addr. */
bool discovery_decodes_store(const uint32_t *code, size_t count, uint64_t at, uint64_t addr);

#endif

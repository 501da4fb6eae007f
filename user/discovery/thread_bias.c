// SPDX-License-Identifier: Apache-2.0
/*
 * How far pthread_self() lies below the thread pointer of arm64. It is the size of a struct of the C library's, which
 * differs between releases (glibc 2.36: 0x740, 2.41: 0x720; musl: 0xc8), and its function has two instructions.
 */
#include "discovery/internal.h"

/* Instructions of pthread_self() that are read: bti, mrs, sub, ret. */
#define CODE_MAX 4

#define BTI_C 0xd503245fu
#define RET   0xd65f03c0u
/* mrs xN, tpidr_el0 */
#define MRS      0xd53bd040u
#define MRS_MASK 0xffffffe0u
/* sub xN, xM, #immediate */
#define SUB      0xd1000000u
#define SUB_MASK 0xffc00000u

static uint32_t low_register(uint32_t instruction)
{
	return instruction & 31;
}

uint16_t discovery_decode_thread_bias(const uint32_t *code, size_t count)
{
	uint32_t load, subtract;

	if (count && code[0] == BTI_C) {
		code++;
		count--;
	}
	if (count < 3)
		return 0;
	load = code[0];
	subtract = code[1];
	if ((load & MRS_MASK) != MRS || (subtract & SUB_MASK) != SUB || code[2] != RET || low_register(subtract) ||
	    (subtract >> 5 & 31) != low_register(load))
		return 0;
	return subtract >> 10 & 0xfff;
}

uint16_t discovery_thread_bias(struct elf_file *elf)
{
	uint32_t code[CODE_MAX];
	struct elf_symbol function;
	ssize_t n;

	if (elf_file_dynamic_symbol(elf, "pthread_self", &function))
		return 0;
	n = elf_file_read(elf, function.value, code, sizeof(code));
	return n < 0 ? 0 : discovery_decode_thread_bias(code, (size_t)n / sizeof(code[0]));
}

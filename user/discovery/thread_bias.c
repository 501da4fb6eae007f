// SPDX-License-Identifier: Apache-2.0
/*
 * How far pthread_self() lies below the thread pointer of arm64. It is the size of a struct of the C library's, which
 * differs between releases (glibc 2.36: 0x740, 2.41: 0x720; musl: 0xc8), and its function has two instructions.
 */
#include "discovery/arm64.h"
#include "discovery/internal.h"

/* Instructions of pthread_self() that are read: bti, mrs, sub, ret. */
#define CODE_MAX 4

/* mrs xN, tpidr_el0 */
#define MRS      0xd53bd040u
#define MRS_MASK 0xffffffe0u

uint16_t discovery_decode_thread_bias(const uint32_t *code, size_t count)
{
	uint32_t load, subtract;

	if (count && code[0] == ARM64_BTI_C) {
		code++;
		count--;
	}
	if (count < 3)
		return 0;
	load = code[0];
	subtract = code[1];
	if ((load & MRS_MASK) != MRS || !arm64_is(subtract, ARM64_SUB) || code[2] != ARM64_RET ||
	    arm64_target(subtract) || arm64_base(subtract) != arm64_target(load))
		return 0;
	return (uint16_t)arm64_immediate(subtract);
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

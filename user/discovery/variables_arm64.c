// SPDX-License-Identifier: Apache-2.0
/* Variables in the code of arm64: adrp makes the page's address, and what follows adds the rest of the variable's. */
#include "discovery/arm64.h"

#define REGISTERS 32

uint64_t discovery_decode_first_load(const uint32_t *code, size_t count, uint64_t at)
{
	size_t i = count && code[0] == ARM64_BTI_C;
	uint64_t value;

	if (i >= count || !arm64_is_adrp(code[i]))
		return 0;
	value = arm64_page(code[i], at + i * sizeof(*code));
	for (i++; i < count && arm64_base(code[i]) == arm64_target(code[i - 1]); i++) {
		if (arm64_is(code[i], ARM64_LDR))
			return value + 8 * arm64_immediate(code[i]);
		if (!arm64_is(code[i], ARM64_ADD))
			break;
		value += arm64_immediate(code[i]);
	}
	return 0;
}

/*
 * It follows the instructions as they lie, not the jumps between them, and so forgets no address: what a register holds
 * by then may be another one, but none other than the variable's leads to the variable.
 */
bool discovery_decodes_store(const uint32_t *code, size_t count, uint64_t at, uint64_t addr)
{
	uint64_t known[REGISTERS] = {0};

	for (size_t i = 0; i < count; i++) {
		uint64_t *target = &known[arm64_target(code[i])], base = known[arm64_base(code[i])];

		if (arm64_is(code[i], ARM64_STR) && base && base + 8 * arm64_immediate(code[i]) == addr)
			return true;
		if (arm64_is_adrp(code[i]))
			*target = arm64_page(code[i], at + i * sizeof(*code));
		else if (arm64_is(code[i], ARM64_ADD) && base)
			*target = base + arm64_immediate(code[i]);
	}
	return false;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Where 3.7 to 3.11 keep the thread state that holds the GIL, _PyRuntime.gilstate.tstate_current. It comes after the
 * GIL's mutexes, whose size is the C library's: glibc's have 40 bytes on x86-64 and 48 on arm64, musl's 40. So on arm64
 * the code that returns it tells it: _PyThreadState_UncheckedGet().
 */
#include "discovery/arm64.h"
#include "discovery/internal.h"

/* Instructions of the function that are read: bti, adrp, up to two ldr or add, ldr, ret. */
#define CODE_MAX 6
/* Bytes by which it may lie behind its place on x86-64. */
#define SHIFT_MAX 64

uint64_t discovery_decode_tstate_current(const uint32_t *code, size_t count, uint64_t at, uint64_t runtime)
{
	size_t i = count && code[0] == ARM64_BTI_C;
	uint64_t value;

	if (i >= count || !arm64_is_adrp(code[i]))
		return 0;
	value = arm64_page(code[i], at + i * sizeof(*code));
	for (i++; i + 1 < count && arm64_base(code[i]) == arm64_target(code[i - 1]); i++) {
		bool loads = arm64_is(code[i], ARM64_LDR);

		if (loads && code[i + 1] == ARM64_RET)
			return value + 8 * arm64_immediate(code[i]);
		if (loads)
			value = runtime; /* from the global offset table */
		else if (arm64_is(code[i], ARM64_ADD))
			value += arm64_immediate(code[i]);
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

// SPDX-License-Identifier: Apache-2.0
/*
 * A call leads to where a function begins; a jump into another function's middle is one to a part of the same function.
 * x86-64's instructions are not decoded: what looks like a jump is taken for one, and one function is the target of far
 * more of them than chance allows.
 */
#include "native/cold.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* Most bytes of one function that are looked at: CPython's evaluation loop has some 60 KiB. */
#define CODE_MAX (1u << 20)
/* Jumps to a part, at least. The evaluation loop's has hundreds; bytes that pass for jumps hit any function once. */
#define JUMPS_LEAST 8

static const struct eh_frame_function *function_at(const struct eh_frame_function *functions, size_t count,
						   uint64_t address)
{
	size_t begun = array_count_up_to(functions, count, sizeof(*functions),
					 offsetof(struct eh_frame_function, start), address);

	return begun && address < functions[begun - 1].end ? &functions[begun - 1] : NULL;
}

/* jmp rel32; jcc rel32: Intel SDM, volume 2. Returns the bytes of the instruction, or 0. */
static size_t jump_size(const uint8_t *code, size_t left)
{
	if (left >= 5 && code[0] == 0xe9)
		return 5;
	return left >= 6 && code[0] == 0x0f && (code[1] & 0xf0) == 0x80 ? 6 : 0;
}

/* Counts, by function, the jumps of the code into the middle of others. */
static void count_jumps(const uint8_t *code, size_t size, uint64_t address, const struct eh_frame_function *functions,
			size_t count, uint32_t *jumps)
{
	for (size_t at = 0; at < size; at++) {
		size_t length = jump_size(code + at, size - at);
		const struct eh_frame_function *target;
		int32_t distance;

		if (!length)
			continue;
		memcpy(&distance, code + at + length - sizeof(distance), sizeof(distance));
		target = function_at(functions, count, address + at + length + (uint64_t)(int64_t)distance);
		if (target && target->start != address + at + length + (uint64_t)(int64_t)distance &&
		    !(target->start <= address && address < target->end))
			jumps[target - functions]++;
	}
}

static int look_at(struct elf_file *elf, const struct native_range *range, const struct eh_frame_function *functions,
		   size_t count, uint32_t *jumps)
{
	size_t size = range->end - range->start < CODE_MAX ? range->end - range->start : CODE_MAX;
	uint8_t *code = malloc(size);
	ssize_t n;

	if (!code)
		return -ENOMEM;
	n = elf_file_read(elf, range->start, code, size);
	if (n > 0)
		count_jumps(code, (size_t)n, range->start, functions, count, jumps);
	free(code);
	return 0;
}

int native_add_cold_part(struct elf_file *elf, const struct eh_frame_function *functions, size_t count,
			 struct native_ranges *ranges)
{
	uint32_t *jumps = calloc(count + 1, sizeof(*jumps));
	size_t best = 0;
	int err = jumps ? 0 : -ENOMEM;

	for (size_t i = 0; i < ranges->count && !err; i++)
		err = look_at(elf, &ranges->ranges[i], functions, count, jumps);
	for (size_t i = 1; i < count && !err; i++) {
		if (jumps[i] > jumps[best])
			best = i;
	}
	if (!err && count && jumps[best] >= JUMPS_LEAST && !native_ranges_have(ranges, functions[best].start)) {
		err = array_reserve(&ranges->ranges, &ranges->room, ranges->count + 1, sizeof(*ranges->ranges));
		if (!err)
			ranges->ranges[ranges->count++] =
				(struct native_range){functions[best].start, functions[best].end};
	}
	free(jumps);
	return err;
}

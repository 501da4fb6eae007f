// SPDX-License-Identifier: Apache-2.0
/* Rows of single instructions: the input is code that lies at 0x10000, with traps behind it. */
#include "fuzz.h"
#include "native/ahead.h"
#include "pybpf_native.h"

#define ADDRESS 0x10000

struct input {
	const uint8_t *data;
	size_t size;
};

static size_t read_input(void *arg, uint64_t address, uint8_t *out, size_t size)
{
	const struct input *input = arg;
	size_t left = address - ADDRESS < input->size ? input->size - (size_t)(address - ADDRESS) : 0;

	if (left > size)
		left = size;
	if (left)
		memcpy(out, input->data + (address - ADDRESS), left);
	return left;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	const struct ahead_code code = {read_input, &input};
	struct ahead_rows rows = {.count = 0};

	ahead_add_rows(&code, ADDRESS, true, &rows);
	ahead_add_rows(&code, ADDRESS + size / 2, false, &rows);
	for (size_t i = 0; i < rows.count; i++) {
		FUZZ_CHECK(rows.rows[i].start < rows.rows[i].end && rows.rows[i].rule & PYBPF_RULE_CHECKED);
		FUZZ_CHECK(rows.rows[i].start >= ADDRESS && rows.rows[i].end <= ADDRESS + size);
	}
	free(rows.rows);
	return 0;
}

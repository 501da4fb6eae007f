// SPDX-License-Identifier: Apache-2.0
/* Call frame information: the input is a section .eh_frame that lies at 0x10000. */
#include "fuzz.h"
#include "native/eh_frame.h"
#include "pybpf_native.h"

#define ADDRESS  0x10000
#define ROWS_MAX 100000

struct rows {
	struct eh_frame *section;
	size_t count;
};

static int take(void *arg, uint64_t pc, uint32_t rule)
{
	struct rows *rows = arg;

	(void)pc;
	FUZZ_CHECK(PYBPF_RULE_KIND(rule) <= PYBPF_NATIVE_RETURN);
	FUZZ_CHECK(PYBPF_RULE_BP(rule) <= PYBPF_NATIVE_BP_LOST || PYBPF_RULE_KIND(rule) == PYBPF_NATIVE_SP_WIDE);
	return ++rows->count < ROWS_MAX ? 0 : -1;
}

static int visit(void *arg, const struct eh_frame_function *function)
{
	struct rows *rows = arg;

	FUZZ_CHECK(function->start < function->end && function->offset < rows->section->size);
	return eh_frame_rows(rows->section, function, take, rows) == -1 ? -1 : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct eh_frame section = {.bytes = data, .size = size, .address = ADDRESS};
	struct rows rows = {.section = &section};

	eh_frame_functions(&section, visit, &rows);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* Objects in memory that is the input: a byte for the layout, one for the length of texts, then all memory. */
#include "fuzz.h"
#include "symbols/py_value.h"

/* Less memory is read byte by byte, over and over, which takes long and finds nothing. */
#define LEAST 256
/* PY_OUT_MAX, and what stands for the rest. */
#define MOST (32 * 1024 + 3)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	struct pybpf_layout layout;
	struct fuzz_memory bytes;
	const struct walk_memory memory = {fuzz_read, &bytes};
	const struct pybpf_runtime runtime = {.interp_head = 8};
	struct py_values_of of = {.memory = &memory, .layout = &layout, .runtime = &runtime};
	struct py_values *values;

	fuzz_layout(fuzz_take_u8(&in), &layout);
	of.level = fuzz_take_u8(&in);
	if (in.size < LEAST)
		return 0;
	bytes = (struct fuzz_memory){in.data, in.size};
	values = py_values_new(&of);
	FUZZ_CHECK(values);
	for (uint64_t object = 32; object < 4096 && object < in.size; object += 32) {
		const char *text = py_values_text(values, object & 32 ? "password" : "name", object, &size);

		FUZZ_CHECK(size <= MOST && strlen(text) <= size);
		FUZZ_CHECK(!(object & 32) || !strcmp(text, PY_VALUE_HIDDEN));
	}
	py_values_free(values);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Objects in memory that is the input: the layout, a byte for the length of texts and how often the memory changes,
 * then all memory, whose last bytes say how it changes.
 */
#include "fuzz.h"
#include "symbols/objects/py_value.h"

/* Less memory is read byte by byte, over and over, which takes long and finds nothing. */
#define LEAST 256
/* The process ends then: reads take longer than anything else. */
#define MOST_READS (1u << 14)
/* PY_OUT_MAX, and what stands for the rest. */
#define MOST (32 * 1024 + 3)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	struct pybpf_layout layout;
	struct fuzz_memory bytes;
	struct fuzz_changing changing = {.below = {.read = fuzz_read, .source = &bytes}, .most = MOST_READS};
	const struct walk_memory memory = {.read = fuzz_read_changing, .source = &changing};
	const struct pybpf_runtime runtime = {.interp_head = 8};
	struct py_values_of of = {.memory = &memory, .layout = &layout, .runtime = &runtime};
	struct py_values *values;
	uint8_t options;

	if (!fuzz_take_layout(&in, &layout))
		return 0;
	options = fuzz_take_u8(&in);
	of.level = options & 3;
	changing.odds = options >> 2;
	if (in.size < LEAST)
		return 0;
	memcpy(&changing.seed, in.data + in.size - sizeof(changing.seed), sizeof(changing.seed));
	bytes = (struct fuzz_memory){.data = in.data, .size = in.size};
	values = py_values_new(&of);
	FUZZ_CHECK(values);
	for (uint64_t object = 32; object < 4096 && object < in.size; object += 32) {
		const char *text;

		py_values_begin(values, object & 64);
		text = py_values_text(values, object & 32 ? "password" : "name", object, &size);
		py_values_hold(values);
		FUZZ_CHECK(size <= MOST && strlen(text) <= size);
		FUZZ_CHECK(!(object & 32) || !strcmp(text, PY_VALUE_HIDDEN));
	}
	py_values_free(values);
	return 0;
}

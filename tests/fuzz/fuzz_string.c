// SPDX-License-Identifier: Apache-2.0
/* Strings as they lie in memory: a byte for the layout, then the object from its header on. */
#include "fuzz.h"
#include "symbols/objects/string.h"

/* "\U00110000" for four bytes, "\ud800" for two, "\xff" for one. */
#define GROWTH 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	uint8_t header[PYSYM_STRING_HEADER] = {0}, *characters;
	struct pysym_string_shape shape;
	struct pybpf_layout layout;
	char *text;
	size_t have;
	int err;

	fuzz_layout(fuzz_take_u8(&in), &layout);
	memcpy(header, in.data, in.size < sizeof(header) ? in.size : sizeof(header));
	err = pysym_string_read_shape(&layout, header, &shape);
	FUZZ_CHECK(!err || err == -ENOTSUP || err == -EBADMSG);
	if (err)
		return 0;
	FUZZ_CHECK(shape.data_size <= PYSYM_STRING_MAX);
	FUZZ_CHECK(shape.unit == 1 || shape.unit == 2 || shape.unit == 4);
	FUZZ_CHECK(shape.data_offset == layout.str_ascii_data || shape.data_offset == layout.str_compact_data);
	have = in.size > shape.data_offset ? in.size - shape.data_offset : 0;
	if (have > shape.data_size)
		have = shape.data_size;
	characters = malloc(have ? have : 1);
	FUZZ_CHECK(characters);
	if (have)
		memcpy(characters, in.data + shape.data_offset, have);
	text = pysym_string_decode(&shape, characters, have);
	FUZZ_CHECK(text);
	FUZZ_CHECK(strlen(text) <= GROWTH * have);
	FUZZ_CHECK(fuzz_is_utf8(text));
	free(text);
	free(characters);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* Texts that may be the source of a function: its lines, a byte each, its name and its words, each up to a NUL, a text.
 */
#include "fuzz.h"
#include "session/sources/source_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	struct source_claim claim = {.first_line = (int8_t)fuzz_take_u8(&in), .line = (int8_t)fuzz_take_u8(&in)};
	size_t words = fuzz_take_u8(&in);
	char *copy = calloc(in.size + 2, 1);
	const char *text;

	FUZZ_CHECK(copy);
	memcpy(copy, in.data, in.size);
	claim.name = copy;
	text = copy + strlen(copy);
	text += text < copy + in.size;
	claim.words = text;
	for (; words && *text; words--)
		text += strlen(text) + 1;
	claim.words_size = (size_t)(text - claim.words);
	/* A text that fits with more words fits with fewer. */
	if (source_fits(text, &claim)) {
		claim.words_size = 0;
		FUZZ_CHECK(source_fits(text, &claim));
	}
	free(copy);
	return 0;
}

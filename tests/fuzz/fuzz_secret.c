// SPDX-License-Identifier: Apache-2.0
/* Texts and names in which secrets are looked for: a byte that says whether the text is cut, then the text. */
#include "fuzz.h"
#include "symbols/secrets/py_secret.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	bool cut = fuzz_take_u8(&in) & 1;
	const char *text = (const char *)in.data;
	uint8_t *mask = calloc(in.size + 1, 1), *twice = calloc(in.size + 1, 1);

	FUZZ_CHECK(mask && twice);
	py_secret_mark(text, in.size, cut, mask);
	py_secret_mark(text, in.size, cut, twice);
	FUZZ_CHECK(!memcmp(mask, twice, in.size + 1) && !mask[in.size]);
	for (size_t i = 0; i < in.size; i++)
		FUZZ_CHECK(mask[i] <= 1);
	/* What stands before a secret is its name. */
	if (py_secret_stands_before(text, in.size))
		FUZZ_CHECK(py_secret_is_name(text, in.size));
	free(mask);
	free(twice);
	return 0;
}

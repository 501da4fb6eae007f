// SPDX-License-Identifier: Apache-2.0
/* Names of functions: the input is a symbol. */
#include "fuzz.h"
#include "native/demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char symbol[NATIVE_SYMBOL_MAX + 16], shown[NATIVE_NAME_MAX], small[NATIVE_NAME_MAX / 8];
	bool demangled;

	if (size >= sizeof(symbol))
		return 0;
	memcpy(symbol, data, size);
	symbol[size] = '\0';
	demangled = native_demangle(symbol, shown, sizeof(shown));
	FUZZ_CHECK(strnlen(shown, sizeof(shown)) < sizeof(shown));
	FUZZ_CHECK(!demangled || *shown);
	/* Names of Rust are left alone after many that could not be bounded. */
	FUZZ_CHECK(native_demangle(symbol, small, sizeof(small)) == demangled || symbol[1] == 'R');
	FUZZ_CHECK(strnlen(small, sizeof(small)) < sizeof(small));
	return 0;
}

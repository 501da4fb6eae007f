// SPDX-License-Identifier: Apache-2.0
/* Names of code made at run time: the input is a jitdump. */
#include "fuzz.h"
#include "native/jitdump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct native_named named[4];
	FILE *in = size ? fmemopen((void *)(uintptr_t)data, size, "r") : NULL;

	if (!in)
		return 0;
	memset(named, 0, sizeof(named));
	for (size_t i = 0; i < 4; i++)
		named[i].address = 0x1000 * (i + 1);
	native_jitdump_find(in, named, 4);
	fclose(in);
	for (size_t i = 0; i < 4; i++) {
		FUZZ_CHECK(strnlen(named[i].symbol, sizeof(named[i].symbol)) < sizeof(named[i].symbol));
		FUZZ_CHECK(!named[i].size == !*named[i].symbol);
		FUZZ_CHECK(!named[i].size || named[i].address - named[i].start < named[i].size);
	}
	return 0;
}

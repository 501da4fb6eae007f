// SPDX-License-Identifier: Apache-2.0
/* Names of code that a JIT has registered with debuggers: the input is the process's memory. */
#include "base/remote.h"
#include "fuzz.h"
#include "native/jit_images.h"

#define MEMORY_AT 0x1000
#define COUNT     4

static struct fuzz_input memory;

static int read_memory(pid_t pid, uint64_t address, void *buf, size_t size)
{
	(void)pid;
	if (address < MEMORY_AT || address - MEMORY_AT > memory.size || memory.size - (address - MEMORY_AT) < size)
		return -EFAULT;
	memcpy(buf, memory.data + (address - MEMORY_AT), size);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct native_named named[COUNT];

	memory = (struct fuzz_input){data, size};
	remote_read_by(read_memory);
	memset(named, 0, sizeof(named));
	for (size_t i = 0; i < COUNT; i++)
		named[i].address = 0x500000 + i * 0x100;
	FUZZ_CHECK(!native_jit_find(1, MEMORY_AT, named, COUNT));
	for (size_t i = 0; i < COUNT; i++) {
		FUZZ_CHECK(strnlen(named[i].symbol, sizeof(named[i].symbol)) < sizeof(named[i].symbol));
		FUZZ_CHECK(!named[i].size == !*named[i].symbol);
		FUZZ_CHECK(!named[i].size || named[i].address - named[i].start < named[i].size);
	}
	return 0;
}

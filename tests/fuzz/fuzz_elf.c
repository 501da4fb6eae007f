// SPDX-License-Identifier: Apache-2.0
/* ELF files: the input is the file. */
#include <sys/mman.h>
#include <unistd.h>

#include "base/elf_file.h"
#include "discovery/internal.h"
#include "fuzz.h"

#define STRING_MIN 4
#define READ_MAX   4096
#define SEGMENTS   4

static int visit(const char *text, void *arg)
{
	uint64_t *budget = arg;
	size_t len = strlen(text);

	FUZZ_CHECK(len >= STRING_MIN);
	for (size_t i = 0; i < len; i++)
		FUZZ_CHECK(text[i] >= ' ' || text[i] == '\t' || text[i] == '\n');
	return ++*budget > 1000;
}

static void look_up(struct elf_file *elf)
{
	static const char *const symbols[] = {"_PyRuntime", "Py_Version", "interp_head", "_Py_RefTotal", "", "a"};
	static const char *const sections[] = {".PyRuntime", ".rodata", ".dynsym", ""};
	uint8_t bytes[READ_MAX];
	struct elf_symbol symbol;
	struct elf_section section;
	struct pybpf_asyncio asyncio;

	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		if (!elf_file_symbol(elf, symbols[i], &symbol)) {
			ssize_t n = elf_file_read(elf, symbol.value, bytes, sizeof(bytes));

			FUZZ_CHECK(n <= (ssize_t)sizeof(bytes));
		}
		elf_file_dynamic_symbol(elf, symbols[i], &symbol);
	}
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++)
		if (!elf_file_section(elf, sections[i], &section))
			elf_file_read(elf, section.addr, bytes, sizeof(bytes));
	discovery_read_asyncio(elf, &asyncio);
	FUZZ_CHECK(discovery_thread_bias(elf) < PYBPF_THREAD_BIAS_MAX);
	FUZZ_CHECK(!asyncio.running_task == !asyncio.task_coro && (!asyncio.running_loop || asyncio.running_task));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	struct elf_segment segments[SEGMENTS];
	struct elf_file *elf = NULL;
	uint64_t strings = 0;
	const char *soname;
	int err;

	if (fd < 0)
		fd = memfd_create("fuzz_elf", MFD_CLOEXEC);
	FUZZ_CHECK(fd >= 0 && !ftruncate(fd, 0) && pwrite(fd, data, size, 0) == (ssize_t)size);
	err = elf_file_open(fd, &elf);
	FUZZ_CHECK(!err == !!elf);
	if (err) {
		FUZZ_CHECK(err == -ENOEXEC || err == -ENOTSUP);
		return 0;
	}
	look_up(elf);
	FUZZ_CHECK(elf_file_code_segments(elf, segments, SEGMENTS) <= SEGMENTS);
	elf_file_is_fixed(elf);
	soname = elf_file_soname(elf);
	FUZZ_CHECK(!soname || *soname);
	elf_file_strings(elf, STRING_MIN, visit, &strings);
	elf_file_free(elf);
	return 0;
}

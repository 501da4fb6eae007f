// SPDX-License-Identifier: Apache-2.0
/*
 * Information for debuggers, as libdw reads it: the input is an ELF file whose code lies from 0x1000 on. Where it names
 * a file that it shares with others (dwz), that is this one, too.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "base/elf_file.h"
#include "fuzz.h"
#include "native/lines.h"

#define ROOM  ((size_t)4 << 20)
#define BEGIN 0x1000
#define END   0x1200
#define STEP  8

static void check(const struct native_line *line)
{
	FUZZ_CHECK(memchr(line->function, '\0', sizeof(line->function)));
	FUZZ_CHECK(memchr(line->file, '\0', sizeof(line->file)));
	FUZZ_CHECK(line->line >= 0);
}

static void look_up(struct native_lines *lines)
{
	struct native_line found[NATIVE_INLINED_MAX];

	for (uint64_t address = BEGIN; address < END; address += STEP) {
		int count = native_lines_find(lines, address, found);

		FUZZ_CHECK(count <= NATIVE_INLINED_MAX);
		for (int i = 0; i < count; i++)
			check(&found[i]);
	}
	FUZZ_CHECK(native_lines_find(lines, UINT64_MAX, found) <= NATIVE_INLINED_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	struct native_lines *lines;
	struct elf_file *elf;

	if (fd < 0)
		fd = memfd_create("fuzz_native_lines", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
	if (elf_file_open(fd, &elf))
		return 0;
	if (!native_lines_open(elf, elf, ROOM, &lines)) {
		look_up(lines);
		native_lines_close(lines);
	}
	elf_file_free(elf);
	return 0;
}

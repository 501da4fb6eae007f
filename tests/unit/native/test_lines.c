// SPDX-License-Identifier: Apache-2.0
/* Lines and inlined functions, of this program itself; and of files that lack them, or are damaged. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "native/lines.h"

#define ROOM ((size_t)512 << 20)

struct place {
	uint64_t pc; /* as linked */
	int line;    /* of the function that was inlined last */
};

static int note_bias(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	*(uint64_t *)arg = info->dlpi_addr;
	return 1; /* the first one is the program */
}

/* The return address of a call. */
static __attribute__((noinline)) uint64_t here(void)
{
	uint64_t bias = 0;

	dl_iterate_phdr(note_bias, &bias);
	return (uint64_t)(uintptr_t)__builtin_return_address(0) - 1 - bias;
}

static inline __attribute__((always_inline)) struct place innermost(void)
{
	struct place place;

	place.line = __LINE__ + 1;
	place.pc = here();
	__asm__ volatile("" : : "r"(&place) : "memory");
	return place;
}

static inline __attribute__((always_inline)) struct place middle(int *line)
{
	*line = __LINE__ + 1;
	return innermost();
}

static __attribute__((noinline)) struct place outer(int lines[2])
{
	lines[0] = __LINE__ + 1;
	struct place place = middle(&lines[1]);

	__asm__ volatile("" : : "r"(&place) : "memory");
	return place;
}

static struct native_lines *open_file(const char *path)
{
	struct native_lines *l = NULL;
	struct elf_file *elf;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_int_equal(elf_file_open(fd, &elf), 0);
	assert_int_equal(native_lines_open(elf, NULL, ROOM, &l), 0);
	/* The file may be closed. */
	elf_file_free(elf);
	close(fd);
	return l;
}

static void test_inlined(void **state)
{
	struct native_line found[NATIVE_INLINED_MAX];
	struct native_lines *l = open_file("/proc/self/exe");
	int lines[2];
	struct place place = outer(lines);

	(void)state;
	/* A second look is at what was read before. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(native_lines_find(l, place.pc, found), 3);
		assert_string_equal(found[0].function, "outer");
		assert_string_equal(found[1].function, "middle");
		assert_string_equal(found[2].function, "innermost");
		assert_int_equal(found[0].line, lines[0]);
		assert_int_equal(found[1].line, lines[1]);
		assert_int_equal(found[2].line, place.line);
		for (int f = 0; f < 3; f++)
			assert_string_equal(strrchr(found[f].file, '/'), "/test_lines.c");
	}
	assert_int_equal(native_lines_find(l, 1, found), 0);
	assert_int_equal(native_lines_find(l, UINT64_MAX, found), 0);
	native_lines_close(l);
}

static void test_limit(void **state)
{
	struct native_lines *l = open_file("/proc/self/exe"), *none;
	size_t bytes = native_lines_bytes(l);
	struct elf_file *elf;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(elf_file_open(fd, &elf), 0);
	assert_int_equal(native_lines_open(elf, NULL, bytes - 1, &none), -EFBIG);
	assert_null(none);
	assert_int_equal(native_lines_open(elf, NULL, bytes, &none), 0);
	native_lines_close(none);
	native_lines_close(l);
	elf_file_free(elf);
	close(fd);
	native_lines_close(NULL);
}

/* Copies this program into memory that has a descriptor. */
static int copy_program(uint8_t **bytes, size_t *size)
{
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), to = memfd_create("lines", MFD_CLOEXEC);
	struct stat st;

	assert_int_equal(fstat(from, &st), 0);
	*size = (size_t)st.st_size;
	assert_int_equal(ftruncate(to, st.st_size), 0);
	*bytes = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_SHARED, to, 0);
	assert_true(*bytes != MAP_FAILED);
	assert_int_equal(pread(from, *bytes, *size, 0), st.st_size);
	close(from);
	return to;
}

static Elf64_Shdr *section(uint8_t *bytes, const char *name)
{
	const Elf64_Ehdr *header = (const void *)bytes;
	Elf64_Shdr *sections = (Elf64_Shdr *)(bytes + header->e_shoff);
	const char *names = (const char *)bytes + sections[header->e_shstrndx].sh_offset;

	for (int i = 0; i < header->e_shnum; i++) {
		if (strcmp(names + sections[i].sh_name, name) == 0)
			return &sections[i];
	}
	fail_msg("there is no %s", name);
	return NULL;
}

static int open_copy(int fd, struct native_lines **l)
{
	struct elf_file *elf;
	int err = elf_file_open(fd, &elf);

	assert_int_equal(err, 0);
	err = native_lines_open(elf, NULL, ROOM, l);
	elf_file_free(elf);
	return err;
}

/* What is said of a damaged file is wrong, or nothing; and a file without any has none. */
static void test_damaged(void **state)
{
	static const char *const names[] = {".debug_info", ".debug_line", ".debug_abbrev"};
	struct native_line found[NATIVE_INLINED_MAX];
	struct native_lines *l;
	int lines[2];
	struct place place = outer(lines);
	uint8_t *bytes;
	size_t size;
	int fd = copy_program(&bytes, &size);

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		Elf64_Shdr *damaged = section(bytes, names[i]), was = *damaged;
		uint8_t *middle_byte = bytes + was.sh_offset + was.sh_size / 2;

		damaged->sh_size = was.sh_size / 3;
		if (!open_copy(fd, &l))
			assert_true(native_lines_find(l, place.pc, found) <= NATIVE_INLINED_MAX);
		native_lines_close(l);
		*damaged = was;
		for (int at = 0; at < 64; at++)
			middle_byte[at] ^= 0xff;
		if (!open_copy(fd, &l))
			assert_true(native_lines_find(l, place.pc, found) <= NATIVE_INLINED_MAX);
		native_lines_close(l);
		for (int at = 0; at < 64; at++)
			middle_byte[at] ^= 0xff;
	}
	section(bytes, ".debug_info")->sh_size = 0;
	assert_int_equal(open_copy(fd, &l), -ENOENT);
	munmap(bytes, size);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inlined),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* elf_file.h against this very program, and against copies of it that were damaged in every way. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/elf_file.h"

/* Not static: the names must be in .symtab; the program exports nothing, so .dynsym has imports alone. */
extern uint64_t test_elf_known_variable;
uint64_t test_elf_known_variable = 0x1122334455667788;
int test_elf_known_function(int x);
int __attribute__((noinline)) test_elf_known_function(int x)
{
	return x + (int)test_elf_known_variable;
}

static uint8_t *self;
static size_t self_size;

static int read_self(void **state)
{
	struct stat st;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	(void)state;
	if (fd < 0 || fstat(fd, &st))
		return -1;
	self_size = st.st_size;
	self = malloc(self_size);
	if (!self || read(fd, self, self_size) != (ssize_t)self_size)
		return -1;
	close(fd);
	return 0;
}

static int free_self(void **state)
{
	(void)state;
	free(self);
	return 0;
}

static int file_of(const void *bytes, size_t size)
{
	int fd = memfd_create("elf", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	return fd;
}

static int open_path(const char *path, struct elf_file **out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;

	assert_true(fd >= 0);
	err = elf_file_open(fd, out);
	close(fd);
	return err;
}

static int count_string(const char *text, void *arg)
{
	*(size_t *)arg += strlen(text) > 0;
	return 0;
}

static int find_string(const char *text, void *arg)
{
	return strcmp(text, arg) ? 0 : 7;
}

/* Calls everything; any answer is right, as long as it comes. */
static void exercise(int fd)
{
	static const char *const names[] = {"test_elf_known_variable", "_PyRuntime", "malloc", "main", ""};
	struct elf_segment segments[4];
	struct elf_section section;
	struct elf_symbol symbol;
	struct elf_file *elf;
	uint8_t buf[64];
	size_t strings = 0;

	if (elf_file_open(fd, &elf)) {
		assert_null(elf);
		return;
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		elf_file_symbol(elf, names[i], &symbol);
		if (!elf_file_dynamic_symbol(elf, names[i], &symbol))
			elf_file_read(elf, symbol.value, buf, sizeof(buf));
	}
	elf_file_section(elf, ".rodata", &section);
	elf_file_section(elf, ".PyRuntime", &section);
	assert_true(elf_file_code_segments(elf, segments, 4) <= 4);
	elf_file_is_fixed(elf);
	elf_file_soname(elf);
	assert_true(elf_file_libraries(elf) <= 64);
	elf_file_strings(elf, 4, count_string, &strings);
	elf_file_free(elf);
}

static void finds_its_own_symbols(void **state)
{
	struct elf_symbol variable, function, imported;
	struct elf_segment code[4];
	struct elf_file *elf;
	uint64_t value = 0;

	(void)state;
	assert_int_equal(open_path("/proc/self/exe", &elf), 0);
	assert_int_equal(elf_file_symbol(elf, "test_elf_known_variable", &variable), 0);
	assert_int_equal(variable.size, 8);
	assert_int_equal(variable.type, STT_OBJECT);
	assert_int_equal(elf_file_read(elf, variable.value, &value, sizeof(value)), sizeof(value));
	assert_true(value == test_elf_known_variable);
	assert_int_equal(elf_file_symbol(elf, "test_elf_known_function", &function), 0);
	assert_int_equal(function.type, STT_FUNC);
	/* Both lie at one load bias. */
	assert_true((uintptr_t)&test_elf_known_variable - variable.value ==
		    (uintptr_t)test_elf_known_function - function.value);
	/* What is imported is not defined here. */
	assert_int_equal(elf_file_dynamic_symbol(elf, "ftruncate", &imported), -ENOENT);
	assert_int_equal(elf_file_symbol(elf, "no_such_symbol_at_all", &imported), -ENOENT);
	assert_int_equal(elf_file_symbol(elf, "", &imported), -ENOENT);
	assert_true(elf_file_code_segments(elf, code, 4) >= 1);
	assert_true(function.value >= code[0].vaddr && function.value < code[0].vaddr + code[0].size);
	assert_null(elf_file_soname(elf));
	elf_file_free(elf);
	assert_int_equal(test_elf_known_function(1), (int)(1 + test_elf_known_variable));
}

/* gdb and extension modules import _PyRuntime as this program does cmocka's functions. */
static void takes_no_import_for_a_symbol(void **state)
{
	struct elf_symbol symbol;
	struct elf_file *elf;

	(void)state;
	assert_int_equal(open_path("/proc/self/exe", &elf), 0);
	assert_int_equal(elf_file_symbol(elf, "main", &symbol), 0);
	assert_int_equal(elf_file_symbol(elf, "_cmocka_run_group_tests", &symbol), -ENOENT);
	elf_file_free(elf);
}

/* A string table is read in pieces of 64 KiB: a name may begin in one and end in the next. */
static void finds_names_at_the_end_of_a_piece(void **state)
{
	static const char name[] = "name_of_a_symbol";
	static struct {
		Elf64_Ehdr header;
		Elf64_Shdr sections[3];
		Elf64_Sym symbols[2];
		char strings[3 * 65536];
	} file;
	struct elf_symbol symbol;
	struct elf_file *elf;

	(void)state;
	memcpy(&file.header, self, sizeof(file.header));
	file.header.e_phnum = 0;
	file.header.e_shoff = offsetof(__typeof__(file), sections);
	file.header.e_shentsize = sizeof(Elf64_Shdr);
	file.header.e_shnum = 3;
	file.header.e_shstrndx = 0;
	file.sections[1] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
					.sh_offset = offsetof(__typeof__(file), symbols),
					.sh_size = sizeof(file.symbols),
					.sh_entsize = sizeof(Elf64_Sym),
					.sh_link = 2};
	file.sections[2] = (Elf64_Shdr){.sh_type = SHT_STRTAB,
					.sh_offset = offsetof(__typeof__(file), strings),
					.sh_size = sizeof(file.strings)};
	for (size_t at = 2 * 65536 - sizeof(name) - 1; at <= 2 * 65536 + 1; at++) {
		int fd;

		memset(file.strings, 'x', sizeof(file.strings));
		strcpy(file.strings + at, name);
		file.symbols[1] = (Elf64_Sym){.st_name = (Elf64_Word)at, .st_shndx = 1, .st_value = 4711};
		fd = file_of(&file, sizeof(file));
		assert_int_equal(elf_file_open(fd, &elf), 0);
		assert_int_equal(elf_file_symbol(elf, name, &symbol), 0);
		assert_int_equal(symbol.value, 4711);
		elf_file_free(elf);
		close(fd);
	}
}

static void finds_strings_and_sections(void **state)
{
	struct elf_section section;
	struct elf_file *elf;
	size_t count = 0;

	(void)state;
	assert_int_equal(open_path("/proc/self/exe", &elf), 0);
	assert_int_equal(elf_file_section(elf, ".text", &section), 0);
	assert_true(section.addr && section.size);
	assert_int_equal(elf_file_section(elf, ".nothing", &section), -ENOENT);
	assert_int_equal(elf_file_strings(elf, 4, find_string, "/proc/self/exe"), 7);
	assert_int_equal(elf_file_strings(elf, 4, count_string, &count), 0);
	assert_true(count > 10);
	elf_file_free(elf);
}

/* The C library is a shared object with a GNU hash table, a soname and versions. */
static void looks_up_in_the_c_library(void **state)
{
	char path[256] = "", line[512];
	struct elf_symbol by_hash, missing;
	struct elf_file *elf;
	FILE *maps = fopen("/proc/self/maps", "re");

	(void)state;
	assert_non_null(maps);
	while (!path[0] && fgets(line, sizeof(line), maps))
		if (strstr(line, "libc.so") || strstr(line, "ld-musl"))
			sscanf(strchr(line, '/'), "%255s", path);
	fclose(maps);
	if (!path[0])
		skip();
	assert_int_equal(open_path(path, &elf), 0);
	assert_int_equal(elf_file_dynamic_symbol(elf, "getpid", &by_hash), 0);
	assert_true(by_hash.value);
	assert_int_equal(elf_file_dynamic_symbol(elf, "_PyRuntime", &missing), -ENOENT);
	assert_non_null(elf_file_soname(elf));
	assert_non_null(strstr(elf_file_soname(elf), ".so"));
	assert_false(elf_file_is_fixed(elf));
	elf_file_free(elf);
}

/* The program's own NEEDED entries, as readelf prints them. */
static void counts_the_libraries_that_a_program_needs(void **state)
{
	char line[512], command[300], program[256] = "";
	size_t expected = 0;
	struct elf_file *elf;
	FILE *readelf;

	(void)state;
	assert_true(readlink("/proc/self/exe", program, sizeof(program) - 1) > 0);
	snprintf(command, sizeof(command), "readelf -d '%s'", program);
	readelf = popen(command, "re");
	assert_non_null(readelf);
	while (fgets(line, sizeof(line), readelf))
		expected += strstr(line, "(NEEDED)") != NULL;
	pclose(readelf);
	assert_true(expected > 1);
	assert_int_equal(open_path(program, &elf), 0);
	assert_int_equal(elf_file_libraries(elf), expected);
	elf_file_free(elf);
}

static void refuses_what_is_no_elf(void **state)
{
	struct elf_file *elf;
	uint8_t tiny[64] = {0};
	int fd;

	(void)state;
	assert_int_equal(open_path("/dev/zero", &elf), -ENOEXEC);
	assert_int_equal(open_path("/tmp", &elf), -ENOEXEC);
	fd = file_of(tiny, 0);
	assert_int_equal(elf_file_open(fd, &elf), -ENOEXEC);
	close(fd);
	fd = file_of(tiny, sizeof(tiny));
	assert_int_equal(elf_file_open(fd, &elf), -ENOEXEC);
	close(fd);
	/* A 32-bit header is 52 bytes. */
	memcpy(tiny, ELFMAG, SELFMAG);
	tiny[EI_CLASS] = ELFCLASS32;
	tiny[EI_DATA] = ELFDATA2LSB;
	fd = file_of(tiny, 52);
	assert_int_equal(elf_file_open(fd, &elf), -ENOTSUP);
	close(fd);
	tiny[EI_CLASS] = ELFCLASS64;
	tiny[EI_DATA] = ELFDATA2MSB;
	fd = file_of(tiny, sizeof(tiny));
	assert_int_equal(elf_file_open(fd, &elf), -ENOTSUP);
	close(fd);
	/* Another machine's. */
	memcpy(tiny, self, sizeof(tiny));
	tiny[offsetof(Elf64_Ehdr, e_machine)] ^= 0xff;
	fd = file_of(tiny, sizeof(tiny));
	assert_int_equal(elf_file_open(fd, &elf), -ENOTSUP);
	close(fd);
}

static void survives_truncation(void **state)
{
	int fd = file_of(self, self_size);

	(void)state;
	exercise(fd);
	/* Every length in the headers, then ever coarser; ftruncate also shows a file that shrinks while
	 * open. */
	for (size_t size = self_size; size > 4096; size -= size / 64 + 1) {
		assert_int_equal(ftruncate(fd, size), 0);
		exercise(fd);
	}
	for (ssize_t size = 4096; size >= 0; size--) {
		assert_int_equal(ftruncate(fd, size), 0);
		exercise(fd);
	}
	close(fd);
}

static void survives_a_file_that_shrinks(void **state)
{
	int fd = file_of(self, self_size);
	struct elf_symbol symbol;
	struct elf_file *elf;
	size_t count = 0;

	(void)state;
	assert_int_equal(elf_file_open(fd, &elf), 0);
	assert_int_equal(ftruncate(fd, 100), 0);
	assert_true(elf_file_symbol(elf, "test_elf_known_variable", &symbol) < 0);
	elf_file_strings(elf, 4, count_string, &count);
	assert_int_equal(count, 0);
	assert_null(elf_file_soname(elf));
	elf_file_free(elf);
	close(fd);
}

static uint32_t next_random(uint32_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return *seed;
}

/* Writes extreme values into every 2-, 4- and 8-byte field of a range of the file, one at a time. */
static void mutate_fields(int fd, size_t offset, size_t size)
{
	static const uint64_t values[] = {0, 1, UINT64_MAX, INT64_MAX, 1ULL << 63, UINT32_MAX, 0x7fffffff, 4096};

	for (size_t width = 2; width <= 8; width *= 2) {
		for (size_t at = offset; at + width <= offset + size && at + width <= self_size; at += width) {
			for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
				assert_int_equal(pwrite(fd, &values[i], width, at), width);
				exercise(fd);
			}
			assert_int_equal(pwrite(fd, self + at, width, at), width);
		}
	}
}

/* The C library's own header, segments, dynamic section, hash table head: where loops and sizes come from. */
static void survives_mutated_headers(void **state)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)self;
	const Elf64_Phdr *ph = (const Elf64_Phdr *)(self + header->e_phoff);
	int fd = file_of(self, self_size);

	(void)state;
	mutate_fields(fd, EI_NIDENT, sizeof(*header) - EI_NIDENT);
	for (int i = 0; i < header->e_phnum; i++) {
		if (ph[i].p_type == PT_LOAD || ph[i].p_type == PT_NOTE || ph[i].p_type == PT_DYNAMIC)
			mutate_fields(fd, header->e_phoff + i * sizeof(*ph), sizeof(*ph));
		if (ph[i].p_type == PT_DYNAMIC)
			mutate_fields(fd, ph[i].p_offset, ph[i].p_filesz < 512 ? ph[i].p_filesz : 512);
		if (ph[i].p_type == PT_NOTE)
			mutate_fields(fd, ph[i].p_offset, 32);
	}
	close(fd);
}

static void survives_mutated_sections(void **state)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)self;
	const Elf64_Shdr *sh = (const Elf64_Shdr *)(self + header->e_shoff);
	int fd = file_of(self, self_size);

	(void)state;
	for (int i = 0; i < header->e_shnum; i++) {
		bool table = sh[i].sh_type == SHT_SYMTAB || sh[i].sh_type == SHT_STRTAB || sh[i].sh_type == SHT_DYNSYM;

		if (table || !i)
			mutate_fields(fd, header->e_shoff + i * sizeof(*sh), sizeof(*sh));
		if (sh[i].sh_type == SHT_GNU_HASH)
			mutate_fields(fd, sh[i].sh_offset, sh[i].sh_size < 48 ? sh[i].sh_size : 48);
	}
	close(fd);
}

static void survives_random_damage(void **state)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)self;
	int fd = file_of(self, self_size);
	uint32_t seed = 20240229;

	(void)state;
	for (int round = 0; round < 4000; round++) {
		size_t places[8];

		for (int i = 0; i < 8; i++) {
			uint8_t byte = next_random(&seed);
			/* Half of the damage where the structure is: the file's head, and its section
			 * headers. */
			size_t range = i % 2 ? self_size : i % 4 ? 4096 : header->e_shnum * sizeof(Elf64_Shdr);

			places[i] = next_random(&seed) % range + (i % 4 == 0 ? header->e_shoff : 0);
			if (places[i] >= self_size)
				places[i] = self_size - 1;
			assert_int_equal(pwrite(fd, &byte, 1, places[i]), 1);
		}
		exercise(fd);
		for (int i = 0; i < 8; i++)
			assert_int_equal(pwrite(fd, self + places[i], 1, places[i]), 1);
	}
	exercise(fd);
	close(fd);
}

/* A sparse file that claims tables of exabytes must be given up soon. */
static void bounds_what_it_reads(void **state)
{
	Elf64_Ehdr *header = (Elf64_Ehdr *)self;
	struct timespec start, end;
	int fd = file_of(self, self_size);

	(void)state;
	assert_int_equal(ftruncate(fd, 1LL << 40), 0);
	for (int i = 0; i < header->e_shnum; i++) {
		uint64_t offset = header->e_shoff + i * sizeof(Elf64_Shdr), big = 1ULL << 39;

		pwrite(fd, &big, 8, offset + offsetof(Elf64_Shdr, sh_offset));
		pwrite(fd, &big, 8, offset + offsetof(Elf64_Shdr, sh_size));
	}
	clock_gettime(CLOCK_MONOTONIC, &start);
	exercise(fd);
	clock_gettime(CLOCK_MONOTONIC, &end);
	assert_true(end.tv_sec - start.tv_sec < 10);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_its_own_symbols),
		cmocka_unit_test(finds_strings_and_sections),
		cmocka_unit_test(looks_up_in_the_c_library),
		cmocka_unit_test(refuses_what_is_no_elf),
		cmocka_unit_test(counts_the_libraries_that_a_program_needs),
		cmocka_unit_test(survives_truncation),
		cmocka_unit_test(survives_a_file_that_shrinks),
		cmocka_unit_test(survives_mutated_headers),
		cmocka_unit_test(survives_mutated_sections),
		cmocka_unit_test(survives_random_damage),
		cmocka_unit_test(bounds_what_it_reads),
		cmocka_unit_test(takes_no_import_for_a_symbol),
		cmocka_unit_test(finds_names_at_the_end_of_a_piece),
	};

	return cmocka_run_group_tests(tests, read_self, free_self);
}

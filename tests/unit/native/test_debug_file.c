// SPDX-License-Identifier: Apache-2.0
/* Where the symbols of a stripped file are found, and what is refused in their place. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <lzma.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "native/debug_cache.h"
#include "native/debug_data.h"
#include "native/debug_file.h"

#define SECTIONS_MAX 6
#define MIB          ((size_t)1 << 20)

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#else
#define MACHINE EM_AARCH64
#endif

/* An ELF file that is made of sections. */
struct made {
	uint8_t *bytes;
	size_t size;
	Elf64_Shdr sections[SECTIONS_MAX];
	char names[128];
	size_t names_size, count;
};

static void append(struct made *m, const void *bytes, size_t size)
{
	m->bytes = realloc(m->bytes, m->size + size + 1);
	assert_non_null(m->bytes);
	memcpy(m->bytes + m->size, bytes, size);
	m->size += size;
}

static void begin(struct made *m)
{
	*m = (struct made){.names_size = 1, .count = 1};
	append(m, &(Elf64_Ehdr){0}, sizeof(Elf64_Ehdr));
}

static void add(struct made *m, const char *name, uint32_t type, const void *bytes, size_t size)
{
	Elf64_Shdr *section = &m->sections[m->count++];

	*section = (Elf64_Shdr){
		.sh_name = (uint32_t)m->names_size, .sh_type = type, .sh_offset = m->size, .sh_size = size};
	memcpy(m->names + m->names_size, name, strlen(name) + 1);
	m->names_size += strlen(name) + 1;
	append(m, bytes, size);
	append(m, "\0\0\0\0\0\0\0", -m->size % 8);
}

static void end(struct made *m)
{
	Elf64_Ehdr *header;
	uint64_t table;

	add(m, ".shstrtab", SHT_STRTAB, m->names, sizeof(m->names));
	memcpy(m->bytes + m->sections[m->count - 1].sh_offset, m->names, sizeof(m->names));
	table = m->size;
	append(m, m->sections, m->count * sizeof(m->sections[0]));
	header = (Elf64_Ehdr *)m->bytes;
	memcpy(header->e_ident, ELFMAG "\x02\x01\x01", SELFMAG + 3);
	header->e_type = ET_DYN;
	header->e_machine = MACHINE;
	header->e_shoff = table;
	header->e_shentsize = sizeof(Elf64_Shdr);
	header->e_shnum = (uint16_t)m->count;
	header->e_shstrndx = (uint16_t)(m->count - 1);
}

static void add_id(struct made *m, const char *id)
{
	struct {
		Elf64_Nhdr head;
		char name[4], id[8];
	} note = {.head = {4, 8, NT_GNU_BUILD_ID}, .name = ELF_NOTE_GNU};

	memcpy(note.id, id, sizeof(note.id));
	add(m, ".note.gnu.build-id", SHT_NOTE, &note, sizeof(note));
}

static void add_link(struct made *m, const char *name, uint32_t crc)
{
	char bytes[64] = "";
	size_t at = (strlen(name) + 4) / 4 * 4;

	memcpy(bytes, name, strlen(name));
	memcpy(bytes + at, &crc, sizeof(crc));
	add(m, ".gnu_debuglink", SHT_PROGBITS, bytes, at + sizeof(crc));
}

/* One function, of this name at 0x1000. */
static void add_symbols(struct made *m, const char *name)
{
	const Elf64_Sym symbols[] = {
		{0}, {.st_name = 1, .st_info = STT_FUNC, .st_shndx = 1, .st_value = 0x1000, .st_size = 16}};
	char names[64] = "";

	memcpy(names + 1, name, strlen(name));
	add(m, ".symtab", SHT_SYMTAB, symbols, sizeof(symbols));
	m->sections[m->count - 1].sh_entsize = sizeof(symbols[0]);
	m->sections[m->count - 1].sh_link = (uint32_t)m->count;
	add(m, ".strtab", SHT_STRTAB, names, sizeof(names));
}

/* A debug file with a function of this name. id NULL: without one. */
static struct made debug_file(const char *id, const char *name)
{
	struct made m;

	begin(&m);
	if (id)
		add_id(&m, id);
	add_symbols(&m, name);
	end(&m);
	return m;
}

static char folder[] = "/tmp/pybpf-debug-XXXXXX";

static char *path_of(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void save(const char *name, const struct made *m)
{
	int fd = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, m->bytes, m->size), m->size);
	close(fd);
}

static void note_name(const char *name, const struct elf_symbol *symbol, void *arg)
{
	assert_int_equal(symbol->value, 0x1000);
	snprintf(arg, 64, "%s", name);
}

/* Returns the name of the function that the stripped file has, "" for none. */
static const char *name_in(const struct made *stripped)
{
	static char name[64];
	struct native_debug debug;
	struct elf_file *elf;
	int err;

	name[0] = '\0';
	assert_int_equal(elf_file_open_memory(stripped->bytes, stripped->size, &elf), 0);
	err = native_debug_open(elf, getpid(), path_of("lib.so"), &debug);
	if (!err) {
		assert_int_equal(elf_file_functions(debug.elf, note_name, name), 0);
		native_debug_close(&debug);
	}
	assert_true(!err == (*name != '\0'));
	elf_file_free(elf);
	return name;
}

static uint32_t sum_of(const struct made *m)
{
	return (uint32_t)crc32(crc32(0, NULL, 0), m->bytes, (uInt)m->size);
}

/* Returns the name that a stripped file with this id and link has, where `where` has the debug file. */
static const char *linked(const char *id, const char *link, uint32_t crc, const char *where, const struct made *debug)
{
	const char *name;
	struct made m;

	begin(&m);
	if (id)
		add_id(&m, id);
	add_link(&m, link, crc);
	end(&m);
	save(where, debug);
	name = name_in(&m);
	unlink(path_of(where));
	free(m.bytes);
	return name;
}

static void test_links(void **state)
{
	struct made with = debug_file("12345678", "with_id"), without = debug_file(NULL, "without_id");
	struct made empty;

	(void)state;
	/* By the build-id, where there is one; else by the sum. */
	assert_string_equal(linked("12345678", "x.debug", 0, "x.debug", &with), "with_id");
	assert_string_equal(linked("12345678", "x.debug", 0, ".debug/x.debug", &with), "with_id");
	assert_string_equal(linked(NULL, "x.debug", sum_of(&without), ".debug/x.debug", &without), "without_id");
	assert_string_equal(linked(NULL, "x.debug", sum_of(&with), "x.debug", &with), "with_id");
	/* Another file's. */
	assert_string_equal(linked("12345679", "x.debug", sum_of(&with), "x.debug", &with), "");
	assert_string_equal(linked("12345678", "x.debug", sum_of(&without), "x.debug", &without), "");
	assert_string_equal(linked(NULL, "x.debug", sum_of(&without) + 1, "x.debug", &without), "");
	/* Elsewhere. */
	assert_string_equal(linked("12345678", ".debug/x.debug", 0, ".debug/x.debug", &with), "");
	assert_string_equal(linked("12345678", "", 0, "x.debug", &with), "");
	assert_string_equal(linked("12345678", "..", 0, "x.debug", &with), "");
	/* Without symbols, as the stripped file itself. */
	begin(&empty);
	add_id(&empty, "12345678");
	end(&empty);
	assert_string_equal(linked("12345678", "x.debug", 0, "x.debug", &empty), "");
	free(with.bytes);
	free(without.bytes);
	free(empty.bytes);
}

static void test_links_to_what_is_no_file(void **state)
{
	struct made with = debug_file("12345678", "with_id"), m;

	(void)state;
	begin(&m);
	add_id(&m, "12345678");
	add_link(&m, "x.debug", 0);
	end(&m);
	/* Nobody writes to it: whoever waited for that would wait for ever. */
	assert_int_equal(mkfifo(path_of("x.debug"), 0600), 0);
	assert_string_equal(name_in(&m), "");
	unlink(path_of("x.debug"));
	/* Its first read would wait, too. */
	assert_int_equal(symlink("/proc/kmsg", path_of("x.debug")), 0);
	assert_string_equal(name_in(&m), "");
	unlink(path_of("x.debug"));
	assert_int_equal(symlink("x.debug", path_of("x.debug")), 0);
	assert_string_equal(name_in(&m), "");
	unlink(path_of("x.debug"));
	assert_int_equal(mkdir(path_of("x.debug"), 0700), 0);
	assert_string_equal(name_in(&m), "");
	rmdir(path_of("x.debug"));
	/* A link to the file is the file. */
	save("y.debug", &with);
	assert_int_equal(symlink("y.debug", path_of("x.debug")), 0);
	assert_string_equal(name_in(&m), "with_id");
	unlink(path_of("x.debug"));
	unlink(path_of("y.debug"));
	free(m.bytes);
	free(with.bytes);
}

static void test_sections_that_are_cut(void **state)
{
	struct made with = debug_file("12345678", "with_id"), whole, m;

	(void)state;
	save("x.debug", &with);
	begin(&whole);
	add_id(&whole, "12345678");
	add_link(&whole, "x.debug", 0);
	end(&whole);
	assert_string_equal(name_in(&whole), "with_id");
	/* Each section with each size, and at the end of the numbers. */
	for (size_t section = 1; section <= 2; section++) {
		Elf64_Shdr *header;

		m = whole;
		m.bytes = malloc(m.size);
		assert_non_null(m.bytes);
		memcpy(m.bytes, whole.bytes, m.size);
		header = (Elf64_Shdr *)(m.bytes + ((Elf64_Ehdr *)m.bytes)->e_shoff) + section;
		for (uint64_t size = header->sh_size; size; size--) {
			header->sh_size = size - 1;
			assert_string_equal(name_in(&m), "");
		}
		header->sh_size = UINT64_MAX;
		name_in(&m);
		header->sh_offset = UINT64_MAX - 3;
		assert_string_equal(name_in(&m), "");
		free(m.bytes);
	}
	unlink(path_of("x.debug"));
	free(whole.bytes);
	free(with.bytes);
}

/* A file with these bytes packed into it; preset: xz's. */
static struct made packed(const void *bytes, size_t size, uint32_t preset)
{
	size_t room = lzma_stream_buffer_bound(size), used = 0;
	uint8_t *xz = malloc(room);
	struct made m;

	assert_non_null(xz);
	assert_int_equal(lzma_easy_buffer_encode(preset, LZMA_CHECK_CRC64, NULL, bytes, size, xz, &used, room),
			 LZMA_OK);
	begin(&m);
	add(&m, ".gnu_debugdata", SHT_PROGBITS, xz, used);
	end(&m);
	free(xz);
	return m;
}

static void test_packed_symbols(void **state)
{
	struct made debug = debug_file(NULL, "packed"), m = packed(debug.bytes, debug.size, 6);

	(void)state;
	assert_string_equal(name_in(&m), "packed");
	/* Cut off at each byte, or with a byte damaged, it is refused. */
	for (size_t at = 0; at < m.sections[1].sh_size; at++) {
		uint8_t *byte = m.bytes + m.sections[1].sh_offset + at;
		Elf64_Shdr *header = (Elf64_Shdr *)(m.bytes + ((Elf64_Ehdr *)m.bytes)->e_shoff) + 1;

		header->sh_size = at;
		assert_string_equal(name_in(&m), "");
		header->sh_size = m.sections[1].sh_size;
		*byte ^= 0x55;
		assert_string_equal(name_in(&m), "");
		*byte ^= 0x55;
	}
	free(debug.bytes);
	free(m.bytes);
}

static int unpack(const struct made *m, size_t *size)
{
	struct elf_file *elf;
	void *bytes;
	int err;

	*size = 0;
	assert_int_equal(elf_file_open_memory(m->bytes, m->size, &elf), 0);
	err = native_debug_data_unpack(elf, &bytes, size);
	assert_true(!err == (bytes != NULL));
	free(bytes);
	elf_file_free(elf);
	return err;
}

static void test_limits_of_packed_symbols(void **state)
{
	static const struct {
		size_t size;
		uint32_t preset;
		int err;
	} cases[] = {
		{3 * MIB, 0, 0},
		{NATIVE_DEBUG_DATA_MAX, 0, 0},
		{NATIVE_DEBUG_DATA_MAX + 1, 0, -EFBIG},
		{3 * MIB, 8, 0},
		/* A dictionary of 64 MiB. */
		{3 * MIB, 9, -ENOMEM},
	};
	void *bytes = calloc(1, NATIVE_DEBUG_DATA_MAX + 1);

	(void)state;
	assert_non_null(bytes);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct made m = packed(bytes, cases[i].size, cases[i].preset);
		size_t size;

		/* Zeros take next to no room. */
		assert_true(m.size < MIB);
		assert_int_equal(unpack(&m, &size), cases[i].err);
		assert_int_equal(size, cases[i].err ? 0 : cases[i].size);
		free(m.bytes);
	}
	free(bytes);
}

/* Names of what was found before are those of the same file; what is unpacked does not fill a helper's memory. */
static void test_what_is_kept(void **state)
{
	struct made debug = debug_file(NULL, "packed"), m, large;
	struct native_identity of = {.inode = 1};
	struct elf_file *elf, *found, *again;
	uint8_t *bytes = calloc(1, 17 * MIB);
	char name[64];

	(void)state;
	m = packed(debug.bytes, debug.size, 6);
	assert_int_equal(elf_file_open_memory(m.bytes, m.size, &elf), 0);
	for (int i = 0; i < 100; i++) {
		of.inode = (uint64_t)i + 1;
		found = native_debug_find(&of, elf, 0, "lib.so");
		again = native_debug_find(&of, elf, 0, "lib.so");
		assert_non_null(found);
		assert_ptr_equal(found, again);
		native_debug_trim();
	}
	assert_ptr_equal(native_debug_find(&of, elf, 0, "lib.so"), found);
	/* Larger than all that is kept: it is there until then. */
	assert_non_null(bytes);
	memcpy(bytes, debug.bytes, debug.size);
	large = packed(bytes, 17 * MIB, 0);
	elf_file_free(elf);
	assert_int_equal(elf_file_open_memory(large.bytes, large.size, &elf), 0);
	of.inode = 1000;
	found = native_debug_find(&of, elf, 0, "large.so");
	assert_non_null(found);
	assert_int_equal(elf_file_functions(found, note_name, name), 0);
	assert_string_equal(name, "packed");
	native_debug_trim();
	/* A file of the same identity without symbols would have those that are kept. */
	elf_file_free(elf);
	assert_int_equal(elf_file_open_memory(debug.bytes, debug.size, &elf), 0);
	assert_null(native_debug_find(&of, elf, 0, "large.so"));
	elf_file_free(elf);
	free(bytes);
	free(large.bytes);
	free(m.bytes);
	free(debug.bytes);
}

static int make_folder(void **state)
{
	(void)state;
	return !mkdtemp(folder) || mkdir(path_of(".debug"), 0700);
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(path_of(".debug")) || rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_links),
		cmocka_unit_test(test_links_to_what_is_no_file),
		cmocka_unit_test(test_sections_that_are_cut),
		cmocka_unit_test(test_packed_symbols),
		cmocka_unit_test(test_limits_of_packed_symbols),
		cmocka_unit_test(test_what_is_kept),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

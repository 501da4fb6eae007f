// SPDX-License-Identifier: Apache-2.0
/* Names of code that a JIT has registered with debuggers, in memory that is played; and lists that are made to harm. */
#include "native/jit_images.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/remote.h"

#define COUNT 3
/* Where things are in the played memory. */
#define MEMORY_AT 0x10000u
#define LIST_AT   MEMORY_AT
#define ENTRY_AT  (MEMORY_AT + 0x100u)
#define IMAGE_AT  (MEMORY_AT + 0x1000u)
/* The addresses that are named: CODE_AT and those that follow it by STEP. */
#define CODE_AT 0x500000u
#define STEP    0x100u
#define PID     4711

/* What the interface says. */
struct list {
	uint32_t version, action;
	uint64_t relevant, first;
};

struct entry {
	uint64_t next, previous, image, size;
};

struct image {
	Elf64_Ehdr header;
	Elf64_Shdr sections[4]; /* an empty one, code, symbols, their names */
	Elf64_Sym symbols[3];   /* the first one stays empty */
	char names[64];
};

static uint8_t memory[0x4000];
static struct native_named named[COUNT];
static uint64_t nr_reads, bytes_read;
/* The process changes its list when this address is read; 0: it does not. */
static uint64_t changes_at;
/* Any address is that of an entry, which is followed by another one, with the same image. */
static bool is_endless;

static int read_memory(pid_t pid, uint64_t address, void *buf, size_t size)
{
	assert_int_equal(pid, PID);
	nr_reads++;
	bytes_read += size;
	if (address == changes_at)
		memset(memory + LIST_AT - MEMORY_AT, 0, sizeof(struct list));
	if (address - MEMORY_AT < sizeof(memory) && size <= sizeof(memory) - (address - MEMORY_AT)) {
		memcpy(buf, memory + (address - MEMORY_AT), size);
		return 0;
	}
	if (!is_endless || size != sizeof(struct entry))
		return -EFAULT;
	*(struct entry *)buf = (struct entry){.next = address + 1, .image = IMAGE_AT, .size = sizeof(struct image)};
	return 0;
}

static void put(uint64_t at, const void *bytes, size_t size)
{
	assert_true(at >= MEMORY_AT && at - MEMORY_AT + size <= sizeof(memory));
	memcpy(memory + (at - MEMORY_AT), bytes, size);
}

static void put_list(uint64_t first)
{
	put(LIST_AT, &(struct list){.version = 1, .first = first}, sizeof(struct list));
}

static void put_entry(unsigned number, uint64_t next, uint64_t image, uint64_t size)
{
	const struct entry entry = {.next = next, .image = image, .size = size};

	put(ENTRY_AT + number * sizeof(entry), &entry, sizeof(entry));
}

static uint64_t entry_at(unsigned number)
{
	return ENTRY_AT + number * sizeof(struct entry);
}

/* An object file with two functions, at the first two addresses. */
static struct image make_image(uint16_t type, const char *first, const char *second)
{
	struct image image = {.header = {.e_type = type,
					 .e_machine = EM_X86_64,
					 .e_shoff = offsetof(struct image, sections),
					 .e_shentsize = sizeof(Elf64_Shdr),
					 .e_shnum = 4}};
	uint64_t from = type == ET_REL ? 0 : CODE_AT;

	memcpy(image.header.e_ident, ELFMAG, SELFMAG);
	image.header.e_ident[EI_CLASS] = ELFCLASS64;
	image.header.e_ident[EI_DATA] = ELFDATA2LSB;
	image.sections[1] = (Elf64_Shdr){
		.sh_type = SHT_NOBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR, .sh_addr = CODE_AT, .sh_size = 2 * STEP};
	image.sections[2] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
					 .sh_offset = offsetof(struct image, symbols),
					 .sh_size = sizeof(image.symbols),
					 .sh_link = 3,
					 .sh_entsize = sizeof(Elf64_Sym)};
	image.sections[3] = (Elf64_Shdr){
		.sh_type = SHT_STRTAB, .sh_offset = offsetof(struct image, names), .sh_size = sizeof(image.names)};
	strcpy(image.names + 1, first);
	strcpy(image.names + 32, second);
	image.symbols[1] = (Elf64_Sym){1, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, 1, from, STEP};
	image.symbols[2] = (Elf64_Sym){32, ELF64_ST_INFO(STB_LOCAL, STT_FUNC), 0, 1, from + STEP, STEP};
	return image;
}

static void put_image(unsigned number, const struct image *image)
{
	put(IMAGE_AT + number * sizeof(*image), image, sizeof(*image));
}

static uint64_t image_at(unsigned number)
{
	return IMAGE_AT + number * sizeof(struct image);
}

/* A list of one file with the functions "first" and "second". */
static int begin(void **state)
{
	const struct image image = make_image(ET_REL, "first", "second");

	(void)state;
	remote_read_by(read_memory);
	memset(memory, 0, sizeof(memory));
	memset(named, 0, sizeof(named));
	for (size_t i = 0; i < COUNT; i++)
		named[i].address = CODE_AT + i * STEP + 1;
	nr_reads = bytes_read = changes_at = 0;
	is_endless = false;
	put_list(entry_at(0));
	put_entry(0, 0, image_at(0), sizeof(image));
	put_image(0, &image);
	return 0;
}

static void find(const char *first, const char *second, const char *third)
{
	assert_int_equal(native_jit_find(PID, LIST_AT, named, COUNT), 0);
	assert_string_equal(named[0].symbol, first);
	assert_string_equal(named[1].symbol, second);
	assert_string_equal(named[2].symbol, third);
}

static void test_symbols_count_from_their_section(void **state)
{
	(void)state;
	find("first", "second", "");
	assert_int_equal(named[0].start, CODE_AT);
	assert_int_equal(named[1].start, CODE_AT + STEP);
	assert_int_equal(named[1].size, STEP);
}

static void test_symbols_are_addresses(void **state)
{
	const struct image image = make_image(ET_DYN, "one", "other");

	(void)state;
	put_image(0, &image);
	find("one", "other", "");
}

static void test_known_names_stay(void **state)
{
	(void)state;
	named[0].size = 1;
	strcpy(named[0].symbol, "known");
	find("known", "second", "");
}

static void test_the_first_entry_holds(void **state)
{
	const struct image image = make_image(ET_REL, "newer", "newer too");

	(void)state;
	put_image(1, &image);
	put_entry(1, entry_at(0), image_at(1), sizeof(image));
	put_list(entry_at(1));
	find("newer", "newer too", "");
}

static void test_a_section_names_its_own_addresses_only(void **state)
{
	struct image image = make_image(ET_REL, "first", "second");

	(void)state;
	image.sections[1].sh_size = STEP;
	put_image(0, &image);
	find("first", "", "");
}

static void test_entries_that_lead_nowhere(void **state)
{
	const struct image image = make_image(ET_REL, "behind", "it");

	(void)state;
	put_image(1, &image);
	put_entry(0, entry_at(1), 0, 0);
	put_entry(1, entry_at(2), UINT64_MAX - 10, 4096);
	put_entry(2, entry_at(3), image_at(1), UINT64_C(4) << 30);
	put_entry(3, entry_at(4), image_at(1), 20);
	put_entry(4, entry_at(5), CODE_AT, 1 << 20);
	put_entry(5, entry_at(6), image_at(1), sizeof(image));
	put_entry(6, UINT64_MAX, 0, 0);
	find("behind", "it", "");
}

static void test_other_versions_are_not_read(void **state)
{
	(void)state;
	put(LIST_AT, &(struct list){.version = 2, .first = entry_at(0)}, sizeof(struct list));
	find("", "", "");
	put_list(0);
	find("", "", "");
	assert_int_equal(native_jit_find(PID, 1, named, COUNT), 0);
}

/* What was unlinked while it was read may be the file of other code by now. */
static void test_what_is_unlinked_meanwhile_gives_no_names(void **state)
{
	(void)state;
	changes_at = image_at(0) + offsetof(struct image, names);
	find("", "", "");
	assert_int_equal(named[0].size, 0);
	assert_int_equal(named[0].start, 0);
}

static void test_circles_end(void **state)
{
	(void)state;
	for (unsigned length = 1; length < 20; length++) {
		begin(NULL);
		for (unsigned i = 0; i < length; i++)
			put_entry(i, i + 1 < length ? entry_at(i + 1) : entry_at(length / 2), image_at(0),
				  sizeof(struct image));
		find("first", "second", "");
		assert_true(nr_reads < 100 * (length + 1));
	}
}

static void test_a_list_without_end_is_read_in_part(void **state)
{
	(void)state;
	is_endless = true;
	put_list(CODE_AT);
	find("first", "second", "");
	assert_true(bytes_read < 2 * (64 << 20));
}

static void test_names_without_an_end(void **state)
{
	struct image image = make_image(ET_REL, "first", "second");

	(void)state;
	memset(image.names, 'x', sizeof(image.names));
	image.symbols[1].st_name = sizeof(image.names) - 3;
	image.symbols[2].st_name = sizeof(image.names);
	put_image(0, &image);
	memset(memory + (image_at(1) - MEMORY_AT), 'y', 64);
	find("xxx", "", "");
	image.sections[3].sh_size = UINT64_MAX;
	begin(NULL);
	put_image(0, &image);
	find("", "", "");
}

static void test_sections_beyond_all_addresses(void **state)
{
	struct image image = make_image(ET_REL, "first", "second");

	(void)state;
	image.sections[1].sh_addr = 1;
	image.sections[1].sh_size = UINT64_MAX;
	image.symbols[1].st_value = UINT64_MAX;
	image.symbols[1].st_size = UINT64_MAX;
	image.symbols[2].st_value = CODE_AT + STEP - 1;
	put_image(0, &image);
	find("first", "second", "first");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_symbols_count_from_their_section, begin),
		cmocka_unit_test_setup(test_symbols_are_addresses, begin),
		cmocka_unit_test_setup(test_known_names_stay, begin),
		cmocka_unit_test_setup(test_the_first_entry_holds, begin),
		cmocka_unit_test_setup(test_a_section_names_its_own_addresses_only, begin),
		cmocka_unit_test_setup(test_entries_that_lead_nowhere, begin),
		cmocka_unit_test_setup(test_other_versions_are_not_read, begin),
		cmocka_unit_test_setup(test_what_is_unlinked_meanwhile_gives_no_names, begin),
		cmocka_unit_test_setup(test_circles_end, begin),
		cmocka_unit_test_setup(test_a_list_without_end_is_read_in_part, begin),
		cmocka_unit_test_setup(test_names_without_an_end, begin),
		cmocka_unit_test_setup(test_sections_beyond_all_addresses, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

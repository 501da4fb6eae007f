// SPDX-License-Identifier: Apache-2.0
/* A program that calls some bytes of code, and the rows that are made of it. */
#ifndef TESTS_FLOW_IMAGE_H
#define TESTS_FLOW_IMAGE_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "native/flow.h"
#include "pybpf_native.h"

#define BEGIN_AT 0x1000
#define CODE_AT  (BEGIN_AT + 8)

struct image {
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	uint8_t code[512];
};

static void make_image(struct image *image, const uint8_t *code, size_t size)
{
	static const uint8_t begin[] = {0x31, 0xed,                   /* xor %ebp, %ebp */
					0xe8, 0x01, 0x00, 0x00, 0x00, /* call 8 */
					0xf4};                        /* hlt */

	memset(image, 0, sizeof(*image));
	memcpy(image->header.e_ident, ELFMAG, SELFMAG);
	image->header.e_ident[EI_CLASS] = ELFCLASS64;
	image->header.e_ident[EI_DATA] = ELFDATA2LSB;
	image->header.e_ident[EI_VERSION] = EV_CURRENT;
	image->header.e_type = ET_DYN;
	image->header.e_machine = EM_X86_64;
	image->header.e_version = EV_CURRENT;
	image->header.e_entry = BEGIN_AT;
	image->header.e_phoff = offsetof(struct image, segment);
	image->header.e_ehsize = sizeof(image->header);
	image->header.e_phentsize = sizeof(image->segment);
	image->header.e_phnum = 1;
	image->segment = (Elf64_Phdr){.p_type = PT_LOAD,
				      .p_flags = PF_R | PF_X,
				      .p_offset = offsetof(struct image, code),
				      .p_vaddr = BEGIN_AT,
				      .p_filesz = sizeof(image->code),
				      .p_memsz = sizeof(image->code)};
	/* What is not given is a trap. */
	memset(image->code, 0xcc, sizeof(image->code));
	memcpy(image->code, begin, sizeof(begin));
	memcpy(image->code + sizeof(begin), code, size);
}

static void make_rows(const uint8_t *code, size_t size, struct flow_rows *out)
{
	struct image image;
	struct elf_file *elf;

	make_image(&image, code, size);
	assert_int_equal(elf_file_open_memory(&image, sizeof(image), &elf), 0);
	assert_int_equal(flow_make_rows(elf, NULL, 0, out), 0);
	elf_file_free(elf);
}

static uint32_t rule_at(const struct flow_rows *rows, uint64_t offset)
{
	for (size_t i = 0; i < rows->count; i++) {
		if (CODE_AT + offset >= rows->rows[i].start && CODE_AT + offset < rows->rows[i].end)
			return rows->rows[i].rule;
	}
	return PYBPF_NATIVE_NONE;
}

static void check_sp(const struct flow_rows *rows, uint64_t offset, int words, int saved)
{
	uint32_t rule = rule_at(rows, offset);

	assert_int_equal(PYBPF_RULE_KIND(rule), PYBPF_NATIVE_SP);
	assert_int_equal(PYBPF_RULE_OFFSET(rule), words);
	assert_int_equal(PYBPF_RULE_BP(rule), saved ? PYBPF_NATIVE_BP_SAVED : PYBPF_NATIVE_BP_SAME);
	assert_int_equal(PYBPF_RULE_BP_OFFSET(rule), -saved);
}

#define ROWS_OF(...)                                                                                                   \
	static const uint8_t code[] = {__VA_ARGS__};                                                                   \
	struct flow_rows rows;                                                                                         \
	(void)state;                                                                                                   \
	make_rows(code, sizeof(code), &rows)

#endif

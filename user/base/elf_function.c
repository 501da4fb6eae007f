// SPDX-License-Identifier: Apache-2.0
/* The functions of an ELF file: all names, and the place of one in the file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/elf_internal.h"

/* Programs have one or two executable segments. */
#define CODE_SEGMENTS 16

int elf_file_code_offset(struct elf_file *elf, uint64_t vaddr, uint64_t *offset)
{
	struct elf_segment segments[CODE_SEGMENTS];
	size_t count = elf_file_code_segments(elf, segments, CODE_SEGMENTS);

	for (size_t i = 0; i < count; i++) {
		if (vaddr < segments[i].vaddr || vaddr - segments[i].vaddr >= segments[i].size)
			continue;
		*offset = segments[i].offset + (vaddr - segments[i].vaddr);
		return 0;
	}
	return -ENOENT;
}

static uint64_t address_of(const struct elf_file *elf, const Elf64_Sym *symbol)
{
	if (elf->header.e_type != ET_REL || symbol->st_shndx >= elf->section_count)
		return symbol->st_value;
	return elf->sections[symbol->st_shndx].sh_addr + symbol->st_value;
}

/* Visits a chunk of symbols. strings: size bytes and a NUL. */
static void visit_symbols(const struct elf_file *elf, const char *chunk, size_t count, const char *strings,
			  uint64_t size, void (*visit)(const char *name, const struct elf_symbol *symbol, void *arg),
			  void *arg)
{
	for (size_t i = 0; i < count; i++) {
		struct elf_symbol found;
		Elf64_Sym symbol;

		memcpy(&symbol, chunk + i * sizeof(symbol), sizeof(symbol));
		found = (struct elf_symbol){address_of(elf, &symbol), symbol.st_size, ELF64_ST_TYPE(symbol.st_info)};
		if (symbol.st_shndx != SHN_UNDEF && (found.type == STT_FUNC || found.type == STT_GNU_IFUNC) &&
		    symbol.st_name < size && strings[symbol.st_name])
			visit(strings + symbol.st_name, &found, arg);
	}
}

static int visit_table(const struct elf_file *elf, const Elf64_Shdr *symbols, const Elf64_Shdr *names,
		       void (*visit)(const char *name, const struct elf_symbol *symbol, void *arg), void *arg)
{
	uint64_t size = symbols->sh_size < ELF_MAX_SCAN ? symbols->sh_size : ELF_MAX_SCAN;
	uint64_t names_size = names->sh_size < ELF_MAX_SCAN ? names->sh_size : ELF_MAX_SCAN;
	const size_t step = ELF_CHUNK - ELF_CHUNK % sizeof(Elf64_Sym);
	char *chunk = malloc(ELF_CHUNK), *strings = calloc(1, names_size + 1);
	int err = chunk && strings ? elf_read_exactly(elf, names->sh_offset, strings, names_size) : -ENOMEM;

	for (uint64_t at = 0; !err && at < size;) {
		ssize_t n = elf_read_at(elf, symbols->sh_offset + at, chunk, size - at < step ? size - at : step);
		size_t count = n > 0 ? (size_t)n / sizeof(Elf64_Sym) : 0;

		if (!count)
			break;
		visit_symbols(elf, chunk, count, strings, names_size, visit, arg);
		at += count * sizeof(Elf64_Sym);
	}
	free(strings);
	free(chunk);
	return err;
}

int elf_file_functions(struct elf_file *elf,
		       void (*visit)(const char *name, const struct elf_symbol *symbol, void *arg), void *arg)
{
	static const uint32_t types[] = {SHT_DYNSYM, SHT_SYMTAB};
	int err = 0;

	for (size_t i = 0; i < sizeof(types) / sizeof(*types) && !err; i++) {
		const Elf64_Shdr *symbols = elf_section_of_type(elf, types[i]);

		if (symbols && symbols->sh_entsize == sizeof(Elf64_Sym) && symbols->sh_link < elf->section_count &&
		    elf->sections[symbols->sh_link].sh_type == SHT_STRTAB)
			err = visit_table(elf, symbols, &elf->sections[symbols->sh_link], visit, arg);
	}
	return err;
}

// SPDX-License-Identifier: Apache-2.0
/* Shared by elf_file.c, elf_section.c and elf_symbol.c; nothing else includes this. */
#ifndef BASE_ELF_INTERNAL_H
#define BASE_ELF_INTERNAL_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/elf_file.h"

/* Bytes of one read of a table that is searched from front to back. */
#define ELF_CHUNK (64 * 1024)
/*
 * Most bytes of a symbol table, a string table or read-only data that one search reads. libpython built with -O0 -g3
 * stays under 10 MB; a sparse file can claim exabytes.
 */
#define ELF_MAX_SCAN (32ULL * 1024 * 1024)

/* Most libraries that a file asks for which are counted. */
#define ELF_MAX_NEEDED 64

struct elf_dynamic {
	bool present;
	uint64_t gnu_hash, hash;   /* virtual addresses, 0 for none */
	uint64_t symbols, strings; /* virtual addresses, 0 for none */
	uint64_t strings_size;
	uint64_t soname;                 /* in strings, 0 for none */
	uint64_t needed[ELF_MAX_NEEDED]; /* in strings */
	size_t nr_needed;
};

struct elf_file {
	int fd;                /* -1: it is read by a function */
	elf_file_reader *read; /* that function */
	void *arg;             /* its argument */
	uint64_t size;
	Elf64_Ehdr header;
	Elf64_Phdr *segments;
	size_t segment_count;
	Elf64_Shdr *sections;
	size_t section_count;
	char *section_names; /* NUL-terminated even if the file's are not */
	size_t section_names_size;
	bool sections_read, soname_read;
	struct elf_dynamic dynamic;
	char soname[256];
};

/* Reads at most size bytes. Returns bytes read, 0 at or after the file's end, or negative errno. */
ssize_t elf_read_at(const struct elf_file *elf, uint64_t offset, void *buf, size_t size);
/* Reads exactly size bytes: 0, or -ENOENT when the file ends before. */
int elf_read_exactly(const struct elf_file *elf, uint64_t offset, void *buf, size_t size);
/* As elf_read_exactly, at a virtual address that the file must hold. */
int elf_read_vaddr(const struct elf_file *elf, uint64_t vaddr, void *buf, size_t size);
/*
 * Translates vaddr to its file offset; *available is the number of bytes in the file from there to the segment's end.
 * Returns 0, or -ENOENT.
 */
int elf_vaddr_to_offset(const struct elf_file *elf, uint64_t vaddr, uint64_t *offset, uint64_t *available);
/* Returns the first section of a type, or NULL. Reads the section headers at the first call. */
const Elf64_Shdr *elf_section_of_type(struct elf_file *elf, uint32_t type);
/* Reads the section headers once; section_count stays 0 when there are none or they are malformed. */
void elf_read_sections(struct elf_file *elf);

#endif

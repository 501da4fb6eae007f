// SPDX-License-Identifier: Apache-2.0
/* ELF files that may be hostile: symbols, sections, segments. Every byte is bounds-checked. */
#ifndef BASE_ELF_FILE_H
#define BASE_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct elf_file;

struct elf_symbol {
	uint64_t value; /* virtual address as linked */
	uint64_t size;
	uint8_t type; /* STT_* */
};

struct elf_section {
	uint64_t addr;   /* virtual address as linked */
	uint64_t offset; /* in the file */
	uint64_t size;
};

/*
 * Opens a regular ELF64 little-endian file from a descriptor (not consumed; may be closed after) or a path.
 * Never blocks on a FIFO or device. Returns 0; -ENOEXEC when it is no ELF; -ENOTSUP for a 32-bit or foreign
 * one; other negative errno.
 */
int elf_file_open(const char *path, struct elf_file **out);
int elf_file_open_fd(int fd, struct elf_file **out);
void elf_file_free(struct elf_file *elf);

/* Looks a defined symbol up in .dynsym, then in .symtab. Returns 0, or -ENOENT. */
int elf_file_symbol(struct elf_file *elf, const char *name, struct elf_symbol *out);
/* Looks in .dynsym alone (by its hash table where there is one). Returns 0, or -ENOENT. */
int elf_file_dynamic_symbol(struct elf_file *elf, const char *name, struct elf_symbol *out);
/* Finds a section by name. Returns 0, or -ENOENT. */
int elf_file_section(struct elf_file *elf, const char *name, struct elf_section *out);
/* The lowest PT_LOAD's p_vaddr, rounded down to a page, and its file offset rounded down likewise. */
void elf_file_first_load(struct elf_file *elf, uint64_t *vaddr, uint64_t *offset);
/* An executable PT_LOAD: what a process's executable mappings of the file are compared with. */
struct elf_segment {
	uint64_t vaddr, offset, size; /* as in the program header, not rounded to pages */
};
/* Copies the first max executable PT_LOADs to out; returns how many. */
size_t elf_file_code_segments(struct elf_file *elf, struct elf_segment *out, size_t max);
/* Translates a file offset to the virtual address as linked. Returns 0, or -ENOENT. */
int elf_file_offset_to_vaddr(struct elf_file *elf, uint64_t offset, uint64_t *vaddr);
/*
 * Copies size bytes that the file holds for virtual address vaddr (not .bss). Returns bytes copied, which may
 * be fewer at a segment's end, or -ENOENT.
 */
ssize_t elf_file_read(struct elf_file *elf, uint64_t vaddr, void *buf, size_t size);
/* ET_EXEC (fixed addresses, no load bias)? */
bool elf_file_is_fixed(struct elf_file *elf);
/* Has PT_INTERP or DT_NEEDED, i.e. is loaded by a dynamic linker? */
bool elf_file_is_dynamic(struct elf_file *elf);
/* DT_SONAME, or NULL; valid while elf lives. */
const char *elf_file_soname(struct elf_file *elf);
/* Build-id bytes; returns its length (at most size), or 0. */
size_t elf_file_build_id(struct elf_file *elf, uint8_t *buf, size_t size);
/*
 * Calls visit for every NUL-terminated printable string of at least min_len bytes in the read-only data
 * (.rodata, else the non-executable, non-writable PT_LOADs) until it returns non-zero, and returns that; 0 at
 * the end.
 */
int elf_file_strings(struct elf_file *elf, size_t min_len, int (*visit)(const char *text, void *arg), void *arg);

#endif

// SPDX-License-Identifier: Apache-2.0
/* Reads ELF files that may be hostile: symbols, sections, segments. Every byte is bounds-checked. */
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
 * Opens a regular ELF64 little-endian file from a descriptor (not consumed; may be closed after). Returns 0; -ENOEXEC
 * when the file is not ELF; -ENOTSUP when it is 32-bit or for another machine; other negative errno.
 */
int elf_file_open(int fd, struct elf_file **out);
/* As elf_file_open(), of a file that is in memory, which outlives *out. */
int elf_file_open_memory(const void *bytes, size_t size, struct elf_file **out);
/*
 * Copies size bytes of a file from an offset on, both of which are in the file. Returns the bytes copied, or negative
 * errno.
 */
typedef ssize_t elf_file_reader(void *arg, uint64_t offset, void *buf, size_t size);
/* As elf_file_open(), of a file of size bytes that a function reads, as long as *out lives. */
int elf_file_open_by(elf_file_reader *read, void *arg, uint64_t size, struct elf_file **out);
void elf_file_free(struct elf_file *elf);

/*
 * Returns a descriptor of the file, which the caller closes, -ENOENT for one that is in memory, or another negative
 * errno.
 */
int elf_file_dup(const struct elf_file *elf);

/* Looks a defined symbol up in .dynsym, then in .symtab. Returns 0, or -ENOENT. */
int elf_file_symbol(struct elf_file *elf, const char *name, struct elf_symbol *out);
/* Looks in .dynsym alone, by its hash table if it has one. Returns 0, or -ENOENT. */
int elf_file_dynamic_symbol(struct elf_file *elf, const char *name, struct elf_symbol *out);
/*
 * Calls visit for each defined function in .dynsym and .symtab; its name is valid during the call. In an object file
 * (ET_REL), the address of a symbol counts from that of its section. Returns 0, or a negative errno.
 */
int elf_file_functions(struct elf_file *elf,
		       void (*visit)(const char *name, const struct elf_symbol *symbol, void *arg), void *arg);
/* Returns the place in the file of an address in an executable segment: 0 and *offset, or -ENOENT. */
int elf_file_code_offset(struct elf_file *elf, uint64_t vaddr, uint64_t *offset);
/* Returns whether the file has .symtab, which strip takes away. */
bool elf_file_has_symtab(struct elf_file *elf);
/* Finds a section by name. Returns 0, or -ENOENT. */
int elf_file_section(struct elf_file *elf, const char *name, struct elf_section *out);
/*
 * Copies at most size bytes of a section, which need not be in a segment, from an offset in it on. Returns the bytes
 * copied, 0 at or after its end, or negative errno.
 */
ssize_t elf_file_read_section(struct elf_file *elf, const struct elf_section *section, uint64_t offset, void *buf,
			      size_t size);
/* Copies the first max sections of code that have an address to out; returns how many. */
size_t elf_file_code_sections(struct elf_file *elf, struct elf_section *out, size_t max);
/* Copies the build-id (NT_GNU_BUILD_ID) if it has at most max bytes. Returns its size, or 0 without one. */
size_t elf_file_build_id(struct elf_file *elf, uint8_t *id, size_t max);
/* An executable PT_LOAD, for comparison with a process's executable mappings of the file. */
struct elf_segment {
	uint64_t vaddr, offset, size; /* as in the program header, not rounded to pages */
};
/* Copies the first max executable PT_LOADs to out; returns how many. */
size_t elf_file_code_segments(struct elf_file *elf, struct elf_segment *out, size_t max);
/*
 * Copies size bytes that the file holds for virtual address vaddr (not .bss). Returns bytes copied, which may
 * be fewer at a segment's end, or -ENOENT.
 */
ssize_t elf_file_read(struct elf_file *elf, uint64_t vaddr, void *buf, size_t size);
/* Returns the address as linked at which a program begins, or 0. */
uint64_t elf_file_entry(const struct elf_file *elf);
/* Returns whether the file is ET_EXEC (fixed addresses, no load bias). */
bool elf_file_is_fixed(struct elf_file *elf);
/* Returns DT_SONAME, or NULL; valid while elf lives. */
const char *elf_file_soname(struct elf_file *elf);
/*
 * Returns how many libraries the file asks its loader for (DT_NEEDED, at most 64), without the loader itself, which
 * is musl's C library.
 */
size_t elf_file_libraries(struct elf_file *elf);
/*
 * Calls visit for every NUL-terminated printable string of at least min_len bytes in the read-only data
 * (.rodata, else the non-executable, non-writable PT_LOADs) until it returns non-zero, and returns that; 0 at
 * the end.
 */
int elf_file_strings(struct elf_file *elf, size_t min_len, int (*visit)(const char *text, void *arg), void *arg);

#endif

// SPDX-License-Identifier: Apache-2.0
/* Finds sections by name, and reads strings and the build-id from them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/elf_internal.h"

/* Far above what linkers produce (30 to 60 sections); limits the cost of a hostile header. */
#define ELF_MAX_SECTIONS      8192
#define ELF_MAX_SECTION_NAMES (256 * 1024)
/* Longest string that is searched for, and the longest beginning of it that is kept (PY_VERSION behind a path). */
#define ELF_MAX_STRING 4096

void elf_read_sections(struct elf_file *elf)
{
	uint64_t count = elf->header.e_shnum, names = elf->header.e_shstrndx;
	Elf64_Shdr first;
	size_t size;
	ssize_t n;

	if (elf->sections_read)
		return;
	elf->sections_read = true;
	if (!elf->header.e_shoff || elf->header.e_shentsize != sizeof(Elf64_Shdr))
		return;
	/* gABI: counts that do not fit into the header are in section 0. */
	if (elf_read_exactly(elf, elf->header.e_shoff, &first, sizeof(first)))
		return;
	if (!count)
		count = first.sh_size;
	if (names == SHN_XINDEX)
		names = first.sh_link;
	if (count > ELF_MAX_SECTIONS)
		count = ELF_MAX_SECTIONS;
	elf->sections = calloc(count ? count : 1, sizeof(Elf64_Shdr));
	if (!elf->sections)
		return;
	n = elf_read_at(elf, elf->header.e_shoff, elf->sections, count * sizeof(Elf64_Shdr));
	elf->section_count = n > 0 ? n / sizeof(Elf64_Shdr) : 0;
	if (names >= elf->section_count || elf->sections[names].sh_type == SHT_NOBITS)
		return;
	size = elf->sections[names].sh_size < ELF_MAX_SECTION_NAMES ? elf->sections[names].sh_size
								    : ELF_MAX_SECTION_NAMES;
	elf->section_names = calloc(1, size + 1);
	if (!elf->section_names)
		return;
	n = elf_read_at(elf, elf->sections[names].sh_offset, elf->section_names, size);
	elf->section_names_size = n > 0 ? n : 0;
}

const Elf64_Shdr *elf_section_of_type(struct elf_file *elf, uint32_t type)
{
	elf_read_sections(elf);
	for (size_t i = 0; i < elf->section_count; i++)
		if (elf->sections[i].sh_type == type)
			return &elf->sections[i];
	return NULL;
}

int elf_file_section(struct elf_file *elf, const char *name, struct elf_section *out)
{
	elf_read_sections(elf);
	for (size_t i = 0; i < elf->section_count; i++) {
		const Elf64_Shdr *sh = &elf->sections[i];

		if (sh->sh_type == SHT_NULL || sh->sh_name >= elf->section_names_size ||
		    strcmp(elf->section_names + sh->sh_name, name))
			continue;
		*out = (struct elf_section){.addr = sh->sh_addr, .offset = sh->sh_offset, .size = sh->sh_size};
		return 0;
	}
	return -ENOENT;
}

bool elf_file_has_symtab(struct elf_file *elf)
{
	return elf_section_of_type(elf, SHT_SYMTAB) != NULL;
}

size_t elf_file_code_sections(struct elf_file *elf, struct elf_section *out, size_t max)
{
	size_t count = 0;

	elf_read_sections(elf);
	for (size_t i = 0; i < elf->section_count && count < max; i++) {
		const Elf64_Shdr *sh = &elf->sections[i];

		if (sh->sh_flags & SHF_ALLOC && sh->sh_flags & SHF_EXECINSTR && sh->sh_addr)
			out[count++] =
				(struct elf_section){.addr = sh->sh_addr, .offset = sh->sh_offset, .size = sh->sh_size};
	}
	return count;
}

ssize_t elf_file_read_section(struct elf_file *elf, const struct elf_section *section, uint64_t offset, void *buf,
			      size_t size)
{
	uint64_t left = offset < section->size ? section->size - offset : 0;

	if (section->size > UINT64_MAX - section->offset)
		return 0;
	return elf_read_at(elf, section->offset + offset, buf, size < left ? size : left);
}

size_t elf_file_build_id(struct elf_file *elf, uint8_t *id, size_t max)
{
	struct {
		Elf64_Nhdr head;
		char name[sizeof(ELF_NOTE_GNU)];
	} note;
	struct elf_section section;
	size_t size;

	if (elf_file_section(elf, ".note.gnu.build-id", &section) ||
	    elf_file_read_section(elf, &section, 0, &note, sizeof(note)) != sizeof(note) ||
	    note.head.n_type != NT_GNU_BUILD_ID || note.head.n_namesz != sizeof(note.name) ||
	    memcmp(note.name, ELF_NOTE_GNU, sizeof(note.name)) != 0)
		return 0;
	size = note.head.n_descsz;
	return size <= max && elf_file_read_section(elf, &section, sizeof(note), id, size) == (ssize_t)size ? size : 0;
}

/* Visits the strings of one range of the file; *budget is the number of bytes that may still be read. */
static int range_strings(struct elf_file *elf, uint64_t offset, uint64_t size, uint64_t *budget, size_t min_len,
			 char *chunk, int (*visit)(const char *text, void *arg), void *arg)
{
	size_t kept = 0; /* bytes at the chunk's start that belong to a string that goes on */

	while (size && *budget) {
		ssize_t n = elf_read_at(elf, offset, chunk + kept, size < ELF_CHUNK ? size : ELF_CHUNK);
		const char *end = chunk + kept + n, *p = chunk, *nul, *search = chunk + kept;

		if (n <= 0)
			return 0;
		for (; (nul = memchr(search, '\0', end - search)); p = search = nul + 1) {
			const char *text = nul;
			int ret;

			/* Other data may come right before a string: only the printable end counts. */
			while (text > p && text[-1] >= ' ' && text[-1] <= '~')
				text--;
			if ((size_t)(nul - text) < min_len)
				continue;
			ret = visit(text, arg);
			if (ret)
				return ret;
		}
		kept = end - p < ELF_MAX_STRING ? end - p : ELF_MAX_STRING;
		memmove(chunk, end - kept, kept);
		offset += n;
		size -= n;
		*budget -= (uint64_t)n < *budget ? (uint64_t)n : *budget;
	}
	return 0;
}

int elf_file_strings(struct elf_file *elf, size_t min_len, int (*visit)(const char *text, void *arg), void *arg)
{
	uint64_t budget = ELF_MAX_SCAN;
	struct elf_section rodata;
	char *chunk = malloc(ELF_MAX_STRING + ELF_CHUNK);
	int ret = 0;

	if (!chunk)
		return -ENOMEM;
	if (!elf_file_section(elf, ".rodata", &rodata)) {
		ret = range_strings(elf, rodata.offset, rodata.size, &budget, min_len, chunk, visit, arg);
		goto done;
	}
	/* Linkers before -z separate-code put read-only data beside the code: those segments are searched last. */
	for (int code = 0; code < 2; code++) {
		for (size_t i = 0; i < elf->segment_count && !ret; i++) {
			const Elf64_Phdr *ph = &elf->segments[i];

			if (ph->p_type == PT_LOAD && !(ph->p_flags & PF_W) && !!(ph->p_flags & PF_X) == code)
				ret = range_strings(elf, ph->p_offset, ph->p_filesz, &budget, min_len, chunk, visit,
						    arg);
		}
	}
done:
	free(chunk);
	return ret;
}

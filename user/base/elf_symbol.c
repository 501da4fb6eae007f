// SPDX-License-Identifier: Apache-2.0
/*
 * Symbol look-up. In .dynsym through its hash table: some five reads of a few bytes. In .symtab, which has no
 * index: first the string table for the name, then the symbols for that name's offset.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/elf_internal.h"

/*
 * Longest chain of one hash bucket that is followed. Real chains have a handful of entries (ld sizes the table for
 * that); the limit bounds a file that is crafted so that each entry costs a name comparison.
 */
#define ELF_MAX_CHAIN 4096
/* Most places of one name in a string table that are remembered: the symbol's own, and the ends of longer names. */
#define ELF_MAX_PLACES 16
#define ELF_MAX_NAME   256

static bool symbol_is_defined(const Elf64_Sym *symbol)
{
	unsigned type = ELF64_ST_TYPE(symbol->st_info);

	/* An undefined symbol is an import: gdb and extension modules import _PyRuntime. */
	return symbol->st_shndx != SHN_UNDEF && type != STT_FILE && type != STT_SECTION;
}

static void symbol_to_out(const Elf64_Sym *symbol, struct elf_symbol *out)
{
	*out = (struct elf_symbol){
		.value = symbol->st_value, .size = symbol->st_size, .type = ELF64_ST_TYPE(symbol->st_info)};
}

/* Compares the name of dynamic symbol number index. Fills *out and returns 0 if it is name, else returns -ENOENT. */
static int dynamic_symbol_matches(const struct elf_file *elf, uint64_t index, const char *name, size_t len,
				  struct elf_symbol *out)
{
	const struct elf_dynamic *dynamic = &elf->dynamic;
	char text[ELF_MAX_NAME];
	Elf64_Sym symbol;
	int err;

	err = elf_read_vaddr(elf, dynamic->symbols + index * sizeof(symbol), &symbol, sizeof(symbol));
	if (err)
		return err;
	if (!symbol_is_defined(&symbol))
		return -ENOENT;
	if (symbol.st_name >= dynamic->strings_size || dynamic->strings_size - symbol.st_name <= len)
		return -ENOENT;
	err = elf_read_vaddr(elf, dynamic->strings + symbol.st_name, text, len + 1);
	if (err)
		return err;
	if (memcmp(text, name, len + 1))
		return -ENOENT;
	symbol_to_out(&symbol, out);
	return 0;
}

/* https://flapenguin.me/elf-dt-gnu-hash and glibc's elf/dl-lookup.c describe the table. */
static int gnu_hash_lookup(const struct elf_file *elf, const char *name, size_t len, struct elf_symbol *out)
{
	struct {
		uint32_t buckets, first_symbol, bloom_words, bloom_shift;
	} head;
	uint64_t table = elf->dynamic.gnu_hash + sizeof(head), bloom;
	uint32_t hash = 5381, index, chain[16];
	int err;

	for (size_t i = 0; i < len; i++)
		hash = hash * 33 + (uint8_t)name[i];
	err = elf_read_vaddr(elf, elf->dynamic.gnu_hash, &head, sizeof(head));
	if (err)
		return err;
	if (!head.buckets || !head.bloom_words || head.bloom_shift > 31)
		return -ENOENT;
	err = elf_read_vaddr(elf, table + hash / 64 % head.bloom_words * 8ULL, &bloom, sizeof(bloom));
	if (err)
		return err;
	if (!(bloom >> (hash % 64) & bloom >> ((hash >> head.bloom_shift) % 64) & 1))
		return -ENOENT;
	table += head.bloom_words * 8ULL;
	err = elf_read_vaddr(elf, table + hash % head.buckets * 4ULL, &index, sizeof(index));
	if (err)
		return err;
	if (index < head.first_symbol)
		return -ENOENT;
	table += head.buckets * 4ULL;
	for (uint64_t at = index, end = at + ELF_MAX_CHAIN; at < end;) {
		uint64_t offset, available;
		ssize_t n;

		err = elf_vaddr_to_offset(elf, table + (at - head.first_symbol) * 4, &offset, &available);
		if (err)
			return err;
		n = elf_read_at(elf, offset, chain, available < sizeof(chain) ? available : sizeof(chain));
		if (n < 4)
			return n < 0 ? (int)n : -ENOENT;
		for (ssize_t i = 0; i < n / 4; i++, at++) {
			if ((chain[i] | 1) == (hash | 1) && !dynamic_symbol_matches(elf, at, name, len, out))
				return 0;
			if (chain[i] & 1)
				return -ENOENT;
		}
	}
	return -ENOENT;
}

/* The System V gABI's DT_HASH: libraries of musl and of older linkers can have only this table. */
static int sysv_hash_lookup(const struct elf_file *elf, const char *name, size_t len, struct elf_symbol *out)
{
	struct {
		uint32_t buckets, chains;
	} head;
	uint64_t table = elf->dynamic.hash + sizeof(head);
	uint32_t hash = 0, index;
	int err;

	for (size_t i = 0; i < len; i++) {
		hash = (hash << 4) + (uint8_t)name[i];
		hash ^= (hash & 0xf0000000) >> 24;
		hash &= 0x0fffffff;
	}
	err = elf_read_vaddr(elf, elf->dynamic.hash, &head, sizeof(head));
	if (err)
		return err;
	if (!head.buckets)
		return -ENOENT;
	err = elf_read_vaddr(elf, table + hash % head.buckets * 4ULL, &index, sizeof(index));
	table += head.buckets * 4ULL;
	/* A chain can loop. */
	for (int i = 0; !err && i < ELF_MAX_CHAIN && index != STN_UNDEF && index < head.chains; i++) {
		if (!dynamic_symbol_matches(elf, index, name, len, out))
			return 0;
		err = elf_read_vaddr(elf, table + index * 4ULL, &index, sizeof(index));
	}
	return -ENOENT;
}

struct places {
	uint32_t offset[ELF_MAX_PLACES];
	size_t count;
};

/* Finds the places of a name, with its NUL, in a string table; a longer name may end with it (tail merging). */
static void find_in_strings(const struct elf_file *elf, const Elf64_Shdr *strings, const char *name, size_t len,
			    char *chunk, struct places *places)
{
	uint64_t size = strings->sh_size < ELF_MAX_SCAN ? strings->sh_size : ELF_MAX_SCAN;

	for (uint64_t at = 0; at + len < size;) {
		size_t want = size - at < ELF_CHUNK ? size - at : ELF_CHUNK;
		ssize_t n = elf_read_at(elf, strings->sh_offset + at, chunk, want);
		const char *p = chunk, *hit;

		if (n <= (ssize_t)len)
			return;
		while ((hit = memmem(p, n - (p - chunk), name, len + 1))) {
			if (places->count == ELF_MAX_PLACES)
				return;
			places->offset[places->count++] = at + (hit - chunk);
			p = hit + 1;
		}
		/* The next chunk starts such that a name across the border is complete in exactly one chunk. */
		at += n - len;
	}
}

static int find_in_symbols(const struct elf_file *elf, const Elf64_Shdr *symbols, const struct places *places,
			   char *chunk, struct elf_symbol *out)
{
	uint64_t size = symbols->sh_size < ELF_MAX_SCAN ? symbols->sh_size : ELF_MAX_SCAN;
	const size_t step = ELF_CHUNK - ELF_CHUNK % sizeof(Elf64_Sym);

	for (uint64_t at = 0; at < size;) {
		size_t want = size - at < step ? size - at : step;
		ssize_t n = elf_read_at(elf, symbols->sh_offset + at, chunk, want);
		size_t count = n > 0 ? n / sizeof(Elf64_Sym) : 0;

		if (!count)
			return -ENOENT;
		for (size_t i = 0; i < count; i++) {
			Elf64_Sym symbol;

			memcpy(&symbol, chunk + i * sizeof(symbol), sizeof(symbol));
			for (size_t j = 0; j < places->count; j++) {
				if (symbol.st_name == places->offset[j] && symbol_is_defined(&symbol)) {
					symbol_to_out(&symbol, out);
					return 0;
				}
			}
		}
		at += count * sizeof(Elf64_Sym);
	}
	return -ENOENT;
}

/* Looks a name up in the symbol table of a type (SHT_SYMTAB, or SHT_DYNSYM that has no hash table). */
static int table_lookup(struct elf_file *elf, uint32_t type, const char *name, size_t len, struct elf_symbol *out)
{
	const Elf64_Shdr *symbols = elf_section_of_type(elf, type), *strings;
	struct places places = {.count = 0};
	int err = -ENOENT;
	char *chunk;

	if (!symbols || symbols->sh_entsize != sizeof(Elf64_Sym) || symbols->sh_link >= elf->section_count)
		return -ENOENT;
	strings = &elf->sections[symbols->sh_link];
	if (strings->sh_type != SHT_STRTAB)
		return -ENOENT;
	chunk = malloc(ELF_CHUNK);
	if (!chunk)
		return -ENOMEM;
	find_in_strings(elf, strings, name, len, chunk, &places);
	if (places.count)
		err = find_in_symbols(elf, symbols, &places, chunk, out);
	free(chunk);
	return err;
}

int elf_file_dynamic_symbol(struct elf_file *elf, const char *name, struct elf_symbol *out)
{
	const struct elf_dynamic *dynamic = &elf->dynamic;
	size_t len = strlen(name);
	int err = -ENOENT;

	if (!len || len >= ELF_MAX_NAME)
		return -ENOENT;
	if (dynamic->symbols && dynamic->strings && dynamic->gnu_hash)
		err = gnu_hash_lookup(elf, name, len, out);
	else if (dynamic->symbols && dynamic->strings && dynamic->hash)
		err = sysv_hash_lookup(elf, name, len, out);
	else
		err = table_lookup(elf, SHT_DYNSYM, name, len, out);
	return err;
}

int elf_file_symbol(struct elf_file *elf, const char *name, struct elf_symbol *out)
{
	size_t len = strlen(name);
	int err = elf_file_dynamic_symbol(elf, name, out);

	if (err != -ENOENT || !len || len >= ELF_MAX_NAME)
		return err;
	return table_lookup(elf, SHT_SYMTAB, name, len, out);
}

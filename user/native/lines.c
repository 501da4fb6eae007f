// SPDX-License-Identifier: Apache-2.0
/* Has libdw tell lines and inlined functions of an address. */
#include "native/lines.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <endian.h>
#include <errno.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "native/demangle.h"

/* Deeper nesting of scopes is not followed; compilers make some 20. */
#define DEPTH_MAX 128
/* Most ranges of a unit or function, and entries of a unit: a file can refer to itself. */
#define RANGES_MAX  65536
#define ENTRIES_MAX (16u << 20)

/* Addresses of a unit or of a function, of which one may have several. */
struct range {
	uint64_t start, end;
	Dwarf_Off entry;
};

struct ranges {
	struct range *items;
	size_t count, room;
};

/* A file that libdw reads. */
struct source {
	int fd;
	Elf *elf;
	Dwarf *dwarf;
};

struct native_lines {
	struct source own,
		shared; /* the file itself, and the one that dwz made it share; shared.dwarf is NULL without one */
	size_t bytes;
	struct ranges units;     /* in order of start */
	struct ranges functions; /* of the unit that was looked at last */
	Dwarf_Off unit;          /* that one; 0: none */
};

static int note_ranges(struct ranges *to, Dwarf_Die *die)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;

	for (size_t i = 0; i < RANGES_MAX && (at = dwarf_ranges(die, at, &base, &start, &end)) > 0; i++) {
		if (start >= end)
			continue;
		if (array_reserve(&to->items, &to->room, to->count + 1, sizeof(*to->items)))
			return -ENOMEM;
		to->items[to->count++] = (struct range){start, end, dwarf_dieoffset(die)};
	}
	return 0;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct range *one = a, *other = b;

	return one->start < other->start ? -1 : one->start > other->start;
}

/* Units whose code is in a file of its own (-gsplit-dwarf) are left out: libdw would open the path that they name. */
static int find_units(struct native_lines *l)
{
	Dwarf_CU *unit = NULL;
	bool is_split = false;
	uint8_t type;
	Dwarf_Die die;
	int err = 0;

	while (!err && dwarf_get_units(l->own.dwarf, unit, &unit, NULL, &type, &die, NULL) == 0) {
		if (type == DW_UT_compile)
			err = note_ranges(&l->units, &die);
		is_split |= type == DW_UT_skeleton;
	}
	if (l->units.count)
		qsort(l->units.items, l->units.count, sizeof(*l->units.items), compare_ranges);
	return err ? err : l->units.count ? 0 : is_split ? -ENOLINK : -ENOENT;
}

/* What the name of a section begins with that is packed as before SHF_COMPRESSED: "ZLIB", its size, and the rest. */
#define PACKED_BEGIN ".zdebug_"

/* Returns the name of a section that is for debuggers, without what all of them begin with, or NULL. */
static const char *debug_name(Elf *elf, size_t names, Elf_Scn *section, GElf_Shdr *header)
{
	static const char *const begins[] = {".debug_", PACKED_BEGIN};
	const char *name = gelf_getshdr(section, header) ? elf_strptr(elf, names, header->sh_name) : NULL;

	for (size_t i = 0; name && header->sh_type != SHT_NOBITS && i < sizeof(begins) / sizeof(*begins); i++) {
		if (!strncmp(name, begins[i], strlen(begins[i])))
			return name + strlen(begins[i]);
	}
	return NULL;
}

/*
 * Returns whether each string of the file ends in its section. Libdw 0.188 takes that for granted, and would show what
 * lies behind it in memory. contains_text() tells of strings within other sections.
 */
static bool has_whole_strings(Elf *elf)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return false;
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *name = debug_name(elf, names, section, &header);
		const Elf_Data *data;

		if (!name || (strcmp(name, "str") != 0 && strcmp(name, "line_str") != 0))
			continue;
		data = elf_rawdata(section, NULL);
		if (data && data->d_size && ((const char *)data->d_buf)[data->d_size - 1])
			return false;
	}
	return true;
}

/* Returns whether a text, if it is in the section, has its end there. */
static bool contains_text(Elf_Scn *section, const char *text)
{
	const Elf_Data *data = elf_rawdata(section, NULL);
	uintptr_t at, begin = data ? (uintptr_t)data->d_buf : 0;

	at = (uintptr_t)text - begin;
	return !data || at >= data->d_size || memchr(text, '\0', data->d_size - at);
}

/* Returns the text, or NULL for one that goes on behind the section that it is in. */
static const char *whole_text(const struct native_lines *l, const char *text)
{
	const struct source *const sources[] = {&l->own, &l->shared};

	for (size_t i = 0; text && i < sizeof(sources) / sizeof(*sources); i++) {
		Elf_Scn *section = NULL;
		GElf_Shdr header;
		size_t names;

		if (!sources[i]->elf || elf_getshdrstrndx(sources[i]->elf, &names))
			continue;
		while ((section = elf_nextscn(sources[i]->elf, section))) {
			if (debug_name(sources[i]->elf, names, section, &header) && !contains_text(section, text))
				return NULL;
		}
	}
	return text;
}

/* Returns the bytes of a section that is packed as before SHF_COMPRESSED, as unpacked. */
static size_t old_packed_bytes(Elf *elf, const GElf_Shdr *header)
{
	const Elf_Data *data = elf_getdata_rawchunk(elf, (int64_t)header->sh_offset, 12, ELF_T_BYTE);
	uint64_t size;

	if (!data || data->d_size != 12)
		return SIZE_MAX / 2;
	memcpy(&size, (const char *)data->d_buf + 4, sizeof(size));
	size = be64toh(size);
	return size < SIZE_MAX / 2 ? size : SIZE_MAX / 2;
}

/* Returns the bytes of a section, as unpacked, or 0 for one that is not for debuggers. */
static size_t section_bytes(Elf *elf, size_t names, Elf_Scn *section)
{
	GElf_Shdr header;
	GElf_Chdr packed;

	if (!debug_name(elf, names, section, &header))
		return 0;
	if (!strncmp(elf_strptr(elf, names, header.sh_name), PACKED_BEGIN, strlen(PACKED_BEGIN)))
		return header.sh_size + old_packed_bytes(elf, &header);
	if (!(header.sh_flags & SHF_COMPRESSED))
		return header.sh_size;
	return gelf_getchdr(section, &packed) ? header.sh_size + packed.ch_size : SIZE_MAX / 2;
}

/* Adds up what libdw is going to read, which is all sections for debuggers. */
static int measure(struct native_lines *l, Elf *elf, size_t room)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return -EBADMSG;
	while ((section = elf_nextscn(elf, section))) {
		size_t bytes = section_bytes(elf, names, section);

		if (bytes > room - l->bytes)
			return -EFBIG;
		l->bytes += bytes;
	}
	return l->bytes ? 0 : -ENOENT;
}

static int open_source(struct native_lines *l, struct source *source, const struct elf_file *file, size_t room)
{
	int err;

	source->fd = elf_file_dup(file);
	if (source->fd < 0)
		return source->fd;
	/* libelf would map the file, which its owner may make shorter meanwhile. */
	source->elf = elf_begin(source->fd, ELF_C_READ, NULL);
	if (!source->elf)
		return -EBADMSG;
	err = measure(l, source->elf, room);
	if (err)
		return err;
	source->dwarf = dwarf_begin_elf(source->elf, DWARF_C_READ, NULL);
	if (!source->dwarf)
		return -ENOENT;
	return has_whole_strings(source->elf) ? 0 : -EBADMSG;
}

static int open_both(struct native_lines *l, const struct elf_file *elf, const struct elf_file *shared, size_t room)
{
	const char *name;
	const void *id;
	int err;

	elf_version(EV_CURRENT);
	err = open_source(l, &l->own, elf, room);
	/* Libdw would look for that file by itself, by the path that this one names, if it were not told of it. */
	if (!err && dwelf_dwarf_gnu_debugaltlink(l->own.dwarf, &name, &id) > 0) {
		err = shared ? open_source(l, &l->shared, shared, room) : -ENOLINK;
		if (!err)
			dwarf_setalt(l->own.dwarf, l->shared.dwarf);
	}
	return err ? err : find_units(l);
}

int native_lines_open(const struct elf_file *elf, const struct elf_file *shared, size_t room, struct native_lines **out)
{
	struct native_lines *l = calloc(1, sizeof(*l));
	int err;

	*out = NULL;
	if (!l)
		return -ENOMEM;
	l->own.fd = l->shared.fd = -1;
	err = open_both(l, elf, shared, room);
	if (err)
		native_lines_close(l);
	else
		*out = l;
	return err;
}

static void close_source(struct source *source)
{
	dwarf_end(source->dwarf);
	elf_end(source->elf);
	if (source->fd >= 0)
		close(source->fd);
}

void native_lines_close(struct native_lines *l)
{
	if (!l)
		return;
	close_source(&l->own);
	close_source(&l->shared);
	free(l->units.items);
	free(l->functions.items);
	free(l);
}

size_t native_lines_bytes(const struct native_lines *l)
{
	return l->bytes;
}

/* Returns whether functions may be in an entry: C++ and Rust have them in namespaces and types, too. */
static bool has_functions(int tag)
{
	switch (tag) {
	case DW_TAG_subprogram:
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
	case DW_TAG_lexical_block:
		return true;
	default:
		return false;
	}
}

/* Notes the functions of a unit. */
static int find_functions(struct native_lines *l, Dwarf_Die *unit)
{
	Dwarf_Die path[DEPTH_MAX];
	int depth = 0, more = dwarf_child(unit, &path[0]), err = 0;

	for (size_t entries = 0; depth >= 0 && !err && entries < ENTRIES_MAX; entries++) {
		Dwarf_Die *die = &path[depth];
		int tag;

		if (more) {
			depth--;
		} else {
			tag = dwarf_tag(die);
			if (tag == DW_TAG_subprogram)
				err = note_ranges(&l->functions, die);
			if (has_functions(tag) && depth + 1 < DEPTH_MAX && !dwarf_child(die, die + 1)) {
				depth++;
				continue;
			}
		}
		more = depth < 0 ? 1 : dwarf_siblingof(&path[depth], &path[depth]);
	}
	return err;
}

/* Returns the smallest range that has the address, or NULL. */
static const struct range *find_range(const struct ranges *in, uint64_t address)
{
	const struct range *found = NULL;

	for (size_t i = 0; i < in->count; i++) {
		const struct range *one = &in->items[i];

		if (address >= one->start && address < one->end &&
		    (!found || one->end - one->start < found->end - found->start))
			found = one;
	}
	return found;
}

/* Finds the unit of an address, and its functions. Returns 0, -ENOENT or -ENOMEM. */
static int turn_to_unit(struct native_lines *l, uint64_t address, Dwarf_Die *unit)
{
	const struct range *found = find_range(&l->units, address);
	int err;

	if (!found || !dwarf_offdie(l->own.dwarf, found->entry, unit))
		return -ENOENT;
	if (l->unit == found->entry)
		return 0;
	l->unit = 0;
	l->functions.count = 0;
	err = find_functions(l, unit);
	if (!err)
		l->unit = found->entry;
	return err;
}

/* Scopes of an address in a function: blocks, and functions that are inlined. */
static bool is_scope(int tag)
{
	return tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block || tag == DW_TAG_try_block ||
	       tag == DW_TAG_catch_block;
}

/* Turns *die to the scope in it that has the address. Returns whether there is one. */
static bool descend(Dwarf_Die *die, uint64_t address)
{
	Dwarf_Die inner;
	int more = dwarf_child(die, &inner);

	for (size_t i = 0; !more && i < ENTRIES_MAX; i++) {
		if (is_scope(dwarf_tag(&inner)) && dwarf_haspc(&inner, address) > 0) {
			*die = inner;
			return true;
		}
		more = dwarf_siblingof(&inner, &inner);
	}
	return false;
}

/* Writes the end of a path that is too long. */
static void write_path(const struct native_lines *l, struct native_line *out, const char *found)
{
	const char *path = whole_text(l, found);
	size_t size = path ? strlen(path) + 1 : 0;

	if (size)
		memcpy(out->file, size > sizeof(out->file) ? path + size - sizeof(out->file) : path,
		       size > sizeof(out->file) ? sizeof(out->file) : size);
}

static void write_name(const struct native_lines *l, struct native_line *out, Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	const char *linked = NULL;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute))
		linked = whole_text(l, dwarf_formstring(&attribute));
	out->is_demangled = native_demangle(linked ?: whole_text(l, dwarf_diename(die)) ?: "", out->function, sizeof(out->function));
}

/* Writes where a function is called that is inlined. */
static void write_call(const struct native_lines *l, struct native_line *out, Dwarf_Die *unit, Dwarf_Die *inlined)
{
	Dwarf_Attribute attribute;
	Dwarf_Word file, line;
	Dwarf_Files *files;
	size_t count;

	if (!dwarf_attr(inlined, DW_AT_call_line, &attribute) || dwarf_formudata(&attribute, &line) ||
	    !dwarf_attr(inlined, DW_AT_call_file, &attribute) || dwarf_formudata(&attribute, &file) ||
	    dwarf_getsrcfiles(unit, &files, &count) || file >= count)
		return;
	write_path(l, out, dwarf_filesrc(files, file, NULL, NULL));
	out->line = line <= INT32_MAX ? (int32_t)line : 0;
}

/* Writes the line of the instruction itself. */
static void write_line(const struct native_lines *l, struct native_line *out, Dwarf_Die *unit, uint64_t address)
{
	Dwarf_Line *row = dwarf_getsrc_die(unit, address);
	int line = 0;

	if (!row)
		return;
	dwarf_lineno(row, &line);
	write_path(l, out, dwarf_linesrc(row, NULL, NULL));
	out->line = line > 0 ? line : 0;
}

int native_lines_find(struct native_lines *l, uint64_t address, struct native_line *out)
{
	const struct range *function = NULL;
	Dwarf_Die unit, die;
	int count = 0, err = turn_to_unit(l, address, &unit);

	if (!err)
		function = find_range(&l->functions, address);
	if (err || !function || !dwarf_offdie(l->own.dwarf, function->entry, &die))
		return err == -ENOMEM ? err : 0;
	memset(&out[0], 0, sizeof(out[0]));
	write_name(l, &out[count++], &die);
	for (unsigned depth = 0; depth < DEPTH_MAX && descend(&die, address); depth++) {
		if (dwarf_tag(&die) != DW_TAG_inlined_subroutine)
			continue;
		write_call(l, &out[count - 1], &unit, &die);
		if (count == NATIVE_INLINED_MAX)
			return count;
		memset(&out[count], 0, sizeof(out[count]));
		write_name(l, &out[count++], &die);
	}
	write_line(l, &out[count - 1], &unit, address);
	return count;
}

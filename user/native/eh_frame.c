// SPDX-License-Identifier: Apache-2.0
/* The section's entries (LSB 5.0, 10.6): CIEs and FDEs, each behind its length. */
#include "native/eh_frame.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* A length of 32 bits that says that one of 64 follows. */
#define LONG_LENGTH 0xffffffffu

struct entry {
	struct dwarf_cursor body; /* from the CIE's id or pointer on */
	uint64_t offset;          /* of body in the section */
	uint32_t id;              /* 0: a CIE; else how far before body the FDE's CIE begins */
};

static uint64_t address_of(const struct eh_frame *section, const struct dwarf_cursor *c)
{
	return section->address + (uint64_t)(c->at - section->bytes);
}

/* Reads the entry at an offset. Returns its bytes with its length; 0 at the end; negative errno. */
static int64_t read_entry(const struct eh_frame *section, uint64_t offset, struct entry *out)
{
	struct dwarf_cursor c = {.at = section->bytes + offset, .end = section->bytes + section->size};
	const uint8_t *begin = c.at;
	uint64_t length;

	memset(out, 0, sizeof(*out));
	if (c.at == c.end)
		return 0;
	length = dwarf_read_unsigned(&c, 4);
	if (length == LONG_LENGTH)
		length = dwarf_read_unsigned(&c, 8);
	/* A zero ends what one object file has brought along; the linker leaves one at the end of all. */
	if (!length)
		return c.failed ? -EBADMSG : 4;
	out->body = dwarf_take(&c, length);
	out->offset = (uint64_t)(out->body.at - section->bytes);
	out->id = (uint32_t)dwarf_read_unsigned(&out->body, 4);
	return c.failed || out->body.failed ? -EBADMSG : c.at - begin;
}

/* The letters of a CIE's augmentation say what its data are. Returns whether all are known. */
static bool read_augmentation(const struct eh_frame *section, struct dwarf_cursor *c, const char *letters,
			      struct cfi_common *out)
{
	struct dwarf_cursor data;
	uint8_t encoding;

	if (!*letters)
		return true;
	if (*letters++ != 'z')
		return false;
	out->has_augmentation = true;
	data = dwarf_take(c, dwarf_read_uleb(c));
	for (; *letters; letters++) {
		switch (*letters) {
		case 'R':
			out->pointer_encoding = (uint8_t)dwarf_read_unsigned(&data, 1);
			break;
		case 'L':
			dwarf_read_unsigned(&data, 1);
			break;
		case 'P':
			encoding = (uint8_t)dwarf_read_unsigned(&data, 1);
			/* Only its length matters: what it is relative to may be anything. */
			dwarf_read_pointer(&data, encoding & DWARF_PE_FORMAT, address_of(section, &data));
			break;
		case 'S':
			out->is_signal = true;
			break;
		case 'B': /* arm64's signed return addresses */
			break;
		default:
			return false;
		}
	}
	return !data.failed;
}

static int read_common(const struct eh_frame *section, uint64_t offset, struct cfi_common *out)
{
	const char *letters;
	struct entry entry;
	uint8_t version;
	bool is_known;

	if (offset >= section->size || read_entry(section, offset, &entry) <= 0 || entry.id)
		return -EBADMSG;
	memset(out, 0, sizeof(*out));
	version = (uint8_t)dwarf_read_unsigned(&entry.body, 1);
	letters = dwarf_read_string(&entry.body);
	out->code_factor = dwarf_read_uleb(&entry.body);
	out->data_factor = dwarf_read_sleb(&entry.body);
	out->return_column = version == 1 ? dwarf_read_unsigned(&entry.body, 1) : dwarf_read_uleb(&entry.body);
	is_known = read_augmentation(section, &entry.body, letters, out);
	out->program = entry.body;
	return (version == 1 || version == 3) && is_known && !entry.body.failed ? 0 : -EBADMSG;
}

static int find_common(struct eh_frame *section, uint64_t offset)
{
	int err;

	if (section->common_at == offset + 1)
		return 0;
	err = read_common(section, offset, &section->common);
	section->common_at = err ? 0 : offset + 1;
	return err;
}

/* Reads an FDE up to its program, which is then left in entry->body. */
static int read_function(struct eh_frame *section, struct entry *entry, struct eh_frame_function *out)
{
	const struct cfi_common *common = &section->common;
	struct dwarf_cursor *c = &entry->body;
	int err = entry->id > entry->offset ? -EBADMSG : find_common(section, entry->offset - entry->id);

	if (err)
		return err;
	out->start = dwarf_read_pointer(c, common->pointer_encoding, address_of(section, c));
	out->end = out->start + dwarf_read_pointer(c, common->pointer_encoding & DWARF_PE_FORMAT, 0);
	if (common->has_augmentation)
		dwarf_skip(c, dwarf_read_uleb(c));
	return c->failed ? -EBADMSG : 0;
}

int eh_frame_functions(struct eh_frame *section, int (*visit)(void *arg, const struct eh_frame_function *function),
		       void *arg)
{
	struct eh_frame_function function;
	int64_t size = 4;
	int err = 0;

	for (uint64_t at = 0; size && !err; at += (uint64_t)size) {
		struct entry entry = {.id = 0};

		size = read_entry(section, at, &entry);
		if (size < 0)
			return (int)size;
		function.offset = at;
		/* A function whose entry cannot be read leaves a gap in the table. */
		if (entry.id && !read_function(section, &entry, &function) && function.start < function.end)
			err = visit(arg, &function);
	}
	return err;
}

int eh_frame_rows(struct eh_frame *section, const struct eh_frame_function *function, cfi_take_row *take, void *arg)
{
	struct eh_frame_function again;
	struct entry entry;

	if (function->offset >= section->size || read_entry(section, function->offset, &entry) <= 0 || !entry.id ||
	    read_function(section, &entry, &again))
		return -EBADMSG;
	return cfi_make_rows(&section->common, entry.body, address_of(section, &entry.body), again.start, again.end,
			     take, arg);
}

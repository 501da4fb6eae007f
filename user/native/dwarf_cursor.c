// SPDX-License-Identifier: Apache-2.0
#include "native/dwarf_cursor.h"

#include <string.h>

static uint64_t fail(struct dwarf_cursor *c)
{
	c->failed = true;
	c->at = c->end;
	return 0;
}

uint64_t dwarf_read_unsigned(struct dwarf_cursor *c, size_t bytes)
{
	uint64_t value = 0;

	if ((size_t)(c->end - c->at) < bytes)
		return fail(c);
	/* A copy of a constant size is one instruction. */
	if (bytes == 1)
		value = *c->at;
	else if (bytes == 4)
		memcpy(&value, c->at, 4);
	else
		memcpy(&value, c->at, bytes);
	c->at += bytes;
	return value;
}

int64_t dwarf_read_signed(struct dwarf_cursor *c, size_t bytes)
{
	unsigned unused = 64 - 8 * (unsigned)bytes;

	return (int64_t)(dwarf_read_unsigned(c, bytes) << unused) >> unused;
}

/* Reads the 7 bits of each byte up to one without the eighth. *bits: how many they were, which may be more than 64. */
static uint64_t read_leb(struct dwarf_cursor *c, unsigned *bits)
{
	uint64_t value = 0;
	uint8_t byte = 0x80;

	for (*bits = 0; byte & 0x80; *bits += 7) {
		if (c->at == c->end)
			return fail(c);
		byte = *c->at++;
		if (*bits < 64)
			value |= (uint64_t)(byte & 0x7f) << *bits;
	}
	return value;
}

uint64_t dwarf_read_uleb(struct dwarf_cursor *c)
{
	unsigned bits;

	return read_leb(c, &bits);
}

int64_t dwarf_read_sleb(struct dwarf_cursor *c)
{
	unsigned bits;
	uint64_t value = read_leb(c, &bits);

	if (c->failed || bits >= 64)
		return (int64_t)value;
	return (int64_t)(value << (64 - bits)) >> (64 - bits);
}

void dwarf_skip(struct dwarf_cursor *c, uint64_t bytes)
{
	if ((uint64_t)(c->end - c->at) < bytes)
		fail(c);
	else
		c->at += bytes;
}

const char *dwarf_read_string(struct dwarf_cursor *c)
{
	const char *text = (const char *)c->at;
	const uint8_t *nul = c->at < c->end ? memchr(c->at, 0, (size_t)(c->end - c->at)) : NULL;

	if (!nul) {
		fail(c);
		return "";
	}
	c->at = nul + 1;
	return text;
}

struct dwarf_cursor dwarf_take(struct dwarf_cursor *c, uint64_t bytes)
{
	struct dwarf_cursor taken = {.at = c->at, .end = c->at};

	dwarf_skip(c, bytes);
	if (c->failed)
		taken.failed = true;
	else
		taken.end = c->at;
	return taken;
}

uint64_t dwarf_read_pointer(struct dwarf_cursor *c, uint8_t encoding, uint64_t address)
{
	uint64_t value;

	switch (encoding & DWARF_PE_FORMAT) {
	case 0x00: /* absptr */
	case 0x04: /* udata8 */
	case 0x0c: /* sdata8 */
		value = dwarf_read_unsigned(c, 8);
		break;
	case 0x01:
		value = dwarf_read_uleb(c);
		break;
	case 0x02:
		value = dwarf_read_unsigned(c, 2);
		break;
	case 0x03:
		value = dwarf_read_unsigned(c, 4);
		break;
	case 0x09:
		value = (uint64_t)dwarf_read_sleb(c);
		break;
	case 0x0a:
		value = (uint64_t)dwarf_read_signed(c, 2);
		break;
	case 0x0b:
		value = (uint64_t)dwarf_read_signed(c, 4);
		break;
	default:
		return fail(c);
	}
	switch (encoding & DWARF_PE_BASE) {
	case 0:
		return value;
	case DWARF_PE_PCREL:
		return c->failed ? 0 : value + address;
	default:
		return fail(c);
	}
}

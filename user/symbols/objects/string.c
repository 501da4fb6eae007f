// SPDX-License-Identifier: Apache-2.0
/* Decodes CPython's strings to UTF-8. Written from PEP 393 and the comments of Include/cpython/unicodeobject.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpython/facts.h"
#include "symbols/objects/string.h"

/* Longer than any name or path: a header with a greater length is not a string's. */
#define STRING_LENGTH_MAX (1ULL << 30)

#define UNICODE_MAX         0x10ffff
#define UNICODE_IS_SURR(cp) ((cp) >= 0xd800 && (cp) <= 0xdfff)

/* Bytes of the longest escape of one unit: "\xff" (1 byte), "\ud800" (2), "\U00110000" (4). */
#define ESCAPE_BYTE 4
#define ESCAPE_UCS2 6
#define ESCAPE_UCS4 10
#define ESCAPE_ROOM (ESCAPE_UCS4 + 1) /* size passed to snprintf, with the NUL */

/* The bit field PyASCIIObject.state. */
struct string_state {
	unsigned int interned;
	unsigned int kind; /* bytes per character; 0 in a legacy string that is not ready (to 3.11) */
	bool compact;
	bool ascii;
	bool ready;
};

/*
 * The shapes that released versions have (a compiler for x86-64 or arm64 lays bit fields out from the lowest
 * bit):
 *
 *   3.6-3.11                interned:2 kind:3 compact:1 ascii:1 ready:1
 *   3.12-3.13, also 3.13t;  interned:2 kind:3 compact:1 ascii:1 statically_allocated:1
 *   3.14+ with the GIL
 *   3.14t+                  unsigned char interned, for atomic access; the rest begins at bit 8
 *
 * The bits above are padding and hold garbage (seen on 3.6). Alphas of 3.14 with a 16-bit interned
 * (python/cpython#128196, undone for beta 1 by #133085) are not supported.
 */
static void string_state_decode(const struct pybpf_layout *layout, const uint8_t bytes[4], struct string_state *state)
{
	uint32_t word, bits;

	memcpy(&word, bytes, sizeof(word));
	bits = word >> layout->str_kind_shift;
	state->interned = word & ((1u << layout->str_kind_shift) - 1);
	state->kind = bits & 7;
	state->compact = bits & 8;
	state->ascii = bits & 16;
	state->ready = cpython_facts(layout)->objects->has_ready ? bits & 32 : true;
}

static bool string_state_is_valid(const struct string_state *state)
{
	if (state->interned > 3)
		return false;
	if (state->kind != 0 && state->kind != 1 && state->kind != 2 && state->kind != 4)
		return false;
	if (state->ascii && state->kind != 1)
		return false;
	/* A legacy string has kind 0 until it is ready; a compact one is made ready. */
	if (state->kind == 0)
		return !state->compact && !state->ready;
	return state->ready;
}

/* Returns whether [offset, offset + size) lies in the header; false also for PYBPF_NO_OFFSET. */
static bool string_in_header(uint16_t offset, size_t size)
{
	return offset + size <= PYSYM_STRING_HEADER;
}

static int string_set_size(struct pysym_string_shape *shape, uint64_t length)
{
	uint64_t size;

	if (length > STRING_LENGTH_MAX / shape->unit)
		return -EBADMSG;
	size = length * shape->unit;
	shape->cut = size > PYSYM_STRING_MAX;
	shape->data_size = shape->cut ? PYSYM_STRING_MAX : (uint32_t)size;
	return 0;
}

int pysym_string_read_shape(const struct pybpf_layout *layout, const uint8_t header[PYSYM_STRING_HEADER],
			    struct pysym_string_shape *shape)
{
	struct string_state state;
	uint64_t length;

	memset(shape, 0, sizeof(*shape));
	shape->unit = 1;

	if (!string_in_header(layout->str_length, sizeof(length)))
		return -EBADMSG;
	/* A Py_ssize_t; a negative one is above STRING_LENGTH_MAX. */
	memcpy(&length, header + layout->str_length, sizeof(length));

	if (layout->string_kind == PYBPF_STR_BYTES) {
		shape->data_offset = layout->str_ascii_data;
		return string_set_size(shape, length);
	}

	if (layout->string_kind != PYBPF_STR_UNICODE || !string_in_header(layout->str_state, sizeof(uint32_t)))
		return -EBADMSG;
	string_state_decode(layout, header + layout->str_state, &state);
	if (!string_state_is_valid(&state))
		return -EBADMSG;
	if (!state.compact)
		return -ENOTSUP;

	shape->unit = (uint8_t)state.kind;
	shape->latin1 = state.kind == 1 && !state.ascii;
	shape->data_offset = state.ascii ? layout->str_ascii_data : layout->str_compact_data;
	return string_set_size(shape, length);
}

/* Writes one code point, or an escape if UTF-8 has no form for it (and for NUL, which would end the string). */
static char *string_put(char *out, uint32_t cp)
{
	if (cp == 0)
		return out + snprintf(out, ESCAPE_ROOM, "\\x00");
	if (UNICODE_IS_SURR(cp))
		return out + snprintf(out, ESCAPE_ROOM, "\\u%04x", cp);
	if (cp > UNICODE_MAX)
		return out + snprintf(out, ESCAPE_ROOM, "\\U%08x", cp);

	if (cp < 0x80) {
		*out++ = (char)cp;
	} else if (cp < 0x800) {
		*out++ = (char)(0xc0 | cp >> 6);
		*out++ = (char)(0x80 | (cp & 0x3f));
	} else if (cp < 0x10000) {
		*out++ = (char)(0xe0 | cp >> 12);
		*out++ = (char)(0x80 | (cp >> 6 & 0x3f));
		*out++ = (char)(0x80 | (cp & 0x3f));
	} else {
		*out++ = (char)(0xf0 | cp >> 18);
		*out++ = (char)(0x80 | (cp >> 12 & 0x3f));
		*out++ = (char)(0x80 | (cp >> 6 & 0x3f));
		*out++ = (char)(0x80 | (cp & 0x3f));
	}
	return out;
}

enum utf8_result {
	UTF8_OK,
	UTF8_BAD,
	UTF8_SHORT, /* a valid beginning that is cut off at the end */
};

/* Checks whether a shortest-form sequence of a Unicode scalar value begins here (Unicode 15, table 3-7). */
static enum utf8_result string_utf8_sequence(const uint8_t *data, size_t size, size_t *len)
{
	uint8_t low = 0x80, high = 0xbf;
	size_t i;

	if (data[0] < 0x80) {
		*len = 1;
		return UTF8_OK;
	} else if (data[0] >= 0xc2 && data[0] <= 0xdf) {
		*len = 2;
	} else if (data[0] >= 0xe0 && data[0] <= 0xef) {
		*len = 3;
		if (data[0] == 0xe0)
			low = 0xa0;
		else if (data[0] == 0xed)
			high = 0x9f;
	} else if (data[0] >= 0xf0 && data[0] <= 0xf4) {
		*len = 4;
		if (data[0] == 0xf0)
			low = 0x90;
		else if (data[0] == 0xf4)
			high = 0x8f;
	} else {
		return UTF8_BAD;
	}

	for (i = 1; i < *len; i++, low = 0x80, high = 0xbf) {
		if (i >= size)
			return UTF8_SHORT;
		if (data[i] < low || data[i] > high)
			return UTF8_BAD;
	}
	return UTF8_OK;
}

/* Writes ASCII, or bytes in an unknown encoding. */
static char *string_put_bytes(char *out, const uint8_t *data, size_t size, bool cut)
{
	size_t i = 0, len;

	while (i < size) {
		enum utf8_result result = string_utf8_sequence(data + i, size - i, &len);

		if (result == UTF8_OK && data[i] != 0) {
			memcpy(out, data + i, len);
			out += len;
			i += len;
		} else if (result == UTF8_SHORT && cut) {
			break; /* pybpf itself cut this character in two */
		} else {
			out += snprintf(out, ESCAPE_ROOM, "\\x%02x", data[i++]);
		}
	}
	return out;
}

char *pysym_string_decode(const struct pysym_string_shape *shape, const uint8_t *data, size_t size)
{
	size_t per_unit = shape->unit == 4 ? ESCAPE_UCS4 : shape->unit == 2 ? ESCAPE_UCS2 : ESCAPE_BYTE;
	size_t unit = shape->unit == 4 || shape->unit == 2 ? shape->unit : 1;
	char *text, *out, *shrunk;
	bool cut = shape->cut;
	size_t count, i;

	if (size > shape->data_size)
		size = shape->data_size;
	if (size > PYSYM_STRING_MAX)
		size = PYSYM_STRING_MAX;
	if (size < shape->data_size)
		cut = true;
	count = size / unit;

	/* ESCAPE_ROOM beyond the worst case, so that snprintf() never truncates. */
	text = malloc(count * per_unit + ESCAPE_ROOM);
	if (!text)
		return NULL;

	out = text;
	if (unit == 1 && !shape->latin1) {
		out = string_put_bytes(out, data, count, cut);
	} else {
		for (i = 0; i < count; i++) {
			uint32_t cp = 0; /* little-endian, as the host is */

			memcpy(&cp, data + i * unit, unit);
			out = string_put(out, cp);
		}
	}
	*out++ = '\0';

	shrunk = realloc(text, (size_t)(out - text));
	if (shrunk)
		text = shrunk;
	return text;
}

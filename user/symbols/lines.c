// SPDX-License-Identifier: Apache-2.0
/* Decodes line tables. Written from their documentation: Objects/lnotab_notes.txt, PEP 626, Objects/locations.md. */
#include <errno.h>
#include <stdbool.h>

#include "symbols/lines.h"

/* Bytes per code unit; PEP 657 counts in units, the older tables in bytes. */
#define CODE_UNIT 2U

/* co_linetable's line delta that says "no line" (PEP 626). */
#define PEP626_NO_LINE (-128)

/* PEP 657: the first byte of an entry is 1, kind:4, code units minus one:3; no other byte has its top bit
 * set. */
#define ENTRY_START      0x80
#define ENTRY_KIND_SHIFT 3
#define ENTRY_KIND_MASK  0x0f
#define ENTRY_UNITS_MASK 0x07
enum entry_kind {
	ENTRY_ONE_LINE0 = 10, /* line delta 0; those below are short forms, delta 0 as well */
	ENTRY_ONE_LINE2 = 12, /* line delta 2 */
	ENTRY_NO_COLUMNS = 13,
	ENTRY_LONG = 14,
	ENTRY_NO_LOCATION = 15,
};

/* A varint: 6 bits per byte, low ones first. CPython writes a 32-bit number, so 6 bytes at most. */
#define VARINT_BITS  6
#define VARINT_MASK  0x3f
#define VARINT_MORE  0x40
#define VARINT_SHIFT (5 * VARINT_BITS)

/* Moves *line by delta. Returns false when the sum is not an int, as CPython's own must be. */
static bool lines_advance(int *line, int64_t delta)
{
	int64_t sum = (int64_t)*line + delta;

	if (sum < INT32_MIN || sum > INT32_MAX)
		return false;
	*line = (int)sum;
	return true;
}

/*
 * Returns the line, or an error for a negative one, which would look like an error and which no compiler writes.
 */
static int lines_result(int line)
{
	return line < 0 ? -EBADMSG : line;
}

/*
 * Returns the line that an entry gives. Instructions without a line that come before all that are on another line
 * (MAKE_CELL, GEN_START, the POP_TOP after RETURN_GENERATOR) enter the function and get its first line. Elsewhere such
 * an instruction is mostly the clean-up after an exception, which does not belong to the code before it.
 */
static int lines_of_entry(bool has_line, int line, bool entering, int first)
{
	if (has_line)
		return lines_result(line);
	return entering ? lines_result(first) : PYSYM_NO_LINE;
}

/* As PyCode_Addr2Line() to 3.9: every instruction has a line, and the last line reaches to the end of the code. */
static int lines_lnotab(const uint8_t *table, size_t size, int line, uint64_t position, bool is_signed)
{
	uint64_t addr = 0;
	size_t i;

	for (i = 0; i + 1 < size; i += 2) {
		addr += table[i];
		if (addr > position)
			return lines_result(line);
		if (!lines_advance(&line, is_signed ? (int8_t)table[i + 1] : table[i + 1]))
			return -EBADMSG;
	}
	if (i < size)
		return -EBADMSG;
	return lines_result(line);
}

static int lines_pep626(const uint8_t *table, size_t size, int line, uint64_t position)
{
	const int first = line;
	bool entering = true;
	uint64_t end = 0;
	size_t i;

	for (i = 0; i + 1 < size; i += 2) {
		int delta = (int8_t)table[i + 1];

		if (delta != PEP626_NO_LINE && !lines_advance(&line, delta))
			return -EBADMSG;
		entering = entering && (delta == PEP626_NO_LINE || line == first);
		end += table[i];
		if (position < end)
			return lines_of_entry(delta != PEP626_NO_LINE, line, entering, first);
	}
	return i < size ? -EBADMSG : PYSYM_NO_LINE;
}

/* Reads the varint that begins at table[*i], and sets *i behind it. */
static bool lines_varint(const uint8_t *table, size_t size, size_t *i, uint32_t *value)
{
	uint64_t bits = 0;
	unsigned int shift;

	for (shift = 0; shift <= VARINT_SHIFT; shift += VARINT_BITS) {
		if (*i >= size || (table[*i] & ENTRY_START))
			return false;
		bits |= (uint64_t)(table[*i] & VARINT_MASK) << shift;
		if (table[(*i)++] & VARINT_MORE)
			continue;
		*value = (uint32_t)bits;
		return bits <= UINT32_MAX;
	}
	return false;
}

/* Likewise, signed; the sign is the lowest bit. */
static bool lines_svarint(const uint8_t *table, size_t size, size_t *i, int64_t *value)
{
	uint32_t bits;

	if (!lines_varint(table, size, i, &bits))
		return false;
	*value = (bits & 1) ? -(int64_t)(bits >> 1) : (int64_t)(bits >> 1);
	return true;
}

/* An entry of PEP 657. */
struct entry {
	unsigned kind;  /* enum entry_kind */
	uint64_t end;   /* the first position behind it */
	int line;       /* the running one, which an entry without a location leaves alone */
	size_t columns; /* where in the table they are */
};

/* Reads the entry that begins at table[*i], after *e, and sets *i to the next one. Returns false if it is malformed. */
static bool lines_next(const uint8_t *table, size_t size, size_t *i, struct entry *e)
{
	uint8_t head = table[*i];
	int64_t delta = 0;

	if (!(head & ENTRY_START))
		return false;
	e->kind = (head >> ENTRY_KIND_SHIFT) & ENTRY_KIND_MASK;
	e->end += ((head & ENTRY_UNITS_MASK) + 1) * CODE_UNIT;
	e->columns = *i + 1;
	if (e->kind == ENTRY_NO_COLUMNS || e->kind == ENTRY_LONG) {
		if (!lines_svarint(table, size, &e->columns, &delta))
			return false;
	} else if (e->kind >= ENTRY_ONE_LINE0 && e->kind <= ENTRY_ONE_LINE2) {
		delta = e->kind - ENTRY_ONE_LINE0;
	}
	if (!lines_advance(&e->line, delta))
		return false;
	do
		++*i;
	while (*i < size && !(table[*i] & ENTRY_START));
	return true;
}

static int lines_pep657(const uint8_t *table, size_t size, int first, uint64_t position)
{
	struct entry e = {.line = first};
	bool entering = true;

	for (size_t i = 0; i < size;) {
		if (!lines_next(table, size, &i, &e))
			return -EBADMSG;
		entering = entering && (e.kind == ENTRY_NO_LOCATION || e.line == first);
		if (position < e.end)
			return lines_of_entry(e.kind != ENTRY_NO_LOCATION, e.line, entering, first);
	}
	return PYSYM_NO_LINE;
}

/* Reads the columns of an entry. Returns false if it has none, or is malformed. */
static bool lines_columns(const uint8_t *table, size_t size, const struct entry *e, struct pysym_span *out)
{
	uint32_t lines, column, end_column;
	size_t i = e->columns;

	*out = (struct pysym_span){.line = e->line, .end_line = e->line};
	if (e->kind == ENTRY_LONG) {
		/* The long form has columns plus one; 0 stands for an unknown one. */
		if (!lines_varint(table, size, &i, &lines) || !lines_varint(table, size, &i, &column) ||
		    !lines_varint(table, size, &i, &end_column) || lines > INT32_MAX - (uint32_t)e->line ||
		    column > INT32_MAX || end_column > INT32_MAX)
			return false;
		out->end_line += (int32_t)lines;
		out->column = (int32_t)column - 1;
		out->end_column = (int32_t)end_column - 1;
	} else if (e->kind < ENTRY_ONE_LINE0) {
		/* Short form: 8 times the kind and 3 bits more; the length in 4 bits. */
		if (i >= size)
			return false;
		out->column = (int32_t)(e->kind * 8 + (table[i] >> 4));
		out->end_column = out->column + (table[i] & 15);
	} else if (e->kind <= ENTRY_ONE_LINE2) {
		if (i + 1 >= size)
			return false;
		out->column = table[i];
		out->end_column = table[i + 1];
	} else {
		return false;
	}
	return out->column >= 0 && out->end_column >= 0;
}

bool pysym_span(const uint8_t *table, size_t table_size, int first_line, int64_t position, struct pysym_span *out)
{
	struct entry e = {.line = first_line};

	*out = (struct pysym_span){0};
	for (size_t i = 0; i < table_size && position >= 0;) {
		if (!lines_next(table, table_size, &i, &e))
			return false;
		if ((uint64_t)position < e.end)
			return e.line > 0 && lines_columns(table, table_size, &e, out);
	}
	return false;
}

bool pysym_has_columns(const uint8_t *table, size_t table_size, int first_line)
{
	struct entry e = {.line = first_line};

	for (size_t i = 0; i < table_size;) {
		if (!lines_next(table, table_size, &i, &e))
			return false;
		if (e.kind != ENTRY_NO_LOCATION && e.kind != ENTRY_NO_COLUMNS)
			return true;
	}
	return false;
}

int pysym_line(enum pybpf_line_kind kind, const uint8_t *table, size_t table_size, int first_line, int64_t position)
{
	if (position < 0)
		return lines_result(first_line);

	switch (kind) {
	case PYBPF_LINES_LNOTAB_UNSIGNED:
		return lines_lnotab(table, table_size, first_line, (uint64_t)position, false);
	case PYBPF_LINES_LNOTAB:
		return lines_lnotab(table, table_size, first_line, (uint64_t)position, true);
	case PYBPF_LINES_PEP626:
		return lines_pep626(table, table_size, first_line, (uint64_t)position);
	case PYBPF_LINES_PEP657:
		return lines_pep657(table, table_size, first_line, (uint64_t)position);
	}
	return -EBADMSG;
}

// SPDX-License-Identifier: Apache-2.0
/* Reads DWARF's numbers from a piece of memory, and never beyond it. */
#ifndef NATIVE_DWARF_CURSOR_H
#define NATIVE_DWARF_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bytes that are left. A read beyond them sets failed and returns 0, as do all that follow. */
struct dwarf_cursor {
	const uint8_t *at, *end;
	bool failed;
};

uint64_t dwarf_read_unsigned(struct dwarf_cursor *c, size_t bytes); /* 1, 2, 4 or 8; little-endian */
int64_t dwarf_read_signed(struct dwarf_cursor *c, size_t bytes);
uint64_t dwarf_read_uleb(struct dwarf_cursor *c);
int64_t dwarf_read_sleb(struct dwarf_cursor *c);
void dwarf_skip(struct dwarf_cursor *c, uint64_t bytes);
/* Returns the NUL-terminated string, "" when it failed. */
const char *dwarf_read_string(struct dwarf_cursor *c);
/* Returns a cursor of the next bytes, which are skipped. */
struct dwarf_cursor dwarf_take(struct dwarf_cursor *c, uint64_t bytes);

/* Encodings of pointers (LSB 5.0, 10.5.1): format in the low 4 bits, what they are relative to in the next 3. */
#define DWARF_PE_FORMAT 0x0f
#define DWARF_PE_BASE   0x70
#define DWARF_PE_PCREL  0x10
/* Reads a pointer; address: where the cursor is in the program. Only absolute and pc-relative ones are read. */
uint64_t dwarf_read_pointer(struct dwarf_cursor *c, uint8_t encoding, uint64_t address);

#endif

// SPDX-License-Identifier: Apache-2.0
/* CPython's line tables: finds the line of a code position. Accesses no process. */
#ifndef SYMBOLS_LINES_H
#define SYMBOLS_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pybpf.h"

/* The instruction has no line, or the table ends before it. */
#define PYSYM_NO_LINE (-1)

/*
 * Returns the line of the instruction at byte offset `position` of the bytecode as co_lines() has it, PYSYM_NO_LINE
 * where that has None, or -EBADMSG for a malformed table. Instructions without a line that come before all that are on
 * another line than first_line count as on first_line. The time is bounded by table_size whatever the bytes are. table
 * may be NULL if table_size is 0.
 *
 * A negative position is a frame that has not begun (f_lasti is -1, or prev_instr points before the code): its line is
 * first_line whatever the kind, as PyCode_Addr2Line() has it. Lines begin at 0, not 1: a module's RESUME is on line 0
 * from 3.11 on. With the lnotab kinds the last line reaches to any position, and every position has a line. A position
 * inside an inline cache has its instruction's line.
 */
int pysym_line(enum pybpf_line_kind kind, const uint8_t *table, size_t table_size, int first_line, int64_t position);

/* Where the source of an expression is, in lines from 1 and bytes of them from 0; all zero: not known. */
struct pysym_span {
	int32_t line, end_line, column, end_column; /* end_column: behind its last byte */
};

/*
 * Finds the expression of the instruction at byte offset `position` in a table of kind PYBPF_LINES_PEP657 (3.11+), as
 * co_positions() has it. Returns false where that has None, and for a malformed table.
 */
bool pysym_span(const uint8_t *table, size_t table_size, int first_line, int64_t position, struct pysym_span *out);

/* Returns whether an instruction in a table of that kind has columns: none has with -X no_debug_ranges. */
bool pysym_has_columns(const uint8_t *table, size_t table_size, int first_line);

#endif

// SPDX-License-Identifier: Apache-2.0
/* CPython's line tables: code position -> line, as co_lines() gives it. Touches no process. */
#ifndef PYSYM_LINES_H
#define PYSYM_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "pybpf.h"

/* The instruction has no line, or the table ends before it. */
#define PYSYM_NO_LINE (-1)

/*
 * Returns the line of the instruction at byte offset `position` of the bytecode, PYSYM_NO_LINE where
 * CPython has none (the caller falls back on first_line), or -EBADMSG for a malformed table. Bounded by
 * table_size whatever the bytes are.
 */
int pysym_line(enum pybpf_line_kind kind, const uint8_t *table, size_t table_size, int first_line, int64_t position);

#endif

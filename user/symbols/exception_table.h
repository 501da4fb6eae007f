// SPDX-License-Identifier: Apache-2.0
/* co_exceptiontable of Python 3.11 and later: what remains on the stack where an exception is caught. */
#ifndef SYMBOLS_EXCEPTION_TABLE_H
#define SYMBOLS_EXCEPTION_TABLE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Returns how many items of the evaluation stack an exception at that instruction leaves there, which are surely there
 * now; 0 where none would be caught, or where the table is malformed. instruction: its number, in units of two bytes.
 */
uint32_t py_exception_depth(const uint8_t *table, size_t size, uint32_t instruction);

#endif

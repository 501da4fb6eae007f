// SPDX-License-Identifier: Apache-2.0
/* Names of the bytecode instructions of each Python. */
#ifndef CPYTHON_OPCODES_H
#define CPYTHON_OPCODES_H

#include <stdint.h>

#include "pybpf.h"

/* Longest name with its end, that of a number without a name included. */
#define OPCODES_NAME_MAX 64

/* Writes the name that the Python of that layout has for an opcode, or <N> where none is known, as CPython does. */
void opcodes_name(const struct pybpf_layout *layout, uint8_t opcode, char name[OPCODES_NAME_MAX]);

/* Fills in the table cfg_caches of bpf/opcode.bpf.h. */
void opcodes_fill_caches(uint8_t table[PYBPF_CACHES_VERSIONS][256]);

#endif

// SPDX-License-Identifier: Apache-2.0
/* The checked-in tables of opcodes, by version. */
#include "cpython/opcodes.h"

#include <stdio.h>
#include <string.h>

struct opcode_table {
	uint16_t major, minor;
	const char *const *names; /* 256 of them, NULL where a number is not used */
};

#include "cpython/opcode_tables.h"

void opcodes_name(const struct pybpf_layout *layout, uint8_t opcode, char name[OPCODES_NAME_MAX])
{
	for (size_t i = 0; i < sizeof(opcode_tables) / sizeof(opcode_tables[0]); i++) {
		const struct opcode_table *table = &opcode_tables[i];

		if (table->major != layout->major || table->minor != layout->minor || !table->names[opcode])
			continue;
		snprintf(name, OPCODES_NAME_MAX, "%s", table->names[opcode]);
		return;
	}
	snprintf(name, OPCODES_NAME_MAX, "<%u>", opcode);
}

void opcodes_fill_caches(uint8_t table[PYBPF_CACHES_VERSIONS][256])
{
	for (uint32_t i = 0; i < PYBPF_CACHES_VERSIONS; i++)
		memcpy(table[i], cache_tables[i], 256);
}

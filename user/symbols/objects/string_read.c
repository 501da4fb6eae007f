// SPDX-License-Identifier: Apache-2.0
/* Reads CPython's strings from a process's memory. */
#include "symbols/objects/string_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/objects/string.h"

int pysym_read_string_header(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t addr,
			     uint8_t *header)
{
	size_t need = layout->string_kind == PYBPF_STR_BYTES ? layout->str_ascii_data : layout->str_state + 4u;

	memset(header, 0, PYSYM_STRING_HEADER);
	if (!memory->read(memory->source, addr, header, PYSYM_STRING_HEADER))
		return 0;
	return need > PYSYM_STRING_HEADER ? -EFAULT : memory->read(memory->source, addr, header, need);
}

char *pysym_read_string(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t addr)
{
	uint8_t header[PYSYM_STRING_HEADER];
	struct pysym_string_shape shape;
	char *text = NULL;
	uint8_t *data;

	if (pysym_read_string_header(memory, layout, addr, header) || pysym_string_read_shape(layout, header, &shape))
		return NULL;
	data = malloc(shape.data_size + 1u);
	if (!data)
		return NULL;
	if (!memory->read(memory->source, addr + shape.data_offset, data, shape.data_size))
		text = pysym_string_decode(&shape, data, shape.data_size);
	free(data);
	return text;
}

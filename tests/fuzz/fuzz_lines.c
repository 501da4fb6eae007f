// SPDX-License-Identifier: Apache-2.0
/* Line tables of each kind: a byte for the kind, the first line, the position (signed 32-bit each), then the table. */
#include "fuzz.h"
#include "symbols/lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	int32_t first_line, position;
	uint8_t *table;
	int kind, line;

	kind = fuzz_take_u8(&in) % (PYBPF_LINES_PEP657 + 2);
	fuzz_take(&in, &first_line, sizeof(first_line));
	fuzz_take(&in, &position, sizeof(position));
	/* Its exact size, so that a sanitizer sees a read on either side. */
	table = malloc(in.size ? in.size : 1);
	FUZZ_CHECK(table);
	memcpy(table, in.data, in.size);
	line = pysym_line((enum pybpf_line_kind)kind, table, in.size, first_line, position);
	FUZZ_CHECK(line >= 0 || line == PYSYM_NO_LINE || line == -EBADMSG);
	line = pysym_line((enum pybpf_line_kind)kind, table, in.size, first_line, INT64_MAX);
	FUZZ_CHECK(line >= 0 || line == PYSYM_NO_LINE || line == -EBADMSG);
	line = pysym_line((enum pybpf_line_kind)kind, table, in.size, first_line, INT64_MIN);
	FUZZ_CHECK(line == first_line || first_line < 0);
	free(table);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Compares pysym_line() with what an interpreter says, for every instruction of a corpus:
 *
 *	python tests/e2e/dump_lines.py | build/linecheck
 *
 * The stream on stdin: records of five native 32-bit integers (kind, first line, table size, number of
 *positions, label size), then the table, the label, the positions and the expected lines (32-bit each). A
 *record of kind 0 ends it: its first line is the number of files, its table size that of files that did not
 *compile, all else 0.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/lines.h"

#define MISMATCHES_SHOWN 20
/* What a record may ask for: the stream is ours, but a broken one should say so and not exhaust memory. */
#define RECORD_PART_MAX (256U * 1024 * 1024)

struct record {
	int32_t kind;
	int32_t first_line;
	uint32_t table_size;
	uint32_t positions;
	uint32_t label_size;
};
_Static_assert(sizeof(struct record) == 20, "dump_lines.py packs five 32-bit integers");

struct tally {
	unsigned long tables, instructions, without_line, mismatches;
};

static bool read_exactly(void *buf, size_t size)
{
	if (fread(buf, 1, size, stdin) == size)
		return true;
	fprintf(stderr, "linecheck: the stream ends in the middle of a record\n");
	return false;
}

static int check_record(const struct record *record, struct tally *tally)
{
	int32_t *positions = NULL, *expected = NULL;
	uint8_t *table = NULL;
	char *label = NULL;
	int err = -EBADMSG;
	uint32_t i;

	if (record->table_size > RECORD_PART_MAX || record->positions > RECORD_PART_MAX ||
	    record->label_size > RECORD_PART_MAX) {
		fprintf(stderr, "linecheck: this is no stream of dump_lines.py\n");
		return -EBADMSG;
	}

	/* The exact size, so that a sanitizer sees a read behind the table. */
	table = malloc(record->table_size);
	label = calloc(1, (size_t)record->label_size + 1);
	positions = calloc(record->positions, sizeof(*positions));
	expected = calloc(record->positions, sizeof(*expected));
	if ((!table && record->table_size) || !label || (record->positions && (!positions || !expected))) {
		fprintf(stderr, "linecheck: out of memory\n");
		err = -ENOMEM;
		goto cleanup;
	}
	if (!read_exactly(table, record->table_size) || !read_exactly(label, record->label_size) ||
	    !read_exactly(positions, record->positions * sizeof(*positions)) ||
	    !read_exactly(expected, record->positions * sizeof(*expected)))
		goto cleanup;

	tally->tables++;
	for (i = 0; i < record->positions; i++) {
		int line = pysym_line((enum pybpf_line_kind)record->kind, table, record->table_size, record->first_line,
				      positions[i]);

		tally->instructions++;
		tally->without_line += expected[i] == PYSYM_NO_LINE;
		if (line == expected[i])
			continue;
		if (tally->mismatches++ < MISMATCHES_SHOWN)
			printf("%s: position %d: line %d, expected %d\n", label, positions[i], line, expected[i]);
	}
	err = 0;

cleanup:
	free(table);
	free(label);
	free(positions);
	free(expected);
	return err;
}

int main(void)
{
	struct tally tally = {0};
	struct record record;

	for (;;) {
		if (!read_exactly(&record, sizeof(record)))
			return 2;
		if (record.kind == 0)
			break;
		if (check_record(&record, &tally))
			return 2;
	}

	printf("%d files (%u did not compile), %lu tables, %lu instructions (%lu without a line), %lu "
	       "mismatches\n",
	       record.first_line, record.table_size, tally.tables, tally.instructions, tally.without_line,
	       tally.mismatches);
	if (tally.instructions == 0) {
		fprintf(stderr, "linecheck: nothing was compared\n");
		return 2;
	}
	return tally.mismatches ? 1 : 0;
}

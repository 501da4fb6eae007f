// SPDX-License-Identifier: Apache-2.0
/*
 * Compares pysym_line() and pysym_span() with what an interpreter says, for every instruction of a corpus:
 *
 *	python tests/e2e/dump_lines.py | build/linecheck
 *
 * The stream on stdin: records of five native 32-bit integers (kind, first line, table size, number of
 *positions, label size), then the table, the label, the positions and the expected lines (32-bit each), and with
 *PYBPF_LINES_PEP657 the expected last lines, columns and end columns, -1 for those that are not known. A
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
	unsigned long tables, instructions, without_line, spans, mismatches;
};

/* What is read of a record, behind its table and label. */
enum numbers {
	POSITIONS,
	LINES,
	END_LINES,
	COLUMNS,
	END_COLUMNS,
	NUMBERS
};

static bool read_exactly(void *buf, size_t size)
{
	if (fread(buf, 1, size, stdin) == size)
		return true;
	fprintf(stderr, "linecheck: the stream ends in the middle of a record\n");
	return false;
}

static void check_span(const struct record *record, const uint8_t *table, const char *label,
		       int32_t *const numbers[NUMBERS], uint32_t i, struct tally *tally)
{
	struct pysym_span span;
	bool known = pysym_span(table, record->table_size, record->first_line, numbers[POSITIONS][i], &span);
	bool expected = numbers[END_LINES][i] >= 0;

	tally->spans += expected;
	if (known == expected &&
	    (!known || (span.line == numbers[LINES][i] && span.end_line == numbers[END_LINES][i] &&
			span.column == numbers[COLUMNS][i] && span.end_column == numbers[END_COLUMNS][i])))
		return;
	if (tally->mismatches++ < MISMATCHES_SHOWN)
		printf("%s: position %d: to line %d, columns %d to %d, expected %d, %d to %d\n", label,
		       numbers[POSITIONS][i], span.end_line, span.column, span.end_column, numbers[END_LINES][i],
		       numbers[COLUMNS][i], numbers[END_COLUMNS][i]);
}

static int check_record(const struct record *record, struct tally *tally)
{
	size_t count = record->kind == PYBPF_LINES_PEP657 ? NUMBERS : END_LINES;
	int32_t *numbers[NUMBERS] = {NULL};
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
	if ((!table && record->table_size) || !label) {
		fprintf(stderr, "linecheck: out of memory\n");
		err = -ENOMEM;
		goto cleanup;
	}
	if (!read_exactly(table, record->table_size) || !read_exactly(label, record->label_size))
		goto cleanup;
	for (size_t j = 0; j < count; j++) {
		numbers[j] = calloc((size_t)record->positions + 1, sizeof(**numbers));
		if (!numbers[j]) {
			fprintf(stderr, "linecheck: out of memory\n");
			err = -ENOMEM;
			goto cleanup;
		}
		if (!read_exactly(numbers[j], record->positions * sizeof(**numbers)))
			goto cleanup;
	}

	tally->tables++;
	for (i = 0; i < record->positions; i++) {
		int line = pysym_line((enum pybpf_line_kind)record->kind, table, record->table_size, record->first_line,
				      numbers[POSITIONS][i]);

		tally->instructions++;
		tally->without_line += numbers[LINES][i] == PYSYM_NO_LINE;
		if (line != numbers[LINES][i] && tally->mismatches++ < MISMATCHES_SHOWN)
			printf("%s: position %d: line %d, expected %d\n", label, numbers[POSITIONS][i], line,
			       numbers[LINES][i]);
		if (count == NUMBERS)
			check_span(record, table, label, numbers, i, tally);
	}
	err = 0;

cleanup:
	free(table);
	free(label);
	for (size_t j = 0; j < NUMBERS; j++)
		free(numbers[j]);
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

	printf("%d files (%u did not compile), %lu tables, %lu instructions (%lu without a line, %lu with "
	       "columns), %lu mismatches\n",
	       record.first_line, record.table_size, tally.tables, tally.instructions, tally.without_line, tally.spans,
	       tally.mismatches);
	if (tally.instructions == 0) {
		fprintf(stderr, "linecheck: nothing was compared\n");
		return 2;
	}
	return tally.mismatches ? 1 : 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "native/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "native/cold.h"
#include "native/eh_frame.h"
#include "native/flow.h"
#include "native/functions.h"

#define SEGMENTS_MAX 16

struct making {
	struct eh_frame section;
	struct eh_frame_function *functions;
	size_t count, room;
	struct native_table *table;
	struct elf_file *elf;
	struct native_ranges loops; /* of the functions that evaluate Python's frames */
	struct flow_rows flow;      /* of functions that the section does not have */
	size_t nr_flow_done;
	uint64_t end;   /* of the functions so far */
	uint32_t marks; /* of the function whose rows are made */
};

static int note_function(void *arg, const struct eh_frame_function *function)
{
	struct making *m = arg;

	if (function->start < m->table->base || function->end - m->table->base >= PYBPF_NATIVE_NO_PC)
		return 0;
	if (array_reserve(&m->functions, &m->room, m->count + 1, sizeof(*m->functions)))
		return -ENOMEM;
	m->functions[m->count++] = *function;
	return 0;
}

static int compare_starts(const void *a, const void *b)
{
	const struct eh_frame_function *one = a, *other = b;

	if (one->start != other->start)
		return one->start < other->start ? -1 : 1;
	return one->offset < other->offset ? -1 : one->offset > other->offset;
}

/* As linkers mostly leave them. */
static bool are_in_order(const struct making *m)
{
	for (size_t i = 1; i < m->count; i++) {
		if (compare_starts(&m->functions[i - 1], &m->functions[i]) > 0)
			return false;
	}
	return true;
}

static int push_row(struct native_table *t, uint64_t pc, uint32_t rule)
{
	if (array_reserve(&t->rows, &t->room, t->count + 1, sizeof(*t->rows)))
		return -ENOMEM;
	t->rows[t->count++] = (struct pybpf_native_row){.pc = (uint32_t)(pc - t->base), .rule = rule};
	return 0;
}

static int take_row(void *arg, uint64_t pc, uint32_t rule)
{
	struct making *m = arg;

	return push_row(m->table, pc, rule | m->marks);
}

static int push_no_row(struct making *m, uint64_t pc)
{
	const struct native_table *t = m->table;

	return t->count && t->rows[t->count - 1].rule != PYBPF_NATIVE_NONE ? push_row(m->table, pc, PYBPF_NATIVE_NONE)
									   : 0;
}

static int add_flow_row(struct making *m, const struct flow_row *row)
{
	const struct native_table *t = m->table;
	int err = 0;

	if (row->start > m->end)
		err = push_no_row(m, m->end);
	/* Frames are named by where their rows begin. */
	if (!err && (row->is_begin || !t->count || t->rows[t->count - 1].rule != row->rule))
		err = push_row(m->table, row->start, row->rule);
	m->end = row->end;
	return err;
}

/* Adds what was found out of the code between the functions so far and an address. */
static int fill_gap(struct making *m, uint64_t until)
{
	int err = 0;

	for (; m->nr_flow_done < m->flow.count && m->flow.rows[m->nr_flow_done].start < until && !err;
	     m->nr_flow_done++) {
		const struct flow_row *row = &m->flow.rows[m->nr_flow_done];

		if (row->start >= m->end && row->end <= until && row->start >= m->table->base &&
		    row->end - m->table->base < PYBPF_NATIVE_NO_PC)
			err = add_flow_row(m, row);
	}
	if (!err && m->end && until - m->end >= FLOW_PADDING_MAX)
		err = push_no_row(m, m->end);
	return err;
}

/* Rows of functions that overlap, which no linker makes, would not be in order. */
static int add_function(struct making *m, const struct eh_frame_function *function)
{
	struct native_table *t = m->table;
	size_t before;
	int err;

	if (function->start < m->end)
		return 0;
	err = fill_gap(m, function->start);
	before = t->count;
	m->marks = native_ranges_have(&m->loops, function->start) ? PYBPF_RULE_EVAL : 0;
	err = err ? err : eh_frame_rows(&m->section, function, take_row, m);
	if (err == -EBADMSG) {
		t->count = before;
		err = push_row(t, function->start, PYBPF_NATIVE_NONE);
	}
	m->end = function->end;
	return err;
}

/* Returns whether a program begins in code without information: then all its stacks end there. */
static bool begins_without_information(const struct making *m)
{
	uint64_t entry = elf_file_entry(m->elf);

	for (size_t i = 0; i < m->count; i++) {
		if (entry >= m->functions[i].start && entry < m->functions[i].end)
			return false;
	}
	return entry || !m->count;
}

static int make_rows(struct making *m)
{
	int err = m->section.size ? eh_frame_functions(&m->section, note_function, m) : 0;

	/* The rest of a section that is damaged is missing. */
	if (err == -EBADMSG)
		err = 0;
	if (!are_in_order(m))
		qsort(m->functions, m->count, sizeof(*m->functions), compare_starts);
	/* A file that names its cold part has more than one range already. */
	if (!err && m->loops.count == 1)
		err = native_add_cold_part(m->elf, m->functions, m->count, &m->loops);
	m->table->has_flow |= begins_without_information(m);
	/* Without memory for it the rest is worth having. */
	if (!err && m->table->has_flow && flow_make_rows(m->elf, m->functions, m->count, &m->flow))
		m->flow.count = 0;
	for (size_t i = 0; i < m->count && !err; i++)
		err = add_function(m, &m->functions[i]);
	err = err ? err : fill_gap(m, UINT64_MAX);
	return err;
}

/* Returns where the lowest executable segment begins. */
static int find_base(struct elf_file *elf, uint64_t *base)
{
	struct elf_segment segments[SEGMENTS_MAX];
	size_t count = elf_file_code_segments(elf, segments, SEGMENTS_MAX);

	*base = UINT64_MAX;
	for (size_t i = 0; i < count; i++) {
		if (segments[i].vaddr < *base)
			*base = segments[i].vaddr;
	}
	return count ? 0 : -ENOENT;
}

int native_table_make(struct elf_file *elf, bool flow, struct native_table *out)
{
	struct making m = {.elf = elf, .table = out};
	struct elf_section section;
	uint8_t *bytes = NULL;
	ssize_t n;
	int err;

	memset(out, 0, sizeof(*out));
	out->has_flow = flow;
	err = find_base(elf, &out->base);
	if (elf_file_section(elf, ".eh_frame", &section))
		section.size = 0;
	if (!err && section.size > NATIVE_EH_FRAME_MAX)
		err = -EFBIG;
	if (err)
		return err;
	bytes = malloc(section.size + 1);
	if (!bytes)
		return -ENOMEM;
	n = elf_file_read(elf, section.addr, bytes, section.size);
	m.section = (struct eh_frame){.bytes = bytes, .size = n < 0 ? 0 : (uint64_t)n, .address = section.addr};
	err = native_find_loops(elf, &m.loops);
	out->has_loops = m.loops.count > 0;
	err = err ? err : make_rows(&m);
	if (!err && !out->count)
		err = -ENOENT;
	if (err)
		native_table_free(out);
	free(m.flow.rows);
	free(m.loops.ranges);
	free(m.functions);
	free(bytes);
	return err;
}

void native_table_free(struct native_table *t)
{
	free(t->rows);
	memset(t, 0, sizeof(*t));
}

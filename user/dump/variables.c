// SPDX-License-Identifier: Apache-2.0
/*
 * Reads the names of a code object's variables. To 3.10 it has a tuple of each kind, from 3.11 on one of all, and a
 * byte with the kind of each.
 */
#include "dump/variables.h"

#include <stdlib.h>
#include <string.h>

#include "cpython/facts.h"
#include "symbols/objects/py_frame.h"

struct code {
	struct py_values *v;
	const struct pybpf_layout *layout;
	const struct cpython_code *facts;
	uint64_t at, fields; /* fields: behind its header */
	uint32_t arguments;
	struct dump_variables *out;
};

static bool read_u32(const struct code *c, uint32_t offset, uint32_t *out)
{
	return !py_values_read(c->v, c->fields + offset, out, sizeof(*out));
}

static bool count_arguments(struct code *c)
{
	uint32_t positional, keywords = 0, flags, keyword = c->facts->kwonlyargcount;

	if (!read_u32(c, c->facts->argcount, &positional) || (keyword && !read_u32(c, keyword, &keywords)) ||
	    !read_u32(c, c->facts->flags, &flags) || positional > DUMP_VARIABLES_MAX || keywords > DUMP_VARIABLES_MAX)
		return false;
	c->arguments = positional + keywords + !!(flags & CPYTHON_CO_VARARGS) + !!(flags & CPYTHON_CO_VARKEYWORDS);
	return true;
}

/* Reads the addresses of a tuple's items. Returns how many, or -1. */
static int read_tuple(const struct code *c, uint64_t field, uint64_t items[DUMP_VARIABLES_MAX])
{
	uint32_t head = cpython_header_size(c->layout);
	uint64_t tuple, count;

	if (py_values_read(c->v, c->at + field, &tuple, sizeof(tuple)) ||
	    py_values_read(c->v, tuple + head, &count, sizeof(count)) || count > DUMP_VARIABLES_MAX)
		return -1;
	if (count &&
	    py_values_read(c->v, tuple + head + cpython_facts(c->layout)->objects->tuple_items, items, count * 8))
		return -1;
	return (int)count;
}

/* Adds a variable, unless it has no name of Python's: ".0", the iterator of a comprehension. */
static bool add(struct code *c, uint64_t name, uint32_t slot, enum dump_local_kind kind, bool is_in_cell)
{
	struct dump_variable *item = &c->out->items[c->out->count];
	char *text = py_values_name(c->v, name);

	if (!text || c->out->count == DUMP_VARIABLES_MAX) {
		free(text);
		return false;
	}
	if (text[0] == '.') {
		free(text);
		return true;
	}
	*item = (struct dump_variable){.name = text, .slot = slot, .kind = (uint8_t)kind, .is_in_cell = is_in_cell};
	c->out->count++;
	return true;
}

/* One tuple has the names of all variables. */
static bool read_new(struct code *c)
{
	const struct pybpf_layout *l = c->layout;
	uint64_t names[DUMP_VARIABLES_MAX], kinds_at, size;
	uint8_t kinds[DUMP_VARIABLES_MAX];
	int count = read_tuple(c, cpython_localsplusnames(l), names);

	if (count < 0 || py_values_read(c->v, c->at + cpython_localspluskinds(l), &kinds_at, sizeof(kinds_at)) ||
	    py_values_read(c->v, kinds_at + l->bytes_size, &size, sizeof(size)) || size != (uint64_t)count ||
	    (count && py_values_read(c->v, kinds_at + l->bytes_data, kinds, (size_t)count)))
		return false;
	for (int i = 0; i < count; i++) {
		enum dump_local_kind kind = (uint32_t)i < c->arguments     ? DUMP_LOCAL_ARGUMENT
					    : kinds[i] & CPYTHON_FAST_FREE ? DUMP_LOCAL_FREE
					    : kinds[i] & CPYTHON_FAST_CELL ? DUMP_LOCAL_CELL
									   : DUMP_LOCAL_LOCAL;

		if (!(kinds[i] & CPYTHON_FAST_HIDDEN) &&
		    !add(c, names[i], (uint32_t)i, kind, kinds[i] & (CPYTHON_FAST_CELL | CPYTHON_FAST_FREE)))
			return false;
	}
	return true;
}

static int find(const uint64_t *names, int count, uint64_t name)
{
	for (int i = 0; i < count; i++) {
		if (names[i] == name)
			return i;
	}
	return -1;
}

/*
 * co_varnames, co_freevars, co_cellvars; in the frame cells follow the locals, and free variables the cells.
 * An argument that is in a cell has a slot of each kind (names are interned, so that they are the same object).
 */
static bool read_old(struct code *c)
{
	uint32_t header = cpython_header_size(c->layout);
	uint64_t locals[DUMP_VARIABLES_MAX], free_[DUMP_VARIABLES_MAX], cells[DUMP_VARIABLES_MAX];
	int nr_locals = read_tuple(c, header + c->facts->varnames, locals),
	    nr_free = read_tuple(c, header + c->facts->freevars, free_);
	int nr_cells = read_tuple(c, header + c->facts->cellvars, cells);

	if (nr_locals < 0 || nr_free < 0 || nr_cells < 0)
		return false;
	for (int i = 0; i < nr_locals; i++) {
		int cell = find(cells, nr_cells, locals[i]);
		enum dump_local_kind kind = (uint32_t)i < c->arguments ? DUMP_LOCAL_ARGUMENT : DUMP_LOCAL_LOCAL;

		if (!add(c, locals[i], (uint32_t)(cell < 0 ? i : nr_locals + cell), kind, cell >= 0))
			return false;
	}
	for (int i = 0; i < nr_cells; i++) {
		if (find(locals, nr_locals, cells[i]) < 0 &&
		    !add(c, cells[i], (uint32_t)(nr_locals + i), DUMP_LOCAL_CELL, true))
			return false;
	}
	for (int i = 0; i < nr_free; i++) {
		if (!add(c, free_[i], (uint32_t)(nr_locals + nr_cells + i), DUMP_LOCAL_FREE, true))
			return false;
	}
	return true;
}

bool dump_variables_read(struct py_values *v, const struct pybpf_layout *layout, uint64_t code,
			 struct dump_variables *out)
{
	struct code c = {
		.v = v,
		.layout = layout,
		.facts = cpython_facts(layout)->code,
		.at = code,
		.fields = code + cpython_header_size(layout),
		.out = out,
	};

	dump_variables_free(out);
	out->code = code;
	return count_arguments(&c) && (c.facts->varnames ? read_old(&c) : read_new(&c));
}

void dump_variables_free(struct dump_variables *variables)
{
	for (size_t i = 0; i < variables->count; i++)
		free(variables->items[i].name);
	variables->count = 0;
	variables->code = 0;
}

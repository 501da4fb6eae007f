// SPDX-License-Identifier: Apache-2.0
/* Writes an object by the writer of its type, as long as it is read whole and is not inside itself. */
#include "symbols/objects/py_value_internal.h"

/* Readings of an object that changes meanwhile. */
#define ATTEMPTS 3

void py_begin_derived(struct py_values *v, const struct py_object *o)
{
	if (!o->type.derived)
		return;
	py_out_text(&v->out, o->type.name);
	py_out_text(&v->out, "(");
}

void py_end_derived(struct py_values *v, const struct py_object *o)
{
	if (o->type.derived)
		py_out_text(&v->out, ")");
}

static bool is_inside_itself(const struct py_nest *nest, uint64_t object)
{
	for (; nest; nest = nest->outer) {
		if (nest->object == object)
			return true;
	}
	return false;
}

/* Writes what stands for an object that is inside itself, or that has parts and is nested too deep. */
static void write_beyond(struct py_values *v, const struct py_object *o)
{
	py_out_text(&v->out, o->type.flags & PY_KIND_DICT                   ? "{...}"
			     : o->type.flags & PYBPF_TPFLAGS_LIST_SUBCLASS  ? "[...]"
			     : o->type.flags & PYBPF_TPFLAGS_TUPLE_SUBCLASS ? "(...)"
									    : PY_OUT_MORE);
}

/*
 * Writes an object by what it was at one look: at the next one it may be something else, which has parts. So each
 * object takes one of the levels, whatever it is.
 */
static bool write_nested(struct py_values *v, const struct py_object *o)
{
	const struct py_nest *outer = v->nest;
	uint32_t left = outer ? outer->levels : v->limits->levels;
	struct py_nest nest = {.object = o->at, .outer = outer};
	bool done;

	if (!left || (left == 1 && !o->type.is_single) || is_inside_itself(outer, o->at)) {
		write_beyond(v, o);
		return true;
	}
	nest.levels = left - 1;
	v->nest = &nest;
	done = o->type.write(v, o);
	v->nest = outer;
	return done;
}

/* Returns whether it was written; if not, nothing was. */
static bool try_to_write(struct py_values *v, uint64_t object)
{
	size_t size = v->out.size;
	struct py_object o;
	uint64_t type;

	if (!py_look_at(v, object, &o))
		return false;
	/* What was freed meanwhile may be another object now. */
	if (write_nested(v, &o) && py_get(v, object + v->of.layout->code_type, &type, sizeof(type)) &&
	    type == o.type.address)
		return true;
	py_out_return(&v->out, size);
	return false;
}

void py_write(struct py_values *v, uint64_t object)
{
	for (int i = 0; i < ATTEMPTS && !v->is_over && !v->out.full; i++) {
		if (try_to_write(v, object))
			return;
	}
	py_out_text(&v->out, PY_VALUE_UNREADABLE);
}

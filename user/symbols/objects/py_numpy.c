// SPDX-License-Identifier: Apache-2.0
/* Writes numpy's scalars and arrays. Offsets are from the end of the object's header on. */
#include <string.h>

#include "symbols/objects/py_value_internal.h"

/* Most dimensions of numpy's arrays (NPY_MAXDIMS of numpy 2). */
#define MAX_DIMENSIONS 64

/* Most classes between a type and the one of numpy's that it is derived from. */
#define MAX_BASES 16

/* Finds numpy's own type of an object, which may be of a class derived from it. Returns false if it cannot be read. */
static bool find_own_type(struct py_values *v, const struct py_object *o, struct py_type *own)
{
	*own = o->type;
	for (int i = 0; i < MAX_BASES && own->derived; i++) {
		if (!own->base || !py_type_at(v, own->base, own))
			return false;
	}
	return !own->derived;
}

/* The number itself (numpy/arrayscalars.h). */
static bool write_numpy_scalar(struct py_values *v, const struct py_object *o)
{
	struct py_type own;
	const char *name = own.name;
	bool is_unsigned;
	union {
		uint64_t word;
		int64_t number;
		int32_t number32;
		int16_t number16;
		int8_t number8;
		uint8_t bytes[8];
		double d;
		float f;
	} value = {0};

	if (!find_own_type(v, o, &own) || !py_get(v, o->fields, &value, sizeof(value)))
		return false;
	is_unsigned = strstr(name, ".u");
	py_out_print(&v->out, "%s(", o->type.name);
	if (strstr(name, "bool"))
		py_out_text(&v->out, value.bytes[0] ? "True" : "False");
	else if (strstr(name, "float64"))
		py_out_double(&v->out, value.d, true);
	else if (strstr(name, "float32"))
		py_out_float(&v->out, value.f);
	else if (strstr(name, "int8"))
		py_out_print(&v->out, "%d", is_unsigned ? value.bytes[0] : value.number8);
	else if (strstr(name, "int16"))
		py_out_print(&v->out, "%d", is_unsigned ? (uint16_t)value.number16 : value.number16);
	else if (strstr(name, "int32"))
		py_out_print(&v->out, "%lld", is_unsigned ? (long long)(uint32_t)value.number32 : value.number32);
	else if (is_unsigned)
		py_out_print(&v->out, "%llu", (unsigned long long)value.word);
	else
		py_out_print(&v->out, "%lld", (long long)value.number);
	py_out_text(&v->out, ")");
	return true;
}

/* PyArray_Descr: typeobj, kind, type, byteorder (numpy/ndarraytypes.h of numpy 1 and 2). */
static void write_dtype(struct py_values *v, uint64_t descr)
{
	uint64_t at = descr + py_header_size(&v->r), type_at;
	struct py_type type;
	const char *name;
	char order;

	if (!py_get(v, at, &type_at, sizeof(type_at)) || !py_type_at(v, type_at, &type) ||
	    !py_get(v, at + 10, &order, sizeof(order))) {
		py_out_text(&v->out, PY_VALUE_UNREADABLE);
		return;
	}
	name = strrchr(type.name, '.');
	py_out_print(&v->out, "%s%s", order == '>' ? ">" : "", name ? name + 1 : type.name);
}

/* PyArrayObject: data, nd, dimensions, strides, base, descr (numpy/ndarraytypes.h). */
static bool write_array(struct py_values *v, const struct py_object *o)
{
	uint64_t f[6], dimensions[MAX_DIMENSIONS];
	uint32_t nd;

	if (!py_get(v, o->fields, f, sizeof(f)))
		return false;
	nd = (uint32_t)f[1];
	if (nd > MAX_DIMENSIONS || (nd && !py_get(v, f[2], dimensions, nd * sizeof(dimensions[0]))))
		return false;
	py_out_print(&v->out, "<%s shape=(", o->type.name);
	for (uint32_t i = 0; i < nd; i++)
		py_out_print(&v->out, "%s%lld", i ? ", " : "", (long long)dimensions[i]);
	py_out_text(&v->out, nd == 1 ? ",) dtype=" : ") dtype=");
	write_dtype(v, f[5]);
	py_out_text(&v->out, ">");
	return true;
}

static bool write_numpy_complex(struct py_values *v, const struct py_object *o)
{
	py_out_print(&v->out, "%s(", o->type.name);
	if (!py_write_complex_parts(v, o))
		return false;
	py_out_text(&v->out, ")");
	return true;
}

static bool write_numpy_dtype(struct py_values *v, const struct py_object *o)
{
	py_out_text(&v->out, "<numpy.dtype ");
	write_dtype(v, o->at);
	py_out_text(&v->out, ">");
	return true;
}

const struct py_known py_known_numpy[] = {
	{"numpy.ndarray", write_array},
	{"numpy.dtype", write_numpy_dtype},
	{"numpy.complex128", write_numpy_complex},
	{"numpy.bool", write_numpy_scalar},
	{"numpy.bool_", write_numpy_scalar},
	{"numpy.int8", write_numpy_scalar},
	{"numpy.int16", write_numpy_scalar},
	{"numpy.int32", write_numpy_scalar},
	{"numpy.int64", write_numpy_scalar},
	{"numpy.uint8", write_numpy_scalar},
	{"numpy.uint16", write_numpy_scalar},
	{"numpy.uint32", write_numpy_scalar},
	{"numpy.uint64", write_numpy_scalar},
	{"numpy.longlong", write_numpy_scalar},
	{"numpy.ulonglong", write_numpy_scalar},
	{"numpy.float32", write_numpy_scalar},
	{"numpy.float64", write_numpy_scalar},
	{NULL, NULL},
};

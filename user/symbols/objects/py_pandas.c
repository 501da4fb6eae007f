// SPDX-License-Identifier: Apache-2.0
/*
 * Writes pandas' tables and torch's tensors by their shape. No header tells their structs, which differ between
 * versions: what is found is checked, and if the check fails, the object is written by its attributes.
 */
#include <string.h>

#include "symbols/objects/py_value_internal.h"

/* A length that could not be found is a question mark. */
#define UNKNOWN (-1)

/* pandas' internals.BlockManager, behind the header: Cython's table of functions, blocks (a tuple), axes (a list). */
#define MANAGER_BLOCKS 8
#define MANAGER_AXES   16

/*
 * c10::TensorImpl: within this many words from its start it has the address of the tensor's Python object; the sizes
 * follow: their number, and five of them, or a pointer to them if they are more; likewise the strides, which are
 * inline, too; then storage_offset_ and numel_ (c10/core/TensorImpl.h, SizesAndStrides.h).
 */
#define TENSOR_WORDS  16
#define INLINE_SIZES  5
#define SIZES_WORDS   (1 + 2 * INLINE_SIZES)
#define MAX_DIMENSION 64

static void write_length(struct py_values *v, int64_t length)
{
	if (length < 0)
		py_out_text(&v->out, "?");
	else
		py_out_print(&v->out, "%lld", (long long)length);
}

/* Returns the first dimension of numpy's array, if the object is one. */
static int64_t array_length(struct py_values *v, uint64_t at)
{
	struct py_object o;
	uint64_t f[3];
	int64_t length;

	if (!at || !py_look_at(v, at, &o) || strcmp(o.type.name, "numpy.ndarray") != 0 ||
	    !py_get(v, o.fields, f, sizeof(f)) || !(uint32_t)f[1] || !py_get(v, f[2], &length, sizeof(length)))
		return UNKNOWN;
	return length;
}

/* An Index has a range, an array, or an extension array around one, behind Cython's table of functions. */
static int64_t index_length(struct py_values *v, uint64_t at)
{
	uint64_t data, word, length;
	struct py_object o;
	int64_t found;

	if (!py_look_at(v, at, &o))
		return UNKNOWN;
	if (py_attribute(v, &o, "_range", &data))
		return py_get(v, data + py_header_size(&v->r) + 24, &word, sizeof(word)) &&
				       py_read_int(&v->r, word, &length)
			       ? (int64_t)length
			       : UNKNOWN;
	if (!py_attribute(v, &o, "_data", &data))
		return UNKNOWN;
	found = array_length(v, data);
	if (found == UNKNOWN && py_get(v, data + py_header_size(&v->r) + 8, &word, sizeof(word)))
		found = array_length(v, word);
	return found;
}

/* Reads the axes out of a list of `count`. */
static bool read_axes(struct py_values *v, uint64_t at, uint64_t count, uint64_t axes[2])
{
	struct py_object list;
	uint64_t f[2];

	return py_look_at(v, at, &list) && (list.type.flags & PYBPF_TPFLAGS_LIST_SUBCLASS) &&
	       py_get(v, list.fields, f, sizeof(f)) && f[0] == count && py_get(v, f[1], axes, count * sizeof(axes[0]));
}

/* The columns are the first axis of its manager, and the rows the second. */
bool py_write_frame(struct py_values *v, const struct py_object *o)
{
	struct py_object blocks;
	uint64_t manager, at, axes[2];

	if (!py_attribute(v, o, "_mgr", &manager) ||
	    !py_get(v, manager + py_header_size(&v->r) + MANAGER_BLOCKS, &at, sizeof(at)) ||
	    !py_look_at(v, at, &blocks) || !(blocks.type.flags & PYBPF_TPFLAGS_TUPLE_SUBCLASS) ||
	    !py_get(v, manager + py_header_size(&v->r) + MANAGER_AXES, &at, sizeof(at)) || !read_axes(v, at, 2, axes))
		return py_write_instance(v, o);
	py_out_print(&v->out, "<%s shape=(", o->type.name);
	write_length(v, index_length(v, axes[1]));
	py_out_text(&v->out, ", ");
	write_length(v, index_length(v, axes[0]));
	py_out_text(&v->out, ")>");
	return true;
}

bool py_write_series(struct py_values *v, const struct py_object *o)
{
	struct py_object manager;
	uint64_t at, axes[2], name;

	if (!py_attribute(v, o, "_mgr", &at) || !py_look_at(v, at, &manager) ||
	    !py_attribute(v, &manager, "axes", &at) || !read_axes(v, at, 1, axes))
		return py_write_instance(v, o);
	py_out_print(&v->out, "<%s shape=(", o->type.name);
	write_length(v, index_length(v, axes[0]));
	py_out_text(&v->out, ",)");
	if (py_attribute(v, o, "_name", &name)) {
		py_out_text(&v->out, " name=");
		py_write(v, name);
	}
	py_out_text(&v->out, ">");
	return true;
}

bool py_write_index(struct py_values *v, const struct py_object *o)
{
	int64_t length = index_length(v, o->at);

	if (length == UNKNOWN)
		return py_write_instance(v, o);
	py_out_print(&v->out, "<%s shape=(%lld,)>", o->type.name, (long long)length);
	return true;
}

/* It is a datetime, of no date. */
bool py_write_nat(struct py_values *v, const struct py_object *o)
{
	(void)o;
	py_out_text(&v->out, "NaT");
	return true;
}

/* Reads the sizes that begin at this word; false unless their product is the number of elements. */
static bool read_sizes(struct py_values *v, const uint64_t *words, uint64_t *count, uint64_t sizes[MAX_DIMENSION])
{
	/* More than five: a pointer is in the place of the first, and of what else is there nothing is known. */
	uint64_t elements = words[SIZES_WORDS + 1], product = 1;

	*count = words[0];
	if (*count > MAX_DIMENSION || (*count > INLINE_SIZES && !py_get(v, words[1], sizes, *count * sizeof(sizes[0]))))
		return false;
	if (*count <= INLINE_SIZES)
		memcpy(sizes, words + 1, *count * sizeof(sizes[0]));
	for (uint64_t i = 0; i < *count; i++) {
		if (sizes[i] >> 48 || __builtin_mul_overflow(product, sizes[i], &product))
			return false;
	}
	return product == elements;
}

/* Behind the header: whether it is borrowed, and the TensorImpl. */
bool py_write_tensor(struct py_values *v, const struct py_object *o)
{
	uint64_t impl, words[TENSOR_WORDS + 1 + SIZES_WORDS + 2], count = 0, sizes[MAX_DIMENSION];
	bool found = false;

	if (!py_get(v, o->fields + 8, &impl, sizeof(impl)) || !py_get(v, impl, words, sizeof(words)))
		return py_write_instance(v, o);
	for (int i = 0; i < TENSOR_WORDS && !found; i++)
		found = (words[i] & ~1ull) == o->at && read_sizes(v, words + i + 1, &count, sizes);
	if (!found)
		return py_write_instance(v, o);
	py_out_print(&v->out, "<%s shape=(", o->type.name);
	for (uint64_t i = 0; i < count; i++)
		py_out_print(&v->out, "%s%llu", i ? ", " : "", (unsigned long long)sizes[i]);
	py_out_text(&v->out, count == 1 ? ",)>" : ")>");
	return true;
}

// SPDX-License-Identifier: Apache-2.0
/* Types of objects: what their structs say, and who writes their objects. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/objects/py_value_internal.h"

bool py_find_in_class(struct py_values *v, const struct py_type *type, const char *name, uint64_t *value)
{
	struct py_type bases = *type;
	struct py_dict dict;
	uint64_t next;

	for (int i = 0; i < PY_BASES && bases.flags & PYBPF_TPFLAGS_HEAPTYPE; i++) {
		uint64_t fields;

		if (py_open_dict(&v->r, bases.dict, &dict) && py_find_text(&v->r, &dict, name, value))
			return true;
		next = bases.base;
		fields = next + py_header_size(&v->r);
		/* Not by py_type_at(), which calls this. */
		if (!next || !py_get(v, fields + PYBPF_TYPE_FLAGS, &bases.flags, sizeof(bases.flags)) ||
		    !py_get(v, fields + PYBPF_TYPE_BASE, &bases.base, sizeof(bases.base)) ||
		    !py_get(v, fields + PYBPF_TYPE_DICT, &bases.dict, sizeof(bases.dict)))
			return false;
	}
	return false;
}

bool py_class_has(struct py_values *v, const struct py_type *type, const char *name)
{
	uint64_t value;

	return py_find_in_class(v, type, name, &value);
}

static py_writer *find_in(const struct py_known *table, const char *name)
{
	while (table->name && strcmp(table->name, name) != 0)
		table++;
	return table->write;
}

/* Returns whether a class is of this module, or of one in this package. */
static bool is_of_module(struct py_values *v, const struct py_type *type, const char *module)
{
	size_t len = strlen(module);
	struct py_dict dict;
	uint64_t value;
	char *name;
	bool is_of;

	if (!py_open_dict(&v->r, type->dict, &dict) || !py_find_text(&v->r, &dict, "__module__", &value))
		return false;
	name = py_values_name(v, value);
	is_of = name && !strncmp(name, module, len) && (name[len] == '\0' || name[len] == '.');
	free(name);
	return is_of;
}

/*
 * Returns whether the type is a class that a program made. Heap types of extension modules have their module before
 * their names; a class may have any name, but with another module.
 */
static bool is_class(struct py_values *v, const struct py_type *type)
{
	char module[sizeof(type->name)];
	char *point;

	memcpy(module, type->name, sizeof(module));
	point = strrchr(module, '.');
	if (point)
		*point = '\0';
	return (type->flags & PYBPF_TPFLAGS_HEAPTYPE) && (!point || !is_of_module(v, type, module));
}

/* Returns the writer of a builtin type, of a type of an extension module, or of a class. */
static py_writer *find_known(struct py_values *v, const struct py_type *type)
{
	const struct py_writers *w = v->writers;
	py_writer *write = NULL;

	if (is_class(v, type)) {
		const struct py_known_class *class = w->classes;

		while (class->known.name && strcmp(class->known.name, type->name) != 0)
			class ++;
		return class->module && is_of_module(v, type, class->module) ? class->known.write : NULL;
	}
	write = find_in(w->single, type->name);
	for (size_t i = 0; w->types[i] && !write; i++)
		write = find_in(w->types[i], type->name);
	return write;
}

/* Reads the fields of a type that say what its objects are. Only a type has a type that makes types. */
static bool read_type(struct py_values *v, uint64_t at, struct py_type *out)
{
	uint64_t fields = at + py_header_size(&v->r), metatype, meta_flags, words[PYBPF_TYPE_DICT / 8 + 1];

	*out = (struct py_type){.address = at};
	if (at % 8 || !py_get(v, at + v->of.layout->code_type, &metatype, sizeof(metatype)) ||
	    !py_get(v, metatype + py_header_size(&v->r) + PYBPF_TYPE_FLAGS, &meta_flags, sizeof(meta_flags)) ||
	    !(meta_flags & PYBPF_TPFLAGS_TYPE_SUBCLASS) || !py_get(v, fields, words, sizeof(words)))
		return false;
	out->flags = words[PYBPF_TYPE_FLAGS / 8];
	out->base = words[PYBPF_TYPE_BASE / 8];
	out->dict = words[PYBPF_TYPE_DICT / 8];
	out->members = words[PYBPF_TYPE_MEMBERS / 8];
	out->nr_members = out->flags & PYBPF_TPFLAGS_HEAPTYPE ? words[PYBPF_VAR_SIZE / 8] : 0;
	return (out->flags & PYBPF_TPFLAGS_READY) && words[PYBPF_TYPE_BASICSIZE / 8] >= py_header_size(&v->r) &&
	       py_read_name(v, words[PYBPF_TYPE_NAME / 8], out->name);
}

/* Returns whether the type's type is one of enum's, which is written in Python. */
static bool has_enum_type(struct py_values *v, uint64_t type)
{
	struct py_type meta;
	uint64_t at;

	if (!py_get(v, type + v->of.layout->code_type, &at, sizeof(at)))
		return false;
	for (int i = 0; i < PY_BASES && at && read_type(v, at, &meta) && (meta.flags & PYBPF_TPFLAGS_HEAPTYPE); i++) {
		if (!strcmp(meta.name, "EnumMeta") || !strcmp(meta.name, "EnumType"))
			return true;
		at = meta.base;
	}
	return false;
}

static void choose_writer(struct py_values *v, struct py_type *type)
{
	const struct py_writers *w = v->writers;
	struct py_type base = *type;
	bool has_fields = false;

	for (int i = 0; i < PY_BASES; i++) {
		type->write = find_known(v, &base);
		if (type->write)
			break;
		has_fields = has_fields || !is_class(v, &base);
		if (!base.base || !read_type(v, base.base, &base))
			break;
		type->derived = true;
	}
	/* A type of an extension may have its value in fields of its own, as pandas's Timedelta does. */
	if (has_fields && !(type->flags & (PYBPF_TPFLAGS_TUPLE_SUBCLASS | PYBPF_TPFLAGS_LIST_SUBCLASS | PY_KIND_DICT)))
		type->write = NULL;
	if (type->flags & PYBPF_TPFLAGS_HEAPTYPE)
		type->is_enum = has_enum_type(v, type->address);
	if (type->is_enum)
		type->write = w->member_of_enum;
	else if (type->flags & PYBPF_TPFLAGS_TYPE_SUBCLASS)
		type->write = w->type;
	else if (type->flags & PYBPF_TPFLAGS_BASE_EXC_SUBCLASS)
		type->write = w->exception;
	else if (type->derived && (type->flags & PYBPF_TPFLAGS_TUPLE_SUBCLASS) && py_class_has(v, type, "_fields"))
		type->write = w->namedtuple;
	else if (!type->write || type->write == w->instance)
		type->is_dataclass = py_class_has(v, type, "__dataclass_fields__");
	if (!type->write)
		type->write = w->instance;
	for (const struct py_known *known = w->single; known->name; known++)
		type->is_single = type->is_single || known->write == type->write;
}

bool py_type_at(struct py_values *v, uint64_t at, struct py_type *out)
{
	struct py_type *kept = &v->types[(at * 0x9e3779b97f4a7c15u) >> 56];
	bool in_snapshot = v->in_snapshot, found = kept->address == at && at;

	if (!found) {
		/* Types stay, and change where the values do not: a method is added, a cache filled. */
		v->in_snapshot = false;
		found = read_type(v, at, out);
		if (found) {
			choose_writer(v, out);
			*kept = *out;
		}
		v->in_snapshot = in_snapshot;
	}
	if (found)
		*out = *kept;
	return found;
}

bool py_look_at(struct py_values *v, uint64_t object, struct py_object *o)
{
	uint64_t type;

	o->at = object;
	o->fields = object + py_header_size(&v->r);
	return object % 8 == 0 && py_read_head(v, object, &type) && py_type_at(v, type, &o->type);
}

bool py_values_open_cell(struct py_values *v, uint64_t object, uint64_t *content)
{
	struct py_object o;

	return py_look_at(v, object, &o) && !strcmp(o.type.name, "cell") && !(o.type.flags & PYBPF_TPFLAGS_HEAPTYPE) &&
	       py_get(v, o.fields, content, sizeof(*content));
}

bool py_values_exception(struct py_values *v, uint64_t object, char *name, size_t size)
{
	struct py_object o;
	struct py_type type;

	if (!py_look_at(v, object, &o))
		return false;
	type = o.type;
	if ((type.flags & PYBPF_TPFLAGS_TYPE_SUBCLASS) && !py_type_at(v, object, &type))
		return false;
	snprintf(name, size, "%s", type.name);
	return type.flags & PYBPF_TPFLAGS_BASE_EXC_SUBCLASS;
}

// SPDX-License-Identifier: Apache-2.0
/* Chooses who writes an object, by its type, and keeps the limits. */
#include "symbols/py_value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "symbols/py_secret.h"
#include "symbols/py_value_internal.h"
#include "symbols/string_read.h"
#include "symbols/string.h"

/* Readings of an object that changes meanwhile. */
#define ATTEMPTS 3
/*
 * Most of what may be read for the variables of a thread at each level, in units of a read and of UNIT bytes: some
 * 0.4 seconds', if the clock does not end it before. The clock is looked at once in so many.
 */
#define MAX_COST      (1u << 18)
#define COST_PER_LOOK 64
#define UNIT          64
/* Bytes of a name that are read at once: no page ends within them. */
#define NAME_PART 64
/* Longest string that is a name, or a path. */
#define MAX_NAME 4096

static const struct py_limits limits[PY_VALUE_LEVELS] = {
	{.text = 400, .string = 100, .items = 10, .levels = 4},
	{.text = 4000, .string = 1000, .items = 100, .levels = 6},
	{.text = PY_OUT_MAX, .string = 10000, .items = 1000, .levels = 9},
};

static void spend(struct py_values *v, size_t size)
{
	v->cost += 1 + (unsigned)(size / UNIT);
	if (v->cost / COST_PER_LOOK != v->looked_at) {
		v->looked_at = v->cost / COST_PER_LOOK;
		v->is_over = v->is_over || v->cost > v->max_cost ||
			     (v->of.until_ns && clock_ns(CLOCK_MONOTONIC) > v->of.until_ns);
	}
}

static int read_within_time(void *source, uint64_t addr, void *dst, size_t size)
{
	struct py_values *v = source;

	spend(v, size);
	if (v->is_over)
		return -1;
	return v->in_snapshot ? py_snapshot_read(&v->snapshot, v->of.memory, addr, dst, size)
			      : v->of.memory->read(v->of.memory->source, addr, dst, size);
}

struct py_values *py_values_new(const struct py_values_of *of)
{
	struct py_values *v = calloc(1, sizeof(*v));
	unsigned level = of->level < 1 ? 1 : of->level > PY_VALUE_LEVELS ? PY_VALUE_LEVELS : of->level;

	if (!v)
		return NULL;
	v->of = *of;
	v->memory = (struct walk_memory){.read = read_within_time, .source = v};
	v->r = (struct py_reader){&v->memory, of->layout};
	v->limits = &limits[level - 1];
	v->max_cost = level * MAX_COST * (of->stopped ? 1 : 2);
	return v;
}

void py_values_free(struct py_values *v)
{
	if (v)
		py_snapshot_free(&v->snapshot);
	free(v);
}

bool py_values_are_over(const struct py_values *v)
{
	return v->is_over;
}

int py_values_read(struct py_values *v, uint64_t addr, void *dst, size_t size)
{
	return addr ? read_within_time(v, addr, dst, size) : -1;
}

bool py_get(struct py_values *v, uint64_t addr, void *dst, size_t size)
{
	return !py_values_read(v, addr, dst, size);
}

const struct cpython_facts *py_facts(const struct py_values *v)
{
	return cpython_facts(v->of.layout);
}

bool py_part_read(struct py_values *v, struct py_part *part, uint64_t at, size_t words)
{
	*part = (struct py_part){
		.at = at, .size = words * sizeof(uint64_t), .words = calloc(words + 1, sizeof(uint64_t))};
	return part->words && (!words || py_get(v, at, part->words, part->size));
}

bool py_part_same(struct py_values *v, const struct py_part *part)
{
	struct py_part now;
	bool same = py_part_read(v, &now, part->at, part->size / sizeof(uint64_t)) &&
		    !memcmp(now.words, part->words, part->size);

	py_part_free(&now);
	return same;
}

void py_part_free(struct py_part *part)
{
	free(part->words);
	part->words = NULL;
}

bool py_read_name(struct py_values *v, uint64_t addr, char name[PY_TYPE_NAME])
{
	const size_t most = PY_TYPE_NAME - sizeof(PY_OUT_MORE);
	size_t size = 0, part;

	/* It may end shortly before unmapped memory, which begins with a page. */
	for (; size < most && strnlen(name, size) == size; size += part) {
		part = NAME_PART - (addr + size) % NAME_PART;
		part = part < most - size ? part : most - size;
		if (!py_get(v, addr + size, name + size, part))
			return false;
	}
	size = strnlen(name, size);
	name[size] = '\0';
	if (size < most)
		return size > 0;
	/* Not a part of a character. */
	while (size && ((unsigned char)name[size - 1] & 0xc0) == 0x80)
		size--;
	size -= size && (unsigned char)name[size - 1] >= 0xc0;
	memcpy(name + size, PY_OUT_MORE, sizeof(PY_OUT_MORE));
	return true;
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
	return (type->flags & PY_FLAG_HEAP) && (!point || !is_of_module(v, type, module));
}

/* Returns the writer of a builtin type, of a type of an extension module, or of a class. */
static py_writer *find_known(struct py_values *v, const struct py_type *type)
{
	static const struct py_known *const tables[] = {py_known_scalars,   py_known_containers, py_known_library,
							py_known_callables, py_known_instances,  py_known_numpy};

	py_writer *write = NULL;

	if (is_class(v, type)) {
		const struct py_known_class *class = py_known_classes;

		while (class->known.name && strcmp(class->known.name, type->name) != 0)
			class ++;
		return class->module && is_of_module(v, type, class->module) ? class->known.write : NULL;
	}
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]) && !write; i++)
		write = find_in(tables[i], type->name);
	return write;
}

/* Reads the fields of a type that say what its objects are. Only a type has a type that makes types. */
static bool read_type(struct py_values *v, uint64_t at, struct py_type *out)
{
	uint64_t fields = at + py_header_size(&v->r), metatype, meta_flags, words[PY_TYPE_DICT / 8 + 1];

	*out = (struct py_type){.address = at};
	if (at % 8 || !py_get(v, at + v->of.layout->code_type, &metatype, sizeof(metatype)) ||
	    !py_get(v, metatype + py_header_size(&v->r) + PY_TYPE_FLAGS, &meta_flags, sizeof(meta_flags)) ||
	    !(meta_flags & PY_FLAG_TYPE) || !py_get(v, fields, words, sizeof(words)))
		return false;
	out->flags = words[PY_TYPE_FLAGS / 8];
	out->base = words[PY_TYPE_BASE / 8];
	out->dict = words[PY_TYPE_DICT / 8];
	out->members = words[PY_TYPE_MEMBERS / 8];
	out->nr_members = out->flags & PY_FLAG_HEAP ? words[PY_TYPE_SIZE / 8] : 0;
	return (out->flags & PY_FLAG_READY) && words[PY_TYPE_BASICSIZE / 8] >= py_header_size(&v->r) &&
	       py_read_name(v, words[PY_TYPE_NAME_AT / 8], out->name);
}

/* Returns whether the type's type is one of enum's, which is written in Python. */
static bool has_enum_type(struct py_values *v, uint64_t type)
{
	struct py_type meta;
	uint64_t at;

	if (!py_get(v, type + v->of.layout->code_type, &at, sizeof(at)))
		return false;
	for (int i = 0; i < PY_BASES && at && read_type(v, at, &meta) && (meta.flags & PY_FLAG_HEAP); i++) {
		if (!strcmp(meta.name, "EnumMeta") || !strcmp(meta.name, "EnumType"))
			return true;
		at = meta.base;
	}
	return false;
}

static void choose_writer(struct py_values *v, struct py_type *type)
{
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
	if (has_fields && !(type->flags & (PY_FLAG_TUPLE | PY_FLAG_LIST | PY_KIND_DICT)))
		type->write = NULL;
	if (type->flags & PY_FLAG_HEAP)
		type->is_enum = has_enum_type(v, type->address);
	if (type->is_enum)
		type->write = py_write_enum;
	else if (type->flags & PY_FLAG_TYPE)
		type->write = py_write_class;
	else if (type->flags & PY_FLAG_EXCEPTION)
		type->write = py_write_exception;
	else if (type->derived && (type->flags & PY_FLAG_TUPLE) && py_class_has(v, type, "_fields"))
		type->write = py_write_namedtuple;
	else if (!type->write || type->write == py_write_instance)
		type->is_dataclass = py_class_has(v, type, "__dataclass_fields__");
	if (!type->write)
		type->write = py_write_instance;
	for (const struct py_known *known = py_known_scalars; known->name; known++)
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

/* Reads an object's type. Returns false if nobody has a reference to the object: it was freed meanwhile. */
static bool read_head(struct py_values *v, uint64_t object, uint64_t *type)
{
	if (!v->in_snapshot)
		return py_get(v, object + v->of.layout->code_type, type, sizeof(*type));
	spend(v, sizeof(*type));
	return !v->is_over && py_snapshot_type(&v->snapshot, v->of.memory, v->of.layout, object, type);
}

bool py_look_at(struct py_values *v, uint64_t object, struct py_object *o)
{
	uint64_t type;

	o->at = object;
	o->fields = object + py_header_size(&v->r);
	return object % 8 == 0 && read_head(v, object, &type) && py_type_at(v, type, &o->type);
}

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
	py_out_text(&v->out, o->type.flags & PY_KIND_DICT    ? "{...}"
			     : o->type.flags & PY_FLAG_LIST  ? "[...]"
			     : o->type.flags & PY_FLAG_TUPLE ? "(...)"
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

void py_values_begin(struct py_values *v, bool again)
{
	v->in_snapshot = !v->of.stopped;
	if (!again)
		py_snapshot_forget(&v->snapshot);
	if (v->in_snapshot)
		spend(v, py_snapshot_take(&v->snapshot, v->of.memory));
}

const char *py_values_text(struct py_values *v, const char *name, uint64_t object, size_t *size)
{
	py_out_begin(&v->out, v->limits->text);
	if (!v->of.show_secrets && py_is_secret(name))
		py_out_text(&v->out, PY_VALUE_HIDDEN);
	else
		py_write(v, object);
	py_out_end(&v->out);
	*size = v->out.size;
	return v->out.bytes;
}

const struct py_mark *py_values_marks(const struct py_values *v, uint32_t *count)
{
	*count = v->out.nr_marks;
	return v->out.marks;
}

bool py_values_hold(struct py_values *v)
{
	bool in_snapshot = v->in_snapshot;

	v->in_snapshot = false;
	return !in_snapshot || py_snapshot_holds(&v->snapshot);
}

unsigned py_values_worth(const struct py_values *v)
{
	return py_snapshot_worth(&v->snapshot);
}

bool py_values_open_cell(struct py_values *v, uint64_t object, uint64_t *content)
{
	struct py_object o;

	return py_look_at(v, object, &o) && !strcmp(o.type.name, "cell") && !(o.type.flags & PY_FLAG_HEAP) &&
	       py_get(v, o.fields, content, sizeof(*content));
}

bool py_values_exception(struct py_values *v, uint64_t object, char *name, size_t size)
{
	struct py_object o;
	struct py_type type;

	if (!py_look_at(v, object, &o))
		return false;
	type = o.type;
	if ((type.flags & PY_FLAG_TYPE) && !py_type_at(v, object, &type))
		return false;
	snprintf(name, size, "%s", type.name);
	return type.flags & PY_FLAG_EXCEPTION;
}

/* Decodes a str that is not compact, as those of classes derived from str are. */
static char *read_own_string(struct py_values *v, uint64_t object)
{
	uint8_t data[MAX_NAME * sizeof(uint32_t)];
	struct pysym_string_shape shape = {.latin1 = true};
	struct py_units units;

	if (!py_find_units(v, object, &units) || units.count > MAX_NAME)
		return NULL;
	shape.unit = (uint8_t)units.unit;
	shape.data_size = (uint32_t)(units.count * units.unit);
	if (shape.data_size && !py_get(v, units.at, data, shape.data_size))
		return NULL;
	return pysym_string_decode(&shape, data, shape.data_size);
}

char *py_values_name(struct py_values *v, uint64_t object)
{
	bool old = v->of.layout->string_kind == PYBPF_STR_BYTES;
	uint64_t length;
	char *name;

	if (!py_is_a(&v->r, object, old ? PY_KIND_BYTES : PY_KIND_TEXT) ||
	    !py_get(v, object + v->of.layout->str_length, &length, sizeof(length)) || length > MAX_NAME)
		return NULL;
	name = pysym_read_string(&v->memory, v->of.layout, object);
	return name || old ? name : read_own_string(v, object);
}

// SPDX-License-Identifier: Apache-2.0
/* Writes objects by their attributes: in their dicts, inline, and in __slots__. */
#include <stdlib.h>
#include <string.h>

#include "symbols/objects/py_value_internal.h"

/* Most bases of an object's type whose __slots__ are looked at. */
#define SLOT_BASES 16
/* Most members of a type: more are no __slots__ that anybody wrote. */
#define MAX_MEMBERS 1024

/* PyMemberDef (Include/structmember.h, descrobject.h from 3.12 on): name, type, offset, flags, doc. */
#define MEMBER_WORDS  5
#define MEMBER_NAME   0
#define MEMBER_TYPE   1
#define MEMBER_OFFSET 2
/* T_OBJECT_EX, which __slots__ have. */
#define MEMBER_OBJECT 16
/* Slots are within the object, and no object of fixed size is this large. */
#define MAX_OFFSET (1u << 20)

struct slot {
	char name[PY_TYPE_NAME];
	uint64_t offset, value;
};

/* Reads the name and the place of slot i of the type; returns false if it is not one. */
static bool read_member(struct py_values *v, const struct py_type *type, uint64_t i, struct slot *slot)
{
	uint64_t member[MEMBER_WORDS];

	memset(slot, 0, sizeof(*slot));
	if (!py_get(v, type->members + i * sizeof(member), member, sizeof(member)) ||
	    (uint32_t)member[MEMBER_TYPE] != MEMBER_OBJECT || member[MEMBER_OFFSET] > MAX_OFFSET)
		return false;
	if (!py_read_name(v, member[MEMBER_NAME], slot->name))
		slot->name[0] = '\0';
	slot->offset = member[MEMBER_OFFSET];
	return true;
}

/* Reads slot i of the type; returns false if it is not one, or has no value. */
static bool read_slot(struct py_values *v, const struct py_object *o, const struct py_type *type, uint64_t i,
		      struct slot *slot)
{
	return read_member(v, type, i, slot) && py_get(v, o->at + slot->offset, &slot->value, sizeof(slot->value)) &&
	       slot->value;
}

/* Reads the type and its bases, the type first. Returns how many. */
static size_t read_bases(struct py_values *v, const struct py_type *type, struct py_type bases[SLOT_BASES])
{
	size_t count = 1;

	bases[0] = *type;
	while (count < SLOT_BASES && bases[count - 1].base && py_type_at(v, bases[count - 1].base, &bases[count]) &&
	       bases[count].flags & PYBPF_TPFLAGS_HEAPTYPE)
		count++;
	return count;
}

bool py_find_slot(struct py_values *v, const struct py_type *type, const char *name, uint64_t *offset)
{
	struct py_type bases[SLOT_BASES];
	size_t count = read_bases(v, type, bases);
	struct slot slot;

	for (size_t i = 0; i < count; i++) {
		for (uint64_t j = 0; j < bases[i].nr_members && j < MAX_MEMBERS; j++) {
			if (read_member(v, &bases[i], j, &slot) && !strcmp(slot.name, name)) {
				*offset = slot.offset;
				return true;
			}
		}
	}
	return false;
}

bool py_attribute(struct py_values *v, const struct py_object *o, const char *name, uint64_t *value)
{
	struct py_dict dict;
	uint64_t offset;

	if (py_find_slot(v, &o->type, name, &offset) && py_get(v, o->at + offset, value, sizeof(*value)) && *value)
		return true;
	return py_open_attributes(&v->r, o->at, &dict) && py_find_text(&v->r, &dict, name, value);
}

/* The slots of the bases come first, as their arguments do in a dataclass. */
static bool write_slots(struct py_values *v, const struct py_object *o, bool *first)
{
	struct py_type bases[SLOT_BASES];
	size_t count = read_bases(v, &o->type, bases);
	struct py_entries said = {.is_named = false};
	struct slot slot, again;
	uint32_t written = 0;

	for (size_t i = count; i-- > 0;) {
		for (uint64_t j = 0; j < bases[i].nr_members && j < MAX_MEMBERS && written < v->limits->items; j++) {
			if (!read_slot(v, o, &bases[i], j, &slot))
				continue;
			py_out_text(&v->out, *first ? "" : ", ");
			*first = false;
			py_write_named(v, slot.name[0] ? slot.name : NULL, slot.value, &said);
			written++;
			if (!read_slot(v, o, &bases[i], j, &again) || again.value != slot.value)
				return false;
		}
	}
	return true;
}

static bool write_attributes(struct py_values *v, const struct py_object *o, bool *first)
{
	struct py_dict dict, again;
	enum py_found found = py_find_attributes(&v->r, o->at, &dict);

	if (found == PY_UNREADABLE || !write_slots(v, o, first))
		return false;
	if (found == PY_NOTHING)
		return py_find_attributes(&v->r, o->at, &again) == PY_NOTHING;
	return py_write_pairs(v, &dict, PY_COUNT_UNKNOWN, PY_PAIRS_NAMES, first) &&
	       py_open_attributes(&v->r, o->at, &again) && again.entries == dict.entries && again.values == dict.values;
}

/* Returns whether it is a field, and no ClassVar or InitVar: dataclasses names them _FIELD and others. */
static bool is_field(struct py_values *v, const struct py_object *field, bool *is)
{
	struct py_object kind;
	uint64_t at, text;
	char *name = NULL;

	if (py_attribute(v, field, "_field_type", &at) && py_look_at(v, at, &kind) &&
	    py_attribute(v, &kind, "name", &text))
		name = py_values_name(v, text);
	*is = name && strcmp(name, "_FIELD") == 0;
	free(name);
	return name != NULL;
}

/* Returns whether the class wants the field in its repr(): dataclasses.Field has slots. */
static bool is_shown_field(struct py_values *v, uint64_t at, bool *shown)
{
	struct py_object field;
	uint64_t flag, number;

	if (!py_look_at(v, at, &field) || !py_attribute(v, &field, "repr", &flag) ||
	    !py_read_int(&v->r, flag, &number) || !is_field(v, &field, shown))
		return false;
	*shown = *shown && number != 0;
	return true;
}

/*
 * Reads an attribute that the object has from its class. Returns false for one whose type has a __get__, since that
 * computes another value: a property, a function, the place of a slot.
 */
static bool read_default(struct py_values *v, const struct py_object *o, const char *name, uint64_t *value)
{
	struct py_object found;
	uint64_t getter;

	return py_find_in_class(v, &o->type, name, value) && py_look_at(v, *value, &found) &&
	       py_get(v, found.type.address + py_header_size(&v->r) + PYBPF_TYPE_DESCR_GET, &getter, sizeof(getter)) &&
	       !getter;
}

static bool read_field(struct py_values *v, const struct py_object *o, const char *name, uint64_t *value)
{
	return py_attribute(v, o, name, value) || read_default(v, o, name, value);
}

/* Writes a field, unless it has no value. Returns as a writer. */
static bool write_field(struct py_values *v, const struct py_object *o, uint64_t key, bool *first,
			struct py_entries *said)
{
	char *name = py_values_name(v, key);
	uint64_t value, again;
	bool done = name != NULL;

	if (done && read_field(v, o, name, &value)) {
		py_out_text(&v->out, *first ? "" : ", ");
		*first = false;
		py_write_named(v, name, value, said);
		done = read_field(v, o, name, &again) && again == value;
	}
	free(name);
	return done;
}

/*
 * Writes the fields that repr() shows, in its order: those with repr=False may be secret, and what else is in the
 * object's dict is no field.
 */
static bool write_fields(struct py_values *v, const struct py_object *o, uint64_t fields, bool *first)
{
	struct py_dict dict;
	struct py_part entries = {0};
	size_t words, written = 0, left = 0;
	struct py_entries said = {.is_named = false};
	bool shown = false, done = py_open_dict(&v->r, fields, &dict) && !dict.values && dict.count <= MAX_MEMBERS;

	words = done && dict.hashed ? 3 : 2;
	done = done && py_part_read(v, &entries, dict.entries, dict.count * words);
	for (size_t i = 0; done && i < dict.count && !v->out.full; i++) {
		const uint64_t *entry = entries.words + (i + 1) * words - 2;

		if (!entry[0] || !entry[1])
			continue;
		done = is_shown_field(v, entry[1], &shown);
		if (!done || !shown)
			continue;
		if (written == v->limits->items)
			left++;
		else if ((done = write_field(v, o, entry[0], first, &said)))
			written++;
	}
	py_write_more(v, written, written + left);
	py_part_free(&entries);
	return done;
}

static bool write_dataclass(struct py_values *v, const struct py_object *o)
{
	uint64_t fields;
	bool first = true, done;

	py_out_text(&v->out, o->type.name);
	py_out_text(&v->out, "(");
	done = py_find_in_class(v, &o->type, "__dataclass_fields__", &fields) && write_fields(v, o, fields, &first);
	py_out_text(&v->out, ")");
	return done;
}

bool py_write_instance(struct py_values *v, const struct py_object *o)
{
	size_t size = v->out.size;
	bool first = true, done;

	if (o->type.is_dataclass)
		return write_dataclass(v, o);
	py_out_print(&v->out, "<%s", o->type.name);
	py_out_mark(&v->out, size + 1, o->at);
	py_out_text(&v->out, " ");
	done = write_attributes(v, o, &first);
	if (done && first) {
		py_out_return(&v->out, size);
		py_out_print(&v->out, "<%s object", o->type.name);
		py_out_mark(&v->out, size + 1, o->at);
	}
	py_out_text(&v->out, ">");
	return done;
}

/* 2.7: PyInstanceObject: in_class, in_dict; PyClassObject: cl_bases, cl_dict, cl_name. */
static bool write_old_instance(struct py_values *v, const struct py_object *o)
{
	uint64_t parts[2], name_at;
	size_t size = v->out.size;
	struct py_dict dict;
	bool first = true, done;
	char *name;

	if (!py_get(v, o->fields, parts, sizeof(parts)) ||
	    !py_get(v, parts[0] + py_header_size(&v->r) + 16, &name_at, sizeof(name_at)) ||
	    !py_open_dict(&v->r, parts[1], &dict))
		return false;
	name = py_values_name(v, name_at);
	py_out_print(&v->out, "<%s", name ? name : "instance");
	py_out_mark(&v->out, size + 1, o->at);
	py_out_text(&v->out, " ");
	free(name);
	done = py_write_pairs(v, &dict, PY_COUNT_UNKNOWN, PY_PAIRS_NAMES, &first);
	py_out_text(&v->out, first ? "object>" : ">");
	return done;
}

/* Members of enum.Enum: the class makes _name_ and _value_. */
bool py_write_enum(struct py_values *v, const struct py_object *o)
{
	uint64_t name = 0, value;
	bool named, hides;
	char *text;

	if (!py_attribute(v, o, "_value_", &value))
		return false;
	named = py_attribute(v, o, "_name_", &name);
	text = named ? py_values_name(v, name) : NULL;
	hides = py_hides_member(v, named, name, text);
	py_out_print(&v->out, "<%s", o->type.name);
	if (text) {
		py_out_text(&v->out, ".");
		py_out_text(&v->out, text);
	}
	free(text);
	py_out_text(&v->out, ": ");
	if (hides)
		py_out_text(&v->out, PY_VALUE_HIDDEN);
	else
		py_write(v, value);
	py_out_text(&v->out, ">");
	return true;
}

/* PyBaseExceptionObject: dict, args (a tuple). */
bool py_write_exception(struct py_values *v, const struct py_object *o)
{
	struct py_object args;
	uint64_t at, count;
	const char *name = strrchr(o->type.name, '.');

	if (!py_get(v, o->fields + 8, &at, sizeof(at)) || !py_look_at(v, at, &args) ||
	    !(args.type.flags & PYBPF_TPFLAGS_TUPLE_SUBCLASS) || !py_get(v, args.fields, &count, sizeof(count)))
		return false;
	py_out_text(&v->out, name ? name + 1 : o->type.name);
	if (count != 1 || py_facts(v)->repr->has_exception_comma) {
		py_write(v, at);
		return true;
	}
	if (!py_get(v, args.fields + py_facts(v)->objects->tuple_items, &at, sizeof(at)))
		return false;
	py_out_text(&v->out, "(");
	py_write(v, at);
	py_out_text(&v->out, ")");
	return true;
}

/* 2.7: types that have no base. */
const struct py_known py_known_instances[] = {
	{"instance", write_old_instance},
	{NULL, NULL},
};

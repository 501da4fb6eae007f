// SPDX-License-Identifier: Apache-2.0
/* Finds attributes by the addresses of their names. */
#include "symbols/objects/py_names.h"

#include <stdlib.h>
#include <string.h>

#include "symbols/objects/py_value_internal.h"

/* Most attributes of an object in a dict. */
#define MAX_ENTRIES 1024
/* The number of a name that is not among those, and of a slot that does not exist. */
#define NONE UINT32_MAX

struct key {
	uint64_t address;
	uint32_t name; /* index, or NONE */
	uint32_t pad;
};

struct type {
	uint64_t address;
	uint32_t offsets[PY_NAMES_MAX]; /* of slots; NONE: there is none */
};

void py_names_init(struct py_names *n, const char *const *names, size_t count)
{
	*n = (struct py_names){.names = names, .count = count < PY_NAMES_MAX ? count : PY_NAMES_MAX};
	intern_init(&n->keys, sizeof(struct key), sizeof(uint64_t));
	intern_init(&n->types, sizeof(struct type), sizeof(uint64_t));
}

void py_names_forget(struct py_names *n)
{
	intern_free(&n->keys);
	intern_free(&n->types);
}

/* Returns the index of the name that the key of a dict is, or NONE. */
static uint32_t name_of(struct py_names *n, struct py_values *v, uint64_t address)
{
	struct key key = {.address = address, .name = NONE};
	uint32_t known = intern_find(&n->keys, &key);
	char *text;
	bool fresh;

	if (known != INTERN_NONE)
		return ((const struct key *)intern_item(&n->keys, known))->name;
	text = py_values_name(v, address);
	for (size_t i = 0; i < n->count && text && key.name == NONE; i++)
		key.name = strcmp(text, n->names[i]) ? NONE : (uint32_t)i;
	free(text);
	intern_add(&n->keys, &key, &fresh);
	return key.name;
}

/* Reads the entries of a table, and the values of a split one. Returns whether that is possible. */
static bool find_in_dict(struct py_names *n, struct py_values *v, const struct py_dict *dict, uint64_t *values)
{
	size_t words = dict->hashed ? 3 : 2;
	struct py_part entries = {.words = NULL}, split = {.words = NULL};
	bool done = dict->count <= MAX_ENTRIES && py_part_read(v, &entries, dict->entries, dict->count * words) &&
		    (!dict->values || py_part_read(v, &split, dict->values, dict->count));

	for (size_t i = 0; i < dict->count && done; i++) {
		uint64_t key = entries.words[(i + 1) * words - 2];
		uint64_t value = dict->values ? split.words[i] : entries.words[(i + 1) * words - 1];
		uint32_t name = key && value ? name_of(n, v, key) : NONE;

		if (name != NONE)
			values[name] = value;
	}
	py_part_free(&entries);
	py_part_free(&split);
	return done;
}

static const struct type *type_of(struct py_names *n, struct py_values *v, const struct py_type *type)
{
	struct type found = {.address = type->address};
	uint32_t i = intern_find(&n->types, &found);
	uint64_t offset;
	bool fresh;

	if (i == INTERN_NONE) {
		for (size_t j = 0; j < n->count; j++)
			found.offsets[j] = py_find_slot(v, type, n->names[j], &offset) ? (uint32_t)offset : NONE;
		i = intern_add(&n->types, &found, &fresh);
	}
	return i == INTERN_NONE ? NULL : intern_item(&n->types, i);
}

bool py_names_find(struct py_names *n, struct py_values *v, uint64_t object, uint64_t *values)
{
	const struct type *type;
	struct py_object o;
	struct py_dict dict;
	enum py_found found;

	memset(values, 0, n->count * sizeof(*values));
	if (!py_look_at(v, object, &o) || !(o.type.flags & PYBPF_TPFLAGS_HEAPTYPE))
		return false;
	type = type_of(n, v, &o.type);
	found = py_find_attributes(&v->r, object, &dict);
	if (!type || found == PY_UNREADABLE || (found == PY_FOUND && !find_in_dict(n, v, &dict, values)))
		return false;
	for (size_t i = 0; i < n->count; i++) {
		if (type->offsets[i] != NONE && !py_get(v, object + type->offsets[i], &values[i], sizeof(*values)))
			return false;
	}
	return true;
}

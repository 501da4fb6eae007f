// SPDX-License-Identifier: Apache-2.0
/*
 * Writes the paths of pathlib, which is written in Python. They are kept as characters and not as UTF-8, which cannot
 * say what the names of files can have: a byte that is not UTF-8 is a surrogate in Python's text.
 */
#include <stdlib.h>
#include <string.h>

#include "symbols/objects/py_value_internal.h"

/* Longest path, as the kernel's PATH_MAX has it. */
#define MAX_PATH 4096

struct path {
	size_t count;
	uint32_t units[MAX_PATH];
};

/* 2.7 has bytes. */
static bool read_old_text(struct py_values *v, uint64_t object, struct path *out)
{
	char *text = py_values_name(v, object);
	bool done = text && strlen(text) <= MAX_PATH;

	out->count = done ? strlen(text) : 0;
	for (size_t i = 0; i < out->count; i++)
		out->units[i] = (unsigned char)text[i];
	free(text);
	return done;
}

static bool read_text(struct py_values *v, uint64_t object, struct path *out)
{
	uint8_t bytes[MAX_PATH * sizeof(uint32_t)];
	struct py_units units;

	if (v->of.layout->string_kind == PYBPF_STR_BYTES)
		return read_old_text(v, object, out);
	if (!py_is_a(&v->r, object, PY_KIND_TEXT) || !py_find_units(v, object, &units) || units.count > MAX_PATH ||
	    (units.count && !py_get(v, units.at, bytes, units.count * units.unit)))
		return false;
	out->count = units.count;
	memset(out->units, 0, out->count * sizeof(out->units[0]));
	for (size_t i = 0; i < out->count; i++)
		memcpy(&out->units[i], bytes + i * units.unit, units.unit);
	return true;
}

/* Adds a part as posixpath.join() does: an absolute one begins anew. */
static bool join_part(struct path *path, const struct path *part)
{
	if (part->count && part->units[0] == '/')
		path->count = 0;
	else if (path->count && path->units[path->count - 1] != '/')
		path->units[path->count++] = '/';
	if (path->count + part->count >= MAX_PATH)
		return false;
	memcpy(path->units + path->count, part->units, part->count * sizeof(part->units[0]));
	path->count += part->count;
	return true;
}

/* Leaves "." and "//" out. */
static void tidy_path(struct path *path)
{
	uint32_t *units = path->units;
	size_t to = 0, count = path->count, root;

	/* POSIX lets exactly two mean something else. */
	for (root = 0; root < count && units[root] == '/'; root++)
		;
	if (root)
		to = root == 2 ? 2 : 1;
	for (size_t from = root, size; from < count; from += size + 1) {
		for (size = 0; from + size < count && units[from + size] != '/'; size++)
			;
		if (!size || (size == 1 && units[from] == '.'))
			continue;
		if (to && units[to - 1] != '/')
			units[to++] = '/';
		memmove(units + to, units + from, size * sizeof(units[0]));
		to += size;
	}
	if (!to)
		units[to++] = '.';
	path->count = to;
}

/* Makes the path of its parts. */
static bool make_path(struct py_values *v, const struct py_object *o, struct path *path)
{
	struct path *part = malloc(sizeof(*part));
	struct py_part head = {0}, items = {0};
	struct py_object list;
	uint64_t at;
	bool done = part && py_attribute(v, o, py_facts(v)->names->path_parts, &at) && py_look_at(v, at, &list) &&
		    !strcmp(list.type.name, "list") && py_part_read(v, &head, list.fields, 2) &&
		    head.words[0] <= v->limits->items && py_part_read(v, &items, head.words[1], head.words[0]);

	path->count = 0;
	for (size_t i = 0; done && i < head.words[0]; i++)
		done = read_text(v, items.words[i], part) && join_part(path, part);
	if (done)
		tidy_path(path);
	py_part_free(&items);
	py_part_free(&head);
	free(part);
	return done;
}

/* repr() has the separators of POSIX, also of Windows's paths. */
static void use_slashes(struct path *path)
{
	for (size_t i = 0; i < path->count; i++) {
		if (path->units[i] == '\\')
			path->units[i] = '/';
	}
}

/* _str is there once somebody asked for it. */
bool py_write_path(struct py_values *v, const struct py_object *o)
{
	struct path *path = malloc(sizeof(*path));
	bool windows = strstr(o->type.name, "Windows"), done;
	uint64_t text;

	if (!path)
		return false;
	done = (py_attribute(v, o, "_str", &text) && read_text(v, text, path)) || (!windows && make_path(v, o, path));
	if (done) {
		if (windows)
			use_slashes(path);
		py_out_print(&v->out, "%s(", o->type.name);
		py_write_text(v, (const uint8_t *)path->units, path->count, path->count, false, sizeof(path->units[0]),
			      v->of.layout->string_kind == PYBPF_STR_BYTES ? PY_QUOTE_BYTES : PY_QUOTE_TEXT);
		py_out_text(&v->out, ")");
	}
	free(path);
	return done || py_write_instance(v, o);
}

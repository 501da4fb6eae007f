// SPDX-License-Identifier: Apache-2.0
/* Writes the paths of pathlib, which is written in Python. */
#include <stdlib.h>
#include <string.h>

#include "symbols/py_value_internal.h"

/* Adds a path of several parts as pathlib joins them: an absolute one begins anew, and "." and "//" are left out. */
static char *join_path(char *path, const char *part)
{
	size_t size = path && part[0] != '/' ? strlen(path) : 0;
	char *joined = malloc(size + strlen(part) + 2);

	if (joined) {
		memcpy(joined, size ? path : "", size);
		if (size)
			joined[size++] = '/';
		memcpy(joined + size, part, strlen(part) + 1);
	}
	free(path);
	return joined;
}

static void tidy_path(char *path)
{
	char *to = path, *from = path;

	if (*from == '/') {
		*to++ = '/';
		/* POSIX lets exactly two mean something else. */
		if (from[1] == '/' && from[2] != '/')
			*to++ = '/';
	}
	while (*from) {
		size_t size = strcspn(from, "/");

		if (size && !(size == 1 && *from == '.')) {
			if (to != path && to[-1] != '/')
				*to++ = '/';
			memmove(to, from, size);
			to += size;
		}
		from += size;
		from += *from == '/';
	}
	if (to == path)
		*to++ = '.';
	*to = '\0';
}

/* Returns the path that the parts make, which the caller frees: _raw_paths of 3.12+, _parts to 3.11. */
static char *make_path(struct py_values *v, const struct py_object *o)
{
	bool raw = py_since(v, 12);
	struct py_part head, items = {0};
	struct py_object list;
	char *path = NULL;
	uint64_t at;

	if (!py_attribute(v, o, raw ? "_raw_paths" : "_parts", &at) || !py_look_at(v, at, &list) ||
	    strcmp(list.type.name, "list") != 0 || !py_part_read(v, &head, list.fields, 2))
		return NULL;
	if (head.words[0] <= v->limits->items && py_part_read(v, &items, head.words[1], head.words[0])) {
		for (size_t i = 0; i < head.words[0]; i++) {
			char *part = py_values_name(v, items.words[i]);

			if (part) {
				path = join_path(path, part);
			} else {
				free(path);
				path = NULL;
			}
			free(part);
			if (!path)
				break;
		}
		if (!head.words[0])
			path = strdup(".");
	}
	py_part_free(&items);
	py_part_free(&head);
	return path;
}

/* _str is there once somebody asked for it. */
bool py_write_path(struct py_values *v, const struct py_object *o)
{
	uint64_t text;
	char *path = py_attribute(v, o, "_str", &text) ? py_values_name(v, text) : NULL;

	if (!path && !strstr(o->type.name, "Windows"))
		path = make_path(v, o);
	if (!path)
		return py_write_instance(v, o);
	tidy_path(path);
	py_out_print(&v->out, "%s(", o->type.name);
	py_out_quoted(&v->out, (const uint8_t *)path, strlen(path), 1, PY_QUOTE_UTF8, false);
	py_out_text(&v->out, ")");
	free(path);
	return true;
}

// SPDX-License-Identifier: Apache-2.0
/* Keeps functions, paths and line tables once each, by reference counts. */
#include "symbols/function.h"

#include <stdlib.h>
#include <string.h>

#include "symbols/lines.h"

/* Most bytes of line tables that are held at a time; those of a whole standard library are some 10 MiB. */
#define LINES_MAX (64u << 20)

/* Name of a function whose name could not be read. */
static const char unnamed[] = "[unnamed]";

struct path_entry {
	const char *text; /* the path's */
	struct pysym_path *path;
};

struct function_entry {
	struct intern_bytes key; /* the function's */
	struct pysym_function *function;
};

void pysym_functions_init(struct pysym_functions *t, enum pysym_line_mode mode)
{
	*t = (struct pysym_functions){
		.mode = mode,
		.functions = INTERN_INIT(sizeof(struct function_entry), INTERN_BYTES),
		.paths = INTERN_INIT(sizeof(struct path_entry), INTERN_TEXT),
	};
}

void pysym_functions_free(struct pysym_functions *t)
{
	intern_free(&t->functions);
	intern_free(&t->paths);
}

static struct pysym_path *add_path(struct pysym_functions *t, const char *text)
{
	size_t size = strlen(text) + 1;
	struct pysym_path *path = malloc(sizeof(*path) + size);
	bool fresh;

	if (!path)
		return NULL;
	path->refs = 0;
	path->looked_at = false;
	path->last = (struct pysym_file){0};
	memcpy(path->text, text, size);
	if (intern_add(&t->paths, &(struct path_entry){path->text, path}, &fresh) == INTERN_NONE) {
		free(path);
		return NULL;
	}
	return path;
}

struct pysym_path *pysym_path_take(struct pysym_functions *t, const char *text)
{
	uint32_t i = intern_find(&t->paths, &text);
	struct pysym_path *path =
		i == INTERN_NONE ? add_path(t, text) : ((struct path_entry *)intern_item(&t->paths, i))->path;

	if (path)
		path->refs++;
	return path;
}

void pysym_path_drop(struct pysym_functions *t, struct pysym_path *path)
{
	if (--path->refs)
		return;
	intern_remove(&t->paths, intern_find(&t->paths, &(const char *){path->text}));
	free(path);
}

size_t pysym_lines_room(const struct pysym_functions *t)
{
	return LINES_MAX - t->lines_held;
}

static struct intern_bytes key_of(const struct pysym_function *function)
{
	return (struct intern_bytes){
		.bytes = &function->key,
		.size = sizeof(function->key) + function->key.name_size + function->lines_size,
	};
}

static struct pysym_function *new_function(const struct pysym_code_content *content, const struct pybpf_layout *layout,
					   struct pysym_path *path, const struct pysym_file *file)
{
	const char *name = content->name ? content->name : unnamed;
	uint32_t name_size = (uint32_t)strlen(name) + 1, lines_size = content->lines ? content->lines_size : 0;
	struct pysym_function *function = malloc(sizeof(*function) + name_size + lines_size);

	if (!function)
		return NULL;
	memset(function, 0, sizeof(*function));
	function->lines_size = lines_size;
	intern_init(&function->positions, sizeof(struct pysym_position), sizeof(int32_t));
	function->key.path = path;
	function->key.file = *file;
	function->key.first_line = content->first_line;
	function->key.name_size = name_size;
	function->key.code_adaptive = layout->code_adaptive;
	function->key.position_kind = layout->position_kind;
	function->key.line_kind = layout->line_kind;
	function->key.hidden = content->hidden;
	function->key.has_lines = content->lines != NULL;
	memcpy(function->bytes, name, name_size);
	if (lines_size)
		memcpy(function->bytes + name_size, content->lines, lines_size);
	return function;
}

struct pysym_function *pysym_function_take(struct pysym_functions *t, const struct pysym_code_content *content,
					   const struct pybpf_layout *layout, struct pysym_path *path,
					   const struct pysym_file *file)
{
	struct function_entry entry = {.function = new_function(content, layout, path, file)};
	struct pysym_function *function;
	bool fresh;
	uint32_t i;

	if (!entry.function)
		return NULL;
	entry.key = key_of(entry.function);
	i = intern_add(&t->functions, &entry, &fresh);
	if (!fresh)
		free(entry.function);
	if (i == INTERN_NONE)
		return NULL;
	function = ((struct function_entry *)intern_item(&t->functions, i))->function;
	if (fresh) {
		path->refs++;
		t->lines_held += function->lines_size;
	}
	function->refs++;
	return function;
}

void pysym_function_drop(struct pysym_functions *t, struct pysym_function *function)
{
	struct intern_bytes key = key_of(function);

	if (--function->refs)
		return;
	t->lines_held -= function->lines_size;
	intern_remove(&t->functions, intern_find(&t->functions, &key));
	pysym_path_drop(t, function->key.path);
	intern_free(&function->positions);
	free(function);
}

/* Returns the byte offset of the instruction in the bytecode, as line tables count. */
static int64_t bytecode_offset(const struct pysym_function_key *key, int32_t position)
{
	if (key->position_kind == PYBPF_POS_INSTR_PTR)
		return (int64_t)position - key->code_adaptive;
	return key->line_kind == PYBPF_LINES_PEP626 ? (int64_t)position * 2 : position;
}

static int32_t line_of(const struct pysym_function *function, enum pysym_line_mode mode, int32_t position)
{
	const struct pysym_function_key *key = &function->key;
	const uint8_t *lines = (const uint8_t *)function->bytes + key->name_size;
	int line;

	if (mode == PYSYM_LINES_NONE)
		return -1;
	if (mode == PYSYM_LINES_FIRST)
		return key->first_line;
	if (position == PYBPF_NO_POSITION || !key->has_lines)
		return -1;
	line = pysym_line((enum pybpf_line_kind)key->line_kind, lines, function->lines_size, key->first_line,
			  bytecode_offset(key, position));
	return line < 0 ? -1 : line;
}

static struct pysym_span span_of(const struct pysym_function *function, int32_t position)
{
	const struct pysym_function_key *key = &function->key;
	const uint8_t *lines = (const uint8_t *)function->bytes + key->name_size;
	struct pysym_span span;

	if (position == PYBPF_NO_POSITION || !key->has_lines || key->line_kind != PYBPF_LINES_PEP657 ||
	    !pysym_span(lines, function->lines_size, key->first_line, bytecode_offset(key, position), &span))
		return (struct pysym_span){0};
	/* What enters a function (RESUME) has an empty one. */
	if (span.end_line == span.line && span.end_column <= span.column)
		return (struct pysym_span){0};
	return span;
}

struct pysym_position *pysym_function_at(struct pysym_functions *t, struct pysym_function *function, int32_t position)
{
	struct pysym_position at = {
		.position = t->mode == PYSYM_LINES_CURRENT || t->mode == PYSYM_EXPRESSIONS ? position : 0,
		.cookie = UINT32_MAX,
	};
	uint32_t i = intern_find(&function->positions, &at);
	bool fresh;

	if (i == INTERN_NONE) {
		at.line = line_of(function, t->mode, position);
		if (t->mode == PYSYM_EXPRESSIONS)
			at.span = span_of(function, position);
		i = intern_add(&function->positions, &at, &fresh);
	}
	return i == INTERN_NONE ? NULL : intern_item(&function->positions, i);
}

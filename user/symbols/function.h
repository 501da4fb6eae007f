// SPDX-License-Identifier: Apache-2.0
/*
 * The contents of code objects. Thousands of processes run the same program: equal functions (name, file, line table,
 * and the lines of the positions that were seen) and equal paths are stored once, for as long as they are held.
 */
#ifndef SYMBOLS_FUNCTION_H
#define SYMBOLS_FUNCTION_H

#include <stdint.h>

#include "base/intern.h"
#include "pybpf.h"
#include "symbols/pysym.h"
#include "symbols/code_content.h"

/* A source path, as code objects contain it. */
struct pysym_path {
	uint32_t refs;
	bool looked_at;
	struct pysym_file last; /* as the last process had it that could be looked at */
	char text[];
};

struct pysym_position {
	int32_t position;
	int32_t line;
	uint32_t cookie;
	struct pysym_span span;
};

struct pysym_function {
	uint32_t refs;
	uint32_t lines_size;
	struct intern positions; /* struct pysym_position */
	/* Identifies the function, together with the bytes behind it. It has no padding. */
	struct pysym_function_key {
		struct pysym_path *path;
		struct pysym_file file;
		int32_t first_line;
		uint32_t name_size; /* with its NUL */
		uint16_t code_adaptive;
		uint8_t position_kind, line_kind;
		uint8_t hidden, has_lines;
		uint8_t pad[2];
	} key;
	char bytes[]; /* name, line table */
};
_Static_assert(sizeof(struct pysym_function_key) == 32, "pysym_function_key has no hidden padding");

struct pysym_functions {
	enum pysym_line_mode mode;
	struct intern functions; /* by their keys with the bytes behind them */
	struct intern paths;     /* by their texts */
	size_t lines_held;       /* bytes of line tables */
};

void pysym_functions_init(struct pysym_functions *t, enum pysym_line_mode mode);
/* Frees the tables, of which nothing is held any more. */
void pysym_functions_free(struct pysym_functions *t);

/* Returns the path with one more reference; NULL when memory is exhausted. */
struct pysym_path *pysym_path_take(struct pysym_functions *t, const char *text);
void pysym_path_drop(struct pysym_functions *t, struct pysym_path *path);

/* Returns the bytes of the longest line table that there is room for. */
size_t pysym_lines_room(const struct pysym_functions *t);

/*
 * Returns the function of that content with one more reference; without a name it is called "[unnamed]". The function
 * holds the path itself. NULL when memory is exhausted.
 */
struct pysym_function *pysym_function_take(struct pysym_functions *t, const struct pysym_code_content *content,
					   const struct pybpf_layout *layout, struct pysym_path *path,
					   const struct pysym_file *file);
void pysym_function_drop(struct pysym_functions *t, struct pysym_function *function);

static inline const char *pysym_function_name(const struct pysym_function *function)
{
	return function->bytes;
}

static inline const char *pysym_function_file(const struct pysym_function *function)
{
	return function->key.path->text + function->key.file.shown;
}

/* Returns what is known of a position in the function; valid until the next call. NULL when memory is exhausted. */
struct pysym_position *pysym_function_at(struct pysym_functions *t, struct pysym_function *function, int32_t position);

#endif

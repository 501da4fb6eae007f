// SPDX-License-Identifier: Apache-2.0
/* Names and places within the width of a terminal, for tables. */
#ifndef OUTPUT_TRUNCATE_H
#define OUTPUT_TRUNCATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "profile/groups.h"
#include "profile/profile.h"

/* The least columns of a table's last column; a narrower terminal wraps. */
#define OUTPUT_COLUMN_LEAST 16

/*
 * Shortens a name and its place so that both, and `between` columns more, fit into width. Both are printable, were
 * allocated, and are replaced; place may be empty, and then `between` is not counted. A place keeps its end,
 * a name both ends, and the place gives way first, down to a third of the width. Returns 0 or -ENOMEM.
 */
int output_truncate(char **name, char **place, size_t between, size_t width);

/* Returns the text escaped as by output_escaped(); the caller frees it. NULL: no memory. */
char *output_escaped_copy(const char *text);

/*
 * Writes a function "qualname (file.py)", or with by_line a line "file.py:LINE  qualname", with ": TEXT" of its
 * expression where that is known and has room, and a line feed, in at most width columns; 0: whole. A function's file
 * gives way to its name. Returns 0 or -ENOMEM.
 */
int output_group_truncated(const struct profile *p, const struct profile_group *group, bool by_line, size_t width,
			   FILE *out);

/* Between a function of the program's own and that of a library which it has called, directly or not. */
#define OUTPUT_VIA ", via "

struct output_pair {
	uint32_t first, second; /* groups; second may be PROFILE_NONE */
	const char *between;
	uint32_t more; /* that are like the second, and not named */
	bool yields;   /* the first gives way to the name of the second, which is left out otherwise */
};

/*
 * Returns a function or line as output_group_truncated() writes it, and behind it `between` and another one, if there
 * is one and width has room for its name; the caller frees it. 0: whole. NULL: no memory.
 */
char *output_pair_text(const struct profile *p, const struct profile_groups *groups, bool by_line,
		       const struct output_pair *pair, size_t width);

#endif

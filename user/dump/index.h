// SPDX-License-Identifier: Apache-2.0
/*
 * Finds threads of a process by what others say of them: a process may have as many threads as the system allows, each
 * of which waits for another one.
 */
#ifndef DUMP_INDEX_H
#define DUMP_INDEX_H

#include <stdint.h>

#include "base/intern.h"

enum dump_index_by {
	DUMP_BY_TID,
	DUMP_BY_INSIDE, /* TID in the process's namespace */
	DUMP_BY_IDENT,
	DUMP_BY_TSTATE,
	DUMP_BY_GIL_HELD,
	DUMP_BY_LOCK_HELD,
	DUMP_BY_LOCK_UNSURE, /* that they may have given back */
	DUMP_BY_INTERPRETER, /* of threads of Python */
	DUMP_INDEXES,
};

/* Zeroed: nothing is found. */
struct dump_index {
	struct intern tables[DUMP_INDEXES];
};

#define DUMP_INDEX_NONE SIZE_MAX

struct dump_process;

/*
 * Makes process->index anew: to be called whenever its threads have been read, or some were removed. Returns 0 or
 * -ENOMEM.
 */
int dump_index_make(struct dump_process *process);
void dump_index_free(struct dump_index *index);

/* Returns the first thread with that key and the number of such threads in *count; DUMP_INDEX_NONE: there is none. */
size_t dump_index_find(const struct dump_index *index, enum dump_index_by by, uint64_t key, size_t *count);

#endif

// SPDX-License-Identifier: Apache-2.0
/* The source files of a process's functions, read with its rights. */
#ifndef DUMP_SOURCES_H
#define DUMP_SOURCES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/intern.h"
#include "dump/dump.h"
#include "pybpf.h"
#include "symbols/stacks.h"

struct dump_sources {
	bool wanted;
	struct dump_process *out;
	struct pybpf_rights rights; /* of the process */
	struct intern files;        /* those that were looked at, by path */
	struct pysym *pysym;
};

void dump_sources_init(struct dump_sources *sources, bool wanted, const struct ps_row *row, struct dump_process *out);
void dump_sources_free(struct dump_sources *sources);

/*
 * Reads the source of a function's file, if it is the first of it; a stacks_on_first_use; arg: the struct dump_sources.
 * A file that was changed after the program began is left out: its lines may be others by now.
 */
int dump_sources_met(void *arg, const struct stacks_function *function);

/*
 * Gives each frame its line of source. Sources that do not contain the functions that were met are not used (see
 * session/sources/source_check.h). Returns 0 or -ENOMEM.
 */
int dump_cut_lines(const struct dump_sources *sources);

#endif

// SPDX-License-Identifier: Apache-2.0
/* What the files of core.h share: core.c is the process, core_list.c which Python it runs and what of it is missing. */
#ifndef DUMP_CORE_INTERNAL_H
#define DUMP_CORE_INTERNAL_H

#include <limits.h>

#include "base/core_file.h"
#include "base/intern.h"
#include "base/process_source.h"
#include "dump/core.h"

/* Most files that are open at a time: a helper may have few. */
#define FILES_OPEN 8

struct dump_core {
	struct core_file file;
	struct process_source source;
	char *name, *executable, *sysroot;
	char exe[PATH_MAX];
	/* For each mapping, the first one with its path. */
	size_t *firsts;
	/* For each of those, the descriptor of its file in a helper; INT_MIN: not open; or negative errno. */
	int *fds;
	/* Those whose files were opened last, in a circle of which next is to be used next. */
	size_t opened[FILES_OPEN], next;
	/* struct thread_key */
	struct intern by_tid, by_pointer;
};

/* Returns the file of a mapping, as a descriptor that stays open until the next call, or negative errno. */
int dump_core_file(struct dump_core *core, const struct core_map *map);

#endif

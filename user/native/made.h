// SPDX-License-Identifier: Apache-2.0
/*
 * Code that is in no file, made at run time: by JITs, and for callbacks. What a process has of it within 4 GiB is as
 * one file, so that a pc of 32 bits tells each instruction.
 */
#ifndef NATIVE_MADE_H
#define NATIVE_MADE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/procfs.h"
#include "native/ask.h"
#include "native/functions.h"

/* What such code is called where a name of a file stands. */
#define NATIVE_MADE "[unknown code]"
/* How names of what CPython makes for perf, one for each Python function (Python 3.12, -X perf), begin. */
#define NATIVE_MADE_TRAMPOLINE "py::"

/* Returns whether a mapping, which is executable, is of such code. */
bool native_is_made_map(const struct procfs_map *map);
/* Describes such a mapping. The process that has it has to be added: native_own_made(). */
void native_describe_made(const struct procfs_map *map, struct native_mapped *out);
/* Says whose the code is: `life` as in struct helper_subject. */
void native_own_made(struct native_mapped *mapped, uint64_t life);

/* Says of it what describe() of a file does. */
void native_made_about(const struct native_mapped *mapped, struct native_file *out);

/*
 * Finds the names of addresses, which are in order: by the jitdump that the process maps (jitdump.h), by its perf map
 * (perf_map.h) if it is the process's user's own, by what it has registered with debuggers (jit_images.h), and by the
 * instructions of CPython's trampolines. To be called in a helper.
 */
void native_find_made_names(pid_t pid, struct native_named *named, size_t count);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Greenlets that do not run, in a process's memory (greenlet 2.0 and later). Nothing lists them: the memory is searched
 * for their C++ parts. Where the fields are depends on the versions of greenlet and of Python, and is found by what
 * they have to be; an object that does not fit is not a greenlet.
 */
#ifndef SYMBOLS_GREENLET_H
#define SYMBOLS_GREENLET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "pybpf.h"
#include "symbols/walk/walk_user.h"

/* Bytes of a class's name that are kept, with its NUL. */
#define GREENLET_CLASS 64
/* Fields of the C++ part that are looked at, in words. */
#define GREENLET_WORDS 48

struct greenlet {
	uint64_t impl;   /* address of the C++ part */
	uint64_t object; /* of the greenlet, as id() has it */
	/* Where its C stack was, and the copy of as many bytes from there on as others have taken over. */
	uint64_t stack_start, stack_copy, stack_saved;
	/* What its thread state has while it runs; 0: the version has no such field. */
	uint64_t frame, cframe, data_stack[3], exc_info;
	bool is_main;                   /* it is what the thread began with */
	uint64_t words[GREENLET_WORDS]; /* as they were read */
	char class[GREENLET_CLASS];
};

/*
 * Calls take with each word-aligned address that may be that of a C++ part, until it returns non-zero, which is
 * returned then. *beyond: there is more memory than is searched. Returns 0 at the end, -ENOENT where greenlet is not
 * loaded, or negative errno.
 */
typedef int greenlet_take(void *arg, uint64_t impl);
int greenlet_search(pid_t pid, const struct walk_memory *memory, greenlet_take *take, void *arg, bool *beyond);

/* Reads a greenlet. Returns whether it is one that does not run and has begun. */
bool greenlet_read(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t impl,
		   struct greenlet *out);

/* Walks its stack as if its thread ran it. states: of that thread. Returns as walk_thread(). */
int greenlet_walk(const struct walk_memory *memory, const struct pybpf_layout *layout,
		  const struct pybpf_runtime *runtime, uint64_t thread_id, const struct walk_known_states *states,
		  const struct greenlet *greenlet, struct walk_stack *out);

#endif

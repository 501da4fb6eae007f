// SPDX-License-Identifier: Apache-2.0
/* What imports cost: the modules whose bodies ran, by who imported them. */
#ifndef PROFILE_IMPORTS_H
#define PROFILE_IMPORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "profile/profile.h"

/* Returns whether a frame is a function of Python's import system: of importlib or zipimport. */
bool profile_is_importlib(const struct profile *p, uint32_t frame);
/* Returns whether one of the frames is. */
bool profile_has_importlib(const struct profile *p);

struct profile_import {
	uint32_t parent; /* has a smaller index; of node 0: PROFILE_NONE */
	uint32_t file;   /* string: the module's file; 0: what the import system itself does for the parent's imports */
	uint64_t self;   /* of the module's body and of functions that it calls, other than imports */
	uint64_t total;  /* with the modules that it imports */
	uint32_t depth;  /* 1 for what no module imports whose body ran; 0 for node 0 */
	uint32_t first_child, next_sibling; /* or PROFILE_NONE; those with the largest total first */
};

struct profile_imports {
	struct profile_import *nodes; /* node 0 stands for all: its total is that of all imports, its self is 0 */
	uint32_t count;
	uint64_t of_threads; /* what the threads that import have in all; 0: threads are not distinguished */
};

/*
 * Builds the tree. An import is a module's body that the import system calls, or that another function calls but runpy,
 * which runs programs; Python 2.7's import system has no functions of Python. Returns 0 or -ENOMEM.
 */
int profile_imports_build(const struct profile *p, struct profile_imports *imports);
/* May be called on a zeroed struct. */
void profile_imports_free(struct profile_imports *imports);

#endif

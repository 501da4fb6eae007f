// SPDX-License-Identifier: Apache-2.0
/* Which native functions are how the interpreter runs Python's functions, and say no more than these. */
#ifndef CPYTHON_PLUMBING_H
#define CPYTHON_PLUMBING_H

#include <stdbool.h>

/* in_interpreter: the function is in the file that evaluates Python's frames. */
bool cpython_is_plumbing(const char *name, bool in_interpreter);

#endif

// SPDX-License-Identifier: Apache-2.0
/* Programs such as gunicorn or flask, of a few lines that call a package, which installers make of its entry points. */
#ifndef SYMBOLS_CONSOLE_SCRIPT_H
#define SYMBOLS_CONSOLE_SCRIPT_H

#include <stdbool.h>

/* Returns whether the path may be that of such a program: directly in a folder called bin, and not "*.py". */
bool console_script_may_be(const char *path);

/*
 * Returns whether the path is that of such a program, below a root directory, a descriptor: a small file in the bin
 * folder of a virtual environment or of an interpreter, /usr/local/bin or ~/.local/bin. What is in it is not read, so a
 * program as small that a person put there counts, too, unless a function of it is seen.
 */
bool console_script_is(int root, const char *path);

#endif

// SPDX-License-Identifier: Apache-2.0
/* Writes the names that the linker knows as people write them. */
#ifndef NATIVE_DEMANGLE_H
#define NATIVE_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Most bytes of a linker's name with its NUL; the longest of polars (Rust) has 1,241. libiberty takes C++ names to half
 * of its DEMANGLE_RECURSION_LIMIT, 1,024 bytes; Arrow's longest has 710.
 */
#define NATIVE_SYMBOL_MAX 2048

/* Bytes of a name that is shown, with its NUL: fewer than one in 100 of polars' are longer. */
#define NATIVE_NAME_MAX 256

/*
 * Writes the name that a function has in its source to out, NUL-terminated: C++ (Itanium ABI) and Rust (both schemes)
 * are demangled, without parameters and ABI tags, and with long lists of template arguments left out as <...>; a
 * version, and what
 * compilers put behind the name of a part of a function (.cold, .constprop.1), are cut off. What does not fit ends with
 * "...". Returns whether the name was demangled; other names stay as they are. To be called in a helper process
 * (helper.h): symbols are not trusted.
 */
bool native_demangle(const char *symbol, char *out, size_t size);

#endif

// SPDX-License-Identifier: Apache-2.0
/* Which names are those of secrets. */
#ifndef SYMBOLS_PY_SECRET_H
#define SYMBOLS_PY_SECRET_H

#include <stdbool.h>

/* Returns whether a variable, an attribute or a key of that name probably holds a secret. */
bool py_is_secret(const char *name);

#endif

// SPDX-License-Identifier: Apache-2.0
/* Reads the environment that Python has in os.environ, from a process that runs meanwhile. */
#ifndef SYMBOLS_ENVIRON_H
#define SYMBOLS_ENVIRON_H

#include <stddef.h>
#include <stdint.h>

#include "pybpf.h"
#include "symbols/walk/walk_user.h"

/*
 * Writes variables of the environment into out as /proc/PID/environ has them: NAME=VALUE, each with a NUL. interp: the
 * main interpreter. A variable that is not set, cannot be read, or has no room is left out. Returns the bytes written.
 */
size_t pysym_read_environ(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t interp,
			  const char *const *names, size_t count, char *out, size_t size);

#endif

// SPDX-License-Identifier: Apache-2.0
/* What pybpf does without in a Python that is newer than those that it knows. */
#ifndef CPYTHON_NEWER_H
#define CPYTHON_NEWER_H

#include <stddef.h>

#include "pybpf.h"

/* Room for the longest description. */
#define CPYTHON_LEFT_OUT_MAX 512

/*
 * Writes what profiles of such a Python lack, as a list of nouns, and what in them may be wrong; "" of a known version.
 * The debug offsets do not tell it, other fields of them contradict it, or it is a table of pybpf's own.
 */
void cpython_describe_left_out(const struct pybpf_layout *layout, char out[CPYTHON_LEFT_OUT_MAX]);

#endif

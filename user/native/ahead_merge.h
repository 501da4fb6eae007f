// SPDX-License-Identifier: Apache-2.0
/* Adds rows of single instructions to those of a table. */
#ifndef NATIVE_AHEAD_MERGE_H
#define NATIVE_AHEAD_MERGE_H

#include <stddef.h>

#include "native/ask_ahead.h"
#include "pybpf_native.h"

/*
 * Makes a table of an old one, whose rows are in order, and of new rows, in any order, where the old one has no rule.
 * Returns 0 or -ENOMEM; *out is freed by the caller, and has *count rows.
 */
int native_merge_ahead(const struct pybpf_native_row *old, size_t nr_old, struct native_ahead_row *rows, size_t nr_rows,
		       struct pybpf_native_row **out, size_t *count);

#endif

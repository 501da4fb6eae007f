// SPDX-License-Identifier: Apache-2.0
/* Where a frame has its variables. */
#ifndef SYMBOLS_PY_FRAME_H
#define SYMBOLS_PY_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "pybpf.h"

/* Returns where in a frame its variables are, an array of pointers that begins with the arguments. */
uint32_t py_frame_locals(const struct pybpf_layout *layout);
/* Returns the object that a slot has, 0 for none. */
uint64_t py_frame_object(const struct pybpf_layout *layout, uint64_t word);

#endif

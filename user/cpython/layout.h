// SPDX-License-Identifier: Apache-2.0
/*
 * Offsets of the fields of CPython's structs: checked-in tables to 3.12, the process's own _Py_DebugOffsets from 3.13.
 */
#ifndef CPYTHON_LAYOUT_H
#define CPYTHON_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "pybpf.h"

/* An offset in _PyRuntime that this build does not have. */
#define LAYOUT_NONE UINT32_MAX

/* The layout of one build, and the offsets that only user space needs, to find the first interpreter. */
struct layout_build {
	struct pybpf_layout layout;
	uint32_t runtime_interp_head;    /* bytes into _PyRuntime; 0 to 3.6, where interp_head is itself the anchor */
	uint32_t runtime_tstate_current; /* bytes into _PyRuntime (3.7-3.11, on x86-64), else LAYOUT_NONE */
	uint32_t version_hex;            /* PY_VERSION_HEX of the headers or of the process */
	char origin[96];                 /* where the offsets came from, for -v */
};

/* Bytes of _PyRuntime to pass to layout_from_debug_offsets(); fewer are fine if the table ends within them. */
#define LAYOUT_DEBUG_OFFSETS_MAX 2048

/*
 * Fills *out with the checked-in layout of MAJOR.MINOR (2.7, 3.6 to 3.12) for a release or debug build.
 * Returns 0, or -ENOENT when there is none.
 */
int layout_from_table(int major, int minor, bool debug_build, struct layout_build *out);

/* Takes out of a layout from a table what the release MAJOR.MINOR.micro has elsewhere; -1: which one is unknown. */
void layout_fit_release(struct layout_build *build, int micro);

/*
 * Reads a _Py_DebugOffsets from its first len bytes and validates it: cookie, version (3.13 or later; a minor
 * newer than the newest known is taken to have that one's table), every offset aligned and inside its struct's
 * size, every window within the limits of pybpf.h. Returns 0, or -EINVAL with one sentence in *error saying what
 * was found.
 */
int layout_from_debug_offsets(const uint8_t *bytes, size_t len, struct layout_build *out, struct error *error);

/* True if bytes begin with the cookie of a _Py_DebugOffsets. */
bool layout_has_debug_offsets(const uint8_t *bytes, size_t len);

#endif

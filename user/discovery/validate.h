// SPDX-License-Identifier: Apache-2.0
/* What the files share that check a layout against the memory of a process: validate*.c. */
#ifndef DISCOVERY_VALIDATE_H
#define DISCOVERY_VALIDATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "discovery/discovery.h"

struct validation {
	const struct discovery_python *python;
	struct error *error;
	size_t threads;       /* number of thread states that fit and have a thread id */
	size_t frames;        /* likewise, of frames of functions: validate_frames.c */
	size_t frames_looked; /* all frames that were looked at */
};

/* validate_memory.c */

/* Returns 0 or a negative errno, as remote_read() does. */
int validate_read(const struct validation *v, uint64_t addr, void *out, size_t size);
/* Returns whether CPython can have an object or a struct of its own at this address. */
bool validate_is_address(uint64_t addr);
/* Sets the error to a sentence that the memory contradicts the layout. Returns -EINVAL. */
int validate_contradict(const struct validation *v, const char *what, uint64_t addr, uint64_t value);
/* Sets the error to a sentence that memory cannot be read. Returns -EINVAL for memory that is not mapped, else err. */
int validate_unreadable(const struct validation *v, const char *what, uint64_t addr, int err);

/*
 * Each of the functions below returns 0, or a negative errno with a sentence in the validation's error.
 *
 * validate_fields.c: fields that no other field of a _Py_DebugOffsets contradicts when they are wrong.
 */

/* Checks the status and the data stack in the state of a thread that lives. Sets *runs: it is no longer being made. */
int validate_thread_fields(const struct validation *v, uint64_t tstate, bool *runs);
/* Checks the GIL and the counter of code objects of an interpreter. */
int validate_interpreter_fields(const struct validation *v, uint64_t interp);

/* validate_frames.c */

/*
 * Checks the frames that a thread runs, if the version is newer than those known: whether the owner tells functions
 * from other frames, and whether the position lies in the code object.
 */
int validate_thread_frames(struct validation *v, uint64_t tstate);

#endif

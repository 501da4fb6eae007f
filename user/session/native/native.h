// SPDX-License-Identifier: Apache-2.0
/* Native frames: has tables made of the files that the profiled processes map, and their functions named. */
#ifndef SESSION_NATIVE_NATIVE_H
#define SESSION_NATIVE_NATIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "native/walker.h"
#include "session/measure.h"

struct native_frames;
struct pybpf_thread_found;
struct session_native_state;

/* Returns what stacks are built with; NULL: without native frames. */
struct native_frames *session_native_frames(const struct session *s);

/* Returns whose instructions stacks distinguish. What is left out has no lines, and is not distinguished. */
enum pybpf_native_exact session_native_exact(const struct session_options *options);

/* Returns whether tables of what a process maps are still being made. Without native frames: false. */
bool session_native_is_pending(const struct session *s, uint64_t proc_id);
/* Finds the frames of a thread that sleeps; NOT_ASKED without native frames. They are valid until the next call. */
void session_native_follow(struct session *s, const struct pybpf_thread_found *found, struct native_walked *out);

/* Notes the time of a thread of Python that waited with this stack, for the account. */
void session_native_note_wait(struct session *s, uint64_t stack_id, uint64_t ns);

extern const struct session_measure session_native_measure;

#endif

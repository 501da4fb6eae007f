// SPDX-License-Identifier: Apache-2.0
/* Native frames: has tables made of the files that the profiled processes map, and their functions named. */
#ifndef SESSION_NATIVE_NATIVE_H
#define SESSION_NATIVE_NATIVE_H

#include "session/measure.h"

struct native_frames;
struct session_native_state;

/* Returns what stacks are built with; NULL: without native frames. */
struct native_frames *session_native_frames(const struct session *s);

extern const struct session_measure session_native_measure;

#endif

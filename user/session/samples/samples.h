// SPDX-License-Identifier: Apache-2.0
/* Samples: of threads that run, or of events. */
#ifndef SESSION_SAMPLES_H
#define SESSION_SAMPLES_H

struct session_measure;

extern const struct session_measure session_samples_measure;

#endif

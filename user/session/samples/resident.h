// SPDX-License-Identifier: Apache-2.0
/* Resident memory by the stacks that hold it: --mode=memory. */
#ifndef SESSION_RESIDENT_H
#define SESSION_RESIDENT_H

struct session_measure;

extern const struct session_measure session_resident_measure;

#endif

// SPDX-License-Identifier: Apache-2.0
/* Waits that are not in the profile, or not all of them. */
#ifndef SESSION_LEFT_OUT_H
#define SESSION_LEFT_OUT_H

struct session_measure;

extern const struct session_measure session_left_out_measure;

#endif

// SPDX-License-Identifier: Apache-2.0
/* The values of events that are sampled in place of the timer. */
#ifndef SESSION_EVENT_VALUES_H
#define SESSION_EVENT_VALUES_H

struct session_measure;

extern const struct session_measure session_event_values_measure;

#endif

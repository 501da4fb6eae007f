// SPDX-License-Identifier: Apache-2.0
/* Everything that this host offers, and a trial of the sampler. */
#ifndef SESSION_DOCTOR_H
#define SESSION_DOCTOR_H

#include <stdio.h>

/* Prints the report. Returns 0 when the main job can run, negative errno when not. */
int session_doctor(FILE *out);

#endif

// SPDX-License-Identifier: Apache-2.0
/* Everything that this host offers, and a trial of the sampler. */
#ifndef DOCTOR_TRIAL_H
#define DOCTOR_TRIAL_H

#include <stdio.h>

/* Prints the report. Returns 0 when the main job can run, negative errno when not. */
int session_doctor(FILE *out);

#endif

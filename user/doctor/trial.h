// SPDX-License-Identifier: Apache-2.0
/* All of doctor's checks, and a trial run of the sampler. */
#ifndef DOCTOR_TRIAL_H
#define DOCTOR_TRIAL_H

#include <stdio.h>

/* Prints the report to out. Returns 0 if the main job can run, negative errno if not. */
int session_doctor(FILE *out);

#endif

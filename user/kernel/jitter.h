/* SPDX-License-Identifier: Apache-2.0 */
/* Rates that differ from one stretch of a run to the next, so that the timer stays in step with no program. */
#ifndef KERNEL_JITTER_H
#define KERNEL_JITTER_H

/* Zeroed before its first use, and to begin anew. */
struct kernel_jitter {
	double shift; /* of the first stretch of a pair, as a share of the rate, while that lasts; else 0 */
	double begin; /* of the stretch, in s of CLOCK_MONOTONIC */
};

/*
 * Draws the next stretch, which begins now (CLOCK_MONOTONIC, s). freq: the wanted rate, Hz. Returns its rate, in Hz,
 * and in *seconds how long it is to last. Stretches come in pairs: the second makes up for the rate of the first, for
 * as long as that has lasted in truth. A change of the rate is taken to discard half a period.
 */
double kernel_draw_rate(struct kernel_jitter *jitter, double freq, double now, double *seconds);

#endif

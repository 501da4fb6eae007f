// SPDX-License-Identifier: Apache-2.0
#include "kernel/jitter.h"

#include <math.h>
#include <stdint.h>
#include <sys/random.h>

/* How many of its own periods a stretch shifts the timer by, at most: with several, a program in step with it is met at
 * each of its moments. */
#define SHIFT_PERIODS 4
/* The share of the rate by which a stretch differs at most. */
#define SHARE_MAX 0.05
/* Fewest ticks, and shortest time, of a stretch. */
#define TICKS   64
#define SECONDS 1.0

/* Returns a random number in [0, 1). */
static double random_share(void)
{
	uint32_t word = 0;

	if (getrandom(&word, sizeof(word), GRND_NONBLOCK) != sizeof(word))
		return 0.5;
	return word / 4294967296.0;
}

double kernel_draw_rate(struct kernel_jitter *jitter, double freq, double now, double *seconds)
{
	double lasts = fmax(TICKS / freq, SECONDS) * (0.75 + 0.5 * random_share()), shift;

	if (jitter->shift) {
		shift = -jitter->shift * (now - jitter->begin) / lasts;
		shift = fmax(-SHARE_MAX, fmin(shift, SHARE_MAX));
		jitter->shift = 0;
	} else {
		shift = fmin(SHARE_MAX, SHIFT_PERIODS / (freq * lasts)) * (2 * random_share() - 1);
		jitter->shift = shift;
	}
	jitter->begin = now;
	*seconds = lasts;
	return freq * (1 + shift) + 0.5 / lasts;
}

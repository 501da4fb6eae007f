// SPDX-License-Identifier: Apache-2.0
/* Clocks as plain numbers. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Return the clock's time, in nanoseconds and in seconds. */
uint64_t clock_ns(clockid_t clock);
double clock_s(clockid_t clock);

#endif

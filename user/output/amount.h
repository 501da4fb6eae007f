// SPDX-License-Identifier: Apache-2.0
/* Values with units for people. */
#ifndef OUTPUT_AMOUNT_H
#define OUTPUT_AMOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "profile/profile.h"

/* Room for an amount, with its NUL. */
#define OUTPUT_AMOUNT_MAX 32

/*
 * Writes a value of the measure: times as "1.234 s", "12.3 ms" or "45 us", bytes as "1.5 MiB", all others as the number
 * alone. Returns out.
 */
const char *output_amount(const struct profile_measure *measure, uint64_t value, char out[OUTPUT_AMOUNT_MAX]);
/* Likewise, writes a time: what is shorter than 1 us, and not 0, as "1 us". */
const char *output_duration(uint64_t ns, char out[OUTPUT_AMOUNT_MAX]);
/* Writes a number of bytes as "17 B" or "1.5 MiB". Returns out. */
const char *output_bytes(uint64_t bytes, char out[OUTPUT_AMOUNT_MAX]);
/* Returns whether output_amount() writes values of the measure with a unit. */
bool output_amount_has_unit(const struct profile_measure *measure);
/* Returns why a profile has no function to show: the beginning of a sentence. */
const char *output_nothing(const struct profile *profile);

#endif

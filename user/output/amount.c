// SPDX-License-Identifier: Apache-2.0
/* Values with units for people. */
#include "output/amount.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char bytes_unit[] = "bytes";

bool output_amount_has_unit(const struct profile_measure *measure)
{
	return strcmp(measure->unit, PROFILE_UNIT_TIME) == 0 || strcmp(measure->unit, bytes_unit) == 0;
}

static void write_time(uint64_t us, char out[OUTPUT_AMOUNT_MAX])
{
	if (us < 1000)
		snprintf(out, OUTPUT_AMOUNT_MAX, "%" PRIu64 " us", us);
	else if (us < 1000 * 1000)
		snprintf(out, OUTPUT_AMOUNT_MAX, "%.1f ms", (double)us / 1e3);
	else
		snprintf(out, OUTPUT_AMOUNT_MAX, "%.3f s", (double)us / 1e6);
}

const char *output_duration(uint64_t ns, char out[OUTPUT_AMOUNT_MAX])
{
	uint64_t us = (ns + 500) / 1000;

	write_time(us ?: ns != 0, out);
	return out;
}

const char *output_bytes(uint64_t bytes, char out[OUTPUT_AMOUNT_MAX])
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double amount = (double)bytes / 1024;
	size_t unit = 0;

	for (; amount >= 1024 && unit + 1 < sizeof(units) / sizeof(*units); unit++)
		amount /= 1024;
	if (bytes < 1024)
		snprintf(out, OUTPUT_AMOUNT_MAX, "%" PRIu64 " B", bytes);
	else
		snprintf(out, OUTPUT_AMOUNT_MAX, "%.1f %s", amount, units[unit]);
	return out;
}

const char *output_amount(const struct profile_measure *measure, uint64_t value, char out[OUTPUT_AMOUNT_MAX])
{
	if (strcmp(measure->unit, PROFILE_UNIT_TIME) == 0)
		write_time(value, out);
	else if (strcmp(measure->unit, bytes_unit) == 0)
		output_bytes(value, out);
	else
		snprintf(out, OUTPUT_AMOUNT_MAX, "%" PRIu64, value);
	return out;
}

const char *output_nothing(const struct profile *profile)
{
	const char *name = profile_get_measure(profile).name;
	size_t count;

	profile_samples(profile, &count);
	if (!strcmp(name, "samples"))
		return "No sample has Python frames";
	if (!strcmp(name, "gil") && !count)
		return "No thread waited for the GIL";
	return "Nothing with Python frames was measured";
}

// SPDX-License-Identifier: Apache-2.0
/* Options that take bytes with a unit. */
#include <math.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/options.h"

/* What is beyond fits into no uint64_t. */
#define TOO_MUCH 0x1p64

/* Parses bytes with a unit. Returns 0 or -1. */
static int parse_size(const char *text, uint64_t *bytes)
{
	static const struct {
		const char *name;
		unsigned shift;
	} units[] = {{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
	size_t number = strspn(text, "0123456789.");
	char digits[32];
	double value;

	if (!number || number >= sizeof(digits))
		return -1;
	memcpy(digits, text, number);
	digits[number] = '\0';
	if (cli_number(digits, 0, 1e15, &value))
		return -1;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (strcmp(text + number, units[i].name))
			continue;
		value = ldexp(value, (int)units[i].shift);
		*bytes = value < TOO_MUCH ? (uint64_t)value : UINT64_MAX;
		return 0;
	}
	return -1;
}

int cli_option_size(const struct cli_option *option, const char *value, uint64_t least, uint64_t most, uint64_t *bytes)
{
	if (!parse_size(value, bytes) && *bytes >= least && *bytes <= most)
		return 0;
	return cli_usage("%s %s: not a size; it takes one from %.0fMiB to %.0fTiB, such as 500MiB or 2GiB",
			 cli_option_spelling(option), value, ldexp((double)least, -20), ldexp((double)most, -40));
}

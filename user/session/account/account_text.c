// SPDX-License-Identifier: Apache-2.0
#include "session/account/account_text.h"

#include <inttypes.h>

void session_print_grouped(uint64_t number, FILE *out)
{
	uint64_t part = 1;

	while (number / part >= 1000)
		part *= 1000;
	fprintf(out, "%" PRIu64, number / part);
	for (part /= 1000; part; part /= 1000)
		fprintf(out, ",%03" PRIu64, number / part % 1000);
}

// SPDX-License-Identifier: Apache-2.0
/* What values are, in names that stores of profiles take. */
#include "output/type_name.h"

#include <ctype.h>
#include <string.h>

char *output_type_name(const char *name)
{
	char *copy = strdup(name);

	for (char *c = copy; c && *c; c++)
		*c = (char)(isalnum((unsigned char)*c) || strchr("./", *c) ? *c : '_');
	return copy;
}

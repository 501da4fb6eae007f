// SPDX-License-Identifier: Apache-2.0
/* The saved profile, .pybpf, as one of the output formats. */
#include "output/output.h"
#include "profile/saved.h"

int output_pybpf(const struct profile *p, const struct output_options *options, FILE *out)
{
	(void)options;
	return profile_save(p, out);
}

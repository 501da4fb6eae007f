// SPDX-License-Identifier: Apache-2.0
/* Describes the run in its profile: host and time, the unit of values, and the account of all samples. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/utsname.h>

#include "session/account/account.h"
#include "session/internal.h"

int session_describe(const struct session *s, const struct session_account *account, struct profile *profile)
{
	struct profile_measure values = {0};
	char cpus[16], start[24];
	struct utsname machine = {0};
	const char *facts[][2] = {
		{PROFILE_FACT_VERSION, PYBPF_VERSION},
		{PROFILE_FACT_HOST, s->options.host ?: machine.nodename},
		{PROFILE_FACT_KERNEL, machine.release},
		{PROFILE_FACT_ARCH, machine.machine},
		{PROFILE_FACT_CPUS, cpus},
		{PROFILE_FACT_START, start},
	};
	int err;

	session_measures_describe(s, account, &values);
	err = profile_set_measure(profile, &values);
	uname(&machine);
	snprintf(cpus, sizeof(cpus), "%d", kernel_get_sampled_cpus(s->kernel));
	snprintf(start, sizeof(start), "%" PRIu64, s->start_ns);
	for (size_t i = 0; i < sizeof(facts) / sizeof(*facts) && !err; i++)
		err = profile_set_fact(profile, facts[i][0], facts[i][1]);
	return err ?: session_account_keep(account, profile);
}

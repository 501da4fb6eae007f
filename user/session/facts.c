// SPDX-License-Identifier: Apache-2.0
/* Describes the run in its profile: host and time, the unit of values, and the account of all samples. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/utsname.h>

#include "session/account.h"
#include "session/internal.h"

#define NS_PER_S 1000000000u

int session_describe(const struct session *s, const struct session_account *account, struct profile *profile)
{
	const struct profile_measure events = {.name = account->event, .unit = account->unit ?: "count"};
	/* The kernel keeps a timer of cycles to the given frequency, too, so the period holds for both timers. */
	const struct profile_measure samples = {
		.name = "samples",
		.unit = "count",
		.period_ns = account->freq ? NS_PER_S / account->freq : 0,
	};
	static const char *const names[] = {
		[SESSION_WALL] = "wall", [SESSION_OFFCPU] = "offcpu", [SESSION_GIL] = "gil"};
	const struct profile_measure time = {
		.name = s->options.gil_holders ? "gil_holders" : names[s->options.mode] ?: "",
		.unit = PROFILE_UNIT_TIME,
	};
	char cpus[16], start[24];
	struct utsname host = {0};
	const char *facts[][2] = {
		{PROFILE_FACT_VERSION, PYBPF_VERSION},
		{PROFILE_FACT_HOST, host.nodename},
		{PROFILE_FACT_KERNEL, host.release},
		{PROFILE_FACT_ARCH, host.machine},
		{PROFILE_FACT_CPUS, cpus},
		{PROFILE_FACT_START, start},
	};
	int err = profile_set_measure(profile, account->event                   ? &events
					       : s->options.mode == SESSION_CPU ? &samples
										: &time);

	uname(&host);
	snprintf(cpus, sizeof(cpus), "%d", kernel_get_sampled_cpus(s->kernel));
	snprintf(start, sizeof(start), "%" PRIu64, s->start_ns);
	for (size_t i = 0; i < sizeof(facts) / sizeof(*facts) && !err; i++)
		err = profile_set_fact(profile, facts[i][0], facts[i][1]);
	return err ?: session_account_keep(account, profile);
}

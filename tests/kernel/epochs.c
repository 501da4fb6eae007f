// SPDX-License-Identifier: Apache-2.0
/*
 * Samples a process and takes the profile in parts, as a run without end does. Prints a line of JSON for each part, and
 * the account.
 *
 *   epochs PID SECONDS RATE PERIOD_MS FORGET_EVERY MAX_STACKS [FEATURES]
 *
 * FORGET_EVERY: after so many parts what is known begins anew; 0: never. FEATURES: that this kernel is to do without.
 */
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "cli/services.h"
#include "discovery/discovery.h"
#include "helper/helper.h"
#include "session/account.h"
#include "session/internal.h"

static int print_part(const struct profile *profile, void *unused)
{
	size_t count, events;
	const struct profile_sample *samples = profile_samples(profile, &count);
	uint64_t total = 0;

	(void)unused;
	for (size_t i = 0; i < count; i++)
		total += samples[i].value;
	profile_events(profile, &events);
	printf("{\"samples\": %" PRIu64 ", \"distinct\": %zu, \"events\": %zu, \"bytes\": %zu}\n", total, count, events,
	       mallinfo2().uordblks);
	return fflush(stdout) ? -EIO : 0;
}

static int take_what_came(struct session *s)
{
	int err;

	do
		err = session_consume(s);
	while (err > 0);
	return err ?: (session_do_periodic_work(s) < 0 ? -EIO : 0);
}

static int run(struct session *s, double end, double period, unsigned long forget_every)
{
	const struct timespec pause = {.tv_nsec = 10000000};
	double next = clock_s(CLOCK_MONOTONIC) + period;
	unsigned long parts = 0;
	int err = 0;

	while (!err && clock_s(CLOCK_MONOTONIC) < end) {
		nanosleep(&pause, NULL);
		err = take_what_came(s);
		if (err || clock_s(CLOCK_MONOTONIC) < next)
			continue;
		parts++;
		err = session_end_epoch(s, forget_every && parts % forget_every == 0, print_part, NULL);
		next = clock_s(CLOCK_MONOTONIC) + period;
	}
	return err;
}

int main(int argc, char **argv)
{
	struct session_options options = SESSION_OPTIONS_DEFAULT;
	struct session_account account;
	const struct profile *profile;
	struct discovery *known;
	struct session *s;
	uint32_t pid;
	int err;

	if (argc < 7 || argc > 8)
		return 2;
	pid = (uint32_t)atoi(argv[1]);
	options.freq = (unsigned)atoi(argv[3]);
	options.rolling = true;
	options.threads = true;
	options.times = true;
	options.max_stacks = (uint32_t)atoi(argv[6]);
	options.disabled_features = argv[7];
	known = discovery_new();
	if (!known || helper_start(&cli_services, known))
		return 1;
	discovery_free(known);
	s = session_new(&options);
	if (!s)
		return 1;
	err = session_follow(s, &pid, 1);
	err = err ?: session_attach(s);
	if (!err)
		puts("ready");
	fflush(stdout);
	err = err ?: run(s, clock_s(CLOCK_MONOTONIC) + atof(argv[2]), atof(argv[4]) / 1000, strtoul(argv[5], NULL, 10));
	session_detach(s);
	err = err ?: session_collect(s, &profile, &account);
	err = err ?: print_part(profile, NULL);
	if (!err)
		session_account_json(&account, stdout);
	session_free(s);
	helper_stop();
	return err ? 1 : 0;
}

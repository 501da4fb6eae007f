// SPDX-License-Identifier: Apache-2.0
/*
 * Samples a process and takes the profile in parts, as a run without end does. Prints a line of JSON for each part, and
 * the account.
 *
 *   epochs PID SECONDS RATE PERIOD_MS FORGET_EVERY MAX_STACKS [FEATURES [MODE]]
 *
 * FORGET_EVERY: after so many parts what is known begins anew; 0: never. FEATURES: that this kernel is to do without.
 * MODE: wall or gil: a line has when the part ended, and its samples: microseconds, waits, and the last two frames.
 */
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <bpf/bpf.h>

#include "base/clock.h"
#include "cli/services.h"
#include "discovery/discovery.h"
#include "helper/helper.h"
#include "kernel/internal.h"
#include "session/account/account.h"
#include "session/internal.h"

static const char *name_of(const struct profile *p, uint32_t stack)
{
	return stack == PROFILE_ROOT ? ""
				     : profile_string(p, profile_frame_at(p, profile_stack_at(p, stack)->frame)->name);
}

static void print_sample(const struct profile *p, const struct profile_sample *sample)
{
	uint32_t below = sample->stack == PROFILE_ROOT ? PROFILE_ROOT : profile_stack_at(p, sample->stack)->parent;

	printf("{\"tid\": %d, \"us\": %" PRIu64 ", \"count\": %" PRIu64 ", \"leaf\": \"%s\", \"below\": \"%s\"}",
	       profile_thread_at(p, sample->thread)->tid, sample->value, sample->count, name_of(p, sample->stack),
	       name_of(p, below));
}

static int print_waits(const struct profile *profile, void *arg)
{
	const struct session *s = arg;
	size_t count;
	const struct profile_sample *samples = profile_samples(profile, &count);

	printf("{\"end_ns\": %" PRIu64 ", \"samples\": [", s->detach_ns ? s->detach_ns : s->epoch_end_ns);
	for (size_t i = 0; i < count; i++) {
		fputs(i ? ", " : "", stdout);
		print_sample(profile, &samples[i]);
	}
	puts("]}");
	return fflush(stdout) ? -EIO : 0;
}

static size_t count_keys(const struct bpf_map *map)
{
	struct pybpf_code_key key, *last = NULL;
	size_t count = 0;

	while (!bpf_map_get_next_key(bpf_map__fd(map), last, &key)) {
		last = &key;
		count++;
	}
	return count;
}

static int print_part(const struct profile *profile, void *arg)
{
	const struct session *s = arg;
	size_t count, events,
		codes = count_keys(s->kernel->skel->maps.codes) + count_keys(s->kernel->skel->maps.codes_2);
	const struct profile_sample *samples = profile_samples(profile, &count);
	uint64_t total = 0;

	for (size_t i = 0; i < count; i++)
		total += samples[i].value;
	profile_events(profile, &events);
	printf("{\"samples\": %" PRIu64 ", \"distinct\": %zu, \"events\": %zu, \"bytes\": %zu, \"codes\": %zu}\n",
	       total, count, events, mallinfo2().uordblks, codes);
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

static int (*printer_of(const struct session *s))(const struct profile *, void *)
{
	return s->options.mode == SESSION_CPU ? print_part : print_waits;
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
		err = session_end_epoch(s, forget_every && parts % forget_every == 0, printer_of(s), s);
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

	if (argc < 7 || argc > 9)
		return 2;
	pid = (uint32_t)atoi(argv[1]);
	options.freq = (unsigned)atoi(argv[3]);
	options.rolling = true;
	options.threads = true;
	options.times = true;
	options.max_stacks = (uint32_t)atoi(argv[6]);
	options.disabled_features = argv[7];
	if (argc == 9) {
		options.mode = strcmp(argv[8], "gil") ? SESSION_WALL : SESSION_GIL;
		options.times = false;
	}
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
	err = err ?: printer_of(s)(profile, s);
	if (!err)
		session_account_json(&account, stdout);
	session_free(s);
	helper_stop();
	return err ? 1 : 0;
}

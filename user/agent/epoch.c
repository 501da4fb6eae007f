// SPDX-License-Identifier: Apache-2.0
/* Ends epochs: takes their samples from the session, describes them, and hands them to the sinks. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "agent/internal.h"
#include "base/beyond.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/procfs.h"
#include "profile/edit.h"

/* An epoch is longer or shorter than the options say by at most this share, at random. */
#define LENGTH_SHARE 0.2
/* An epoch that is longer than planned by more than this share is late. */
#define LATE_SHARE 0.05
/* After this many epochs all stacks and code objects are forgotten; those still in use are announced again. */
#define GENERATION_EPOCHS 10
/* Most stacks of samples that are taken before their epoch ends; a stack takes some 100 bytes with its frames. */
#define HELD_STACKS_MAX 200000

/* Returns a random number from -1 to 1; 0 where the kernel has none. */
static double random_share(void)
{
	uint32_t word = 0;

	if (getrandom(&word, sizeof(word), GRND_NONBLOCK) != sizeof(word))
		return 0;
	return word / 2147483648.0 - 1;
}

static void begin_epoch(struct agent *a, double now)
{
	double share = a->options.fixed_epochs ? 0 : LENGTH_SHARE * random_share();

	a->begin = now;
	/* Handing on the previous epoch has taken some time since `now`. */
	a->begin_ns = clock_ns(CLOCK_REALTIME) - (uint64_t)((clock_s(CLOCK_MONOTONIC) - now) * 1e9);
	a->end = now + a->options.epoch_s * (1 + share);
	a->cpu_begin_s = agent_cpu_s();
	a->least = a->most = a->metrics.divisor;
}

void agent_begin_epochs(struct agent *a)
{
	begin_epoch(a, clock_s(CLOCK_MONOTONIC));
}

static int keep(const struct profile *profile, void *arg)
{
	const struct profile_edit edit = {.no_account = true};
	struct agent *a = arg;
	struct error error;

	a->held = a->held ?: profile_new();
	if (!a->held)
		return -ENOMEM;
	return profile_edit_add(a->held, profile, &edit, &error) ?: agent_add_to_pulled(a, profile);
}

/* Returns whether the kernel's table of stacks is half full, beyond which some of them find no place. */
static bool is_half_full(const struct agent *a)
{
	uint64_t samples, stacks;

	session_progress(a->session, &samples, &stacks);
	return stacks * 2 > a->options.max_stacks;
}

int agent_take_samples(struct agent *a, bool forget)
{
	a->generation = forget ? 0 : a->generation;
	/* session_end_epoch() has reported its errors. */
	return session_end_epoch(a->session, forget, keep, a) ? -EIO : 0;
}

int agent_hold(struct agent *a)
{
	/* Memory is bounded: beyond that many stacks, samples are lost, and counted. */
	if (!is_half_full(a) || (a->held && profile_stack_count(a->held) > HELD_STACKS_MAX))
		return 0;
	return agent_take_samples(a, true);
}

struct session_account agent_account_since(const struct session_account *now, const struct session_account *before)
{
	struct session_account since = {.source = now->source, .freq = now->freq};

	for (int i = 0; i < PYBPF_NR_COUNTERS; i++)
		since.counters[i] = beyond(now->counters[i], before->counters[i]);
	since.unsent = beyond(now->unsent, before->unsent);
	since.lost = beyond(now->lost, before->lost);
	since.taken = beyond(now->taken, before->taken);
	since.python = beyond(now->python, before->python);
	since.has_states = now->has_states;
	since.lost_time_ns = beyond(now->lost_time_ns, before->lost_time_ns);
	since.lost_threads = beyond(now->lost_threads, before->lost_threads);
	for (int i = 0; i < PYBPF_NR_STATES; i++)
		since.state_ns[i] = beyond(now->state_ns[i], before->state_ns[i]);
	return since;
}

int agent_describe(struct agent *a, const struct session_account *account, uint64_t begin_ns, struct profile *profile)
{
	char start[24], weight[32];
	int err = session_describe_epochs(a->session, account, profile);

	snprintf(start, sizeof(start), "%" PRIu64, begin_ns);
	err = err ?: profile_set_fact(profile, PROFILE_FACT_START, start);
	if (a->most == 1 || err)
		return err;
	if (a->least == a->most)
		snprintf(weight, sizeof(weight), "%u", a->most);
	else
		snprintf(weight, sizeof(weight), "%u, %u", a->least, a->most);
	return profile_set_fact(profile, PROFILE_FACT_WEIGHT, weight);
}

static void tell_epoch(const struct agent *a, const struct session_account *account)
{
	time_t begin = (time_t)(a->begin_ns / 1000000000);
	const struct agent_metrics *m = &a->metrics;
	char text[32] = "";
	struct tm tm;

	if (gmtime_r(&begin, &tm))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &tm);
	log_info("epoch of %s, %.1f s: %" PRIu64 " samples taken, %" PRIu64
		 " lost; pybpf took %.2f %% of a CPU and %.1f MiB",
		 text, m->epoch_s, account->taken, account->lost, 100 * m->epoch_cpu_s / m->epoch_s,
		 (double)(m->rss_bytes + m->map_bytes) / (1 << 20));
}

/* Says what of the time of threads an epoch lacks. */
static void tell_lost_time(const struct session_account *account)
{
	if (account->lost_time_ns || account->lost_threads)
		log_warn("an epoch lacks %.3f s of waits, and %" PRIu64
			 " threads: there was no room for them in the kernel's tables",
			 (double)account->lost_time_ns / 1e9, account->lost_threads);
}

static void measure_cost(struct agent *a, const struct session_account *account)
{
	struct agent_metrics *m = &a->metrics;
	uint64_t kib = 0;

	procfs_rss(getpid(), &kib);
	m->epochs++;
	m->asked += account->counters[PYBPF_COUNT_ASKED];
	m->taken += account->taken;
	m->lost += account->lost;
	m->lost_time_ns += account->lost_time_ns;
	m->lost_threads += account->lost_threads;
	m->cpu_s = agent_cpu_s();
	m->epoch_cpu_s = m->cpu_s - a->cpu_begin_s;
	m->rss_bytes = kib * 1024;
	m->map_bytes = session_get_map_bytes(a->session);
}

/* One that fails keeps the epoch from no other. Returns 0, or the first one's negative errno. */
static int give_to_sinks(struct agent *a, const struct agent_epoch *epoch)
{
	int err = 0;

	for (size_t i = 0; i < a->nr_sinks; i++) {
		int failed = a->sinks[i]->take ? a->sinks[i]->take(a, epoch) : 0;

		err = err ?: failed;
	}
	return err;
}

/* Hands the epoch on that ended at a time. account: of the session, up to now. */
static int hand_on(struct agent *a, double end, const struct session_account *account)
{
	struct session_account of_epoch = agent_account_since(account, &a->account);
	struct agent_epoch epoch = {.begin_ns = a->begin_ns, .length_ns = (uint64_t)((end - a->begin) * 1e9)};
	struct profile *profile = a->held ?: profile_new();
	int err = profile ? 0 : -ENOMEM;

	a->held = NULL;
	a->account = *account;
	of_epoch.duration_s = a->metrics.epoch_s = end - a->begin;
	err = err ?: agent_describe(a, &of_epoch, a->begin_ns, profile);
	epoch.profile = profile;
	if (err)
		log_error("cannot finish an epoch: %s", strerror(-err));
	else
		err = give_to_sinks(a, &epoch);
	profile_free(profile);
	measure_cost(a, &of_epoch);
	tell_epoch(a, &of_epoch);
	tell_lost_time(&of_epoch);
	return err;
}

int agent_end_epoch(struct agent *a)
{
	double end = clock_s(CLOCK_MONOTONIC);
	struct session_account account;
	int err;

	if (end - a->begin > (a->end - a->begin) * (1 + LATE_SHARE)) {
		a->metrics.late_epochs++;
		log_warn("an epoch took %.1f s in place of %.1f s: the machine was busy, or asleep", end - a->begin,
			 a->end - a->begin);
	}
	a->generation++;
	err = session_count_samples(a->session, &account);
	if (err)
		log_error("cannot read the counters of the kernel: %s", strerror(-err));
	err = err ?: agent_take_samples(a, is_half_full(a) || a->generation >= GENERATION_EPOCHS);
	end = session_get_epoch_end(a->session);
	session_count_states(a->session, &account);
	err = err ?: hand_on(a, end, &account);
	if (err)
		return err;
	agent_adapt_rate(a);
	begin_epoch(a, end);
	return 0;
}

int agent_finish(struct agent *a)
{
	const double end = session_get_epoch_end(a->session);
	const struct profile *profile;
	struct session_account account;
	struct profile_measure measure;
	int err = session_collect(a->session, &profile, &account);

	if (err)
		return err;
	/*
	 * The measure of this last profile is complete, and that of what was taken before was not. Clients, which wait,
	 * are told of the end.
	 */
	agent_drop_pulled(a);
	measure = profile_get_measure(profile);
	err = a->held ? profile_set_measure(a->held, &measure) : 0;
	err = err ?: keep(profile, a);
	if (err)
		log_error("cannot finish the last epoch: %s", strerror(-err));
	return err ?: hand_on(a, end, &account);
}

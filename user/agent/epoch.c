// SPDX-License-Identifier: Apache-2.0
/* Ends epochs: takes their samples from the session, describes them, and hands them to the sinks. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "agent/internal.h"
#include "base/clock.h"
#include "base/log.h"
#include "helper/helper.h"
#include "session/account/account.h"
#include "session/cpu_time.h"

/* An epoch is longer or shorter than the options say by at most this share, at random. */
#define LENGTH_SHARE 0.2
/* An epoch that is longer than planned by more than this share is late. */
#define LATE_SHARE 0.05
/* After this many epochs all stacks and code objects are forgotten; those still in use are announced again. */
#define GENERATION_EPOCHS 10

/* Returns a random number from -1 to 1; 0 where the kernel has none. */
static double random_share(void)
{
	uint32_t word = 0;

	if (getrandom(&word, sizeof(word), GRND_NONBLOCK) != sizeof(word))
		return 0;
	return word / 2147483648.0 - 1;
}

/* divisor: of the rate of the samples that were taken while the epoch before was handed on. */
static void begin_epoch(struct agent *a, double now, unsigned divisor)
{
	const unsigned next = a->metrics.divisor;
	double share = a->options.fixed_epochs ? 0 : LENGTH_SHARE * random_share();

	a->begin = now;
	a->end = now + a->options.epoch_s * (1 + share);
	a->cpu_begin_s = session_used_s();
	a->sinks_begin_s = agent_sinks_used_s(a);
	a->least = divisor < next ? divisor : next;
	a->most = divisor > next ? divisor : next;
	a->rate_changed = false;
}

static void begin_part(struct agent_part *part, double now)
{
	part->begin = now;
	/* Handing on the previous epoch has taken some time since `now`. */
	part->begin_ns = clock_ns(CLOCK_REALTIME) - (uint64_t)((clock_s(CLOCK_MONOTONIC) - now) * 1e9);
}

void agent_begin_epochs(struct agent *a)
{
	/* They begin one after the other, within some milliseconds. */
	for (size_t i = 0; i < a->nr_parts; i++)
		begin_part(&a->parts[i], session_get_begin(a->parts[i].session));
	agent_read_clocks(&a->clocks);
	begin_epoch(a, a->parts[0].begin, a->metrics.divisor);
}

static void tell_epoch(const struct agent *a, uint64_t begin_ns, const struct agent_mode_metrics *before)
{
	time_t begin = (time_t)(begin_ns / 1000000000);
	const struct agent_metrics *m = &a->metrics;
	char text[32] = "", samples[AGENT_MODES_MAX * 80] = "";
	uint64_t bytes = m->rss_bytes;
	size_t size = 0;
	struct tm tm;

	if (gmtime_r(&begin, &tm))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &tm);
	for (size_t i = 0; i < a->nr_parts; i++) {
		const struct agent_mode_metrics *now = a->parts[i].metrics;

		bytes += now->map_bytes;
		size += (size_t)snprintf(
			samples + size, sizeof(samples) - size, "%s%" PRIu64 " samples taken, %" PRIu64 " lost%s%s",
			i ? "; " : "", now->taken - before[i].taken, now->lost - before[i].lost,
			a->nr_parts > 1 ? " with --mode=" : "", a->nr_parts > 1 ? a->parts[i].name : "");
	}
	log_info("epoch of %s, %.1f s: %s; pybpf took %.2f %% of a CPU and %.1f MiB", text, m->epoch_s, samples,
		 100 * m->epoch_cpu_s / m->epoch_s, (double)bytes / (1 << 20));
}

/* Says what of the time of threads an epoch lacks. */
static void tell_lost_time(const struct session_account *account)
{
	if (account->lost_time_ns || account->lost_threads)
		log_warn("an epoch lacks %.3f s of waits, and %" PRIu64
			 " threads: there was no room for them in the kernel's tables",
			 (double)account->lost_time_ns / 1e9, account->lost_threads);
}

/* Says what an epoch lacks as the memory limit was reached. */
static void tell_refused(const struct session_account *account)
{
	const uint64_t samples = account->counters[PYBPF_COUNT_MEMORY_FULL];

	if (samples || account->refused_stacks_ns)
		log_warn("an epoch lacks %" PRIu64
			 " samples, and the stacks of %.3f s of waits: they were new when the memory limit was "
			 "reached, see --max-memory",
			 samples, (double)account->refused_stacks_ns / 1e9);
}

/* Adds what became of the samples of an epoch, and reads the memory at its end. */
static void count_samples(struct agent_part *part, const struct session_account *account)
{
	struct agent_mode_metrics *m = part->metrics;

	m->asked += account->counters[PYBPF_COUNT_ASKED];
	m->taken += account->taken;
	m->lost += account->lost;
	m->other_programs += account->counters[PYBPF_COUNT_OTHER_PROGRAM];
	m->lost_time_ns += account->lost_time_ns;
	m->lost_threads += account->lost_threads;
	m->refused_stacks_ns += account->refused_stacks_ns;
	m->unsent_stacks_ns += account->unsent_stacks_ns;
	m->late_threads += account->late_initial_stacks;
	m->unread_stacks_ns += account->unread_initial_ns;
	m->unread_names += account->unread_names;
	m->missed_processes += account->processes.missed;
	m->unread_threads = session_count_unread_threads(part->session);
	m->refused_processes = session_count_refused_processes(part->session);
	if (session_get_memory(part->session, &part->agent->metrics.rss_bytes, &m->map_bytes))
		log_info("the memory of pybpf cannot be read");
}

static void measure_cost(struct agent *a)
{
	struct agent_metrics *m = &a->metrics;

	m->epochs++;
	m->cpu_s = session_used_s() + agent_sinks_used_s(a);
	m->epoch_cpu_s = agent_epoch_used_s(a);
	m->unanswered = helper_unanswered();
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

/* Hands on the part's epoch that has ended. */
static int hand_on_part(struct agent_part *part)
{
	struct session_account of_epoch = session_account_since(&part->end_account, &part->account);
	struct agent_epoch epoch = {
		.part = part, .begin_ns = part->begin_ns, .length_ns = (uint64_t)((part->end - part->begin) * 1e9)};
	struct profile *profile = part->held ?: profile_new();
	int err = profile ? 0 : -ENOMEM;

	part->held = NULL;
	part->account = part->end_account;
	of_epoch.duration_s = part->end - part->begin;
	err = err ?: agent_describe(part, &of_epoch, part->begin_ns, profile);
	epoch.profile = profile;
	if (err)
		log_error("cannot finish an epoch: %s", strerror(-err));
	else
		err = give_to_sinks(part->agent, &epoch);
	profile_free(profile);
	count_samples(part, &of_epoch);
	tell_lost_time(&of_epoch);
	tell_refused(&of_epoch);
	return err;
}

/* Hands on the epoch of each part, also when that of another part is lost. */
static int hand_on(struct agent *a)
{
	struct agent_mode_metrics before[AGENT_MODES_MAX];
	const uint64_t begin_ns = a->parts[0].begin_ns;
	int err = 0;

	memcpy(before, a->metrics.modes, sizeof(before));
	a->metrics.epoch_s = a->parts[0].end - a->parts[0].begin;
	for (size_t i = 0; i < a->nr_parts; i++) {
		int failed = a->parts[i].is_lost ? 0 : hand_on_part(&a->parts[i]);

		err = err ?: failed;
	}
	measure_cost(a);
	tell_epoch(a, begin_ns, before);
	return err;
}

/* Returns whether the next epoch of a part is to begin with nothing known. */
static bool should_forget(const struct agent_part *part)
{
	return part->generation >= GENERATION_EPOCHS || session_is_half_full(part->session) ||
	       session_nears_memory_limit(part->session);
}

/* Ends the epoch of a part: its samples and its account are complete then. */
static int end_part(struct agent_part *part)
{
	int err = session_count_samples(part->session, &part->end_account);

	part->generation++;
	if (err)
		log_error("cannot read the counters of the kernel: %s", strerror(-err));
	err = err ?: agent_take_samples(part, should_forget(part));
	part->end = session_get_epoch_end(part->session);
	session_count_states(part->session, &part->end_account);
	return err;
}

int agent_end_epoch(struct agent *a, bool is_cut)
{
	const double end = clock_s(CLOCK_MONOTONIC);
	const unsigned divisor = a->metrics.divisor;
	int err = 0;

	if (end - a->begin > (a->end - a->begin) * (1 + LATE_SHARE)) {
		a->metrics.late_epochs++;
		log_warn("an epoch took %.1f s instead of %.1f s: the machine was busy, or pybpf was stopped",
			 end - a->begin, a->end - a->begin);
	}
	/* All end before one is handed on, which takes some time. */
	for (size_t i = 0; i < a->nr_parts && !err; i++)
		err = end_part(&a->parts[i]);
	if (err)
		return err;
	/* What fails from here on ends the run, and the last epoch has nothing of what was handed on. */
	err = hand_on(a);
	/* What the end costs is a large share of a short epoch, and says nothing about the rate. */
	if (!err && !is_cut)
		err = agent_adapt_rate(a);
	for (size_t i = 0; i < a->nr_parts; i++)
		begin_part(&a->parts[i], a->parts[i].end);
	begin_epoch(a, a->parts[0].end, divisor);
	return err;
}

/* Ends the last epoch of a part. */
static int finish_part(struct agent_part *part)
{
	const struct profile *profile;
	struct profile_measure measure;
	int err;

	part->end = session_get_epoch_end(part->session);
	err = session_collect(part->session, &profile, &part->end_account);
	if (err)
		return err;
	/* The measure of this last profile is complete, and that of what was taken before was not. */
	measure = profile_get_measure(profile);
	err = part->held ? profile_set_measure(part->held, &measure) : 0;
	err = err ?: agent_keep_samples(profile, part);
	if (err)
		log_error("cannot finish the last epoch: %s", strerror(-err));
	return err;
}

int agent_finish(struct agent *a)
{
	int err = 0, failed;

	/* Clients, which wait, are told of the end. */
	agent_drop_pulled(a);
	for (size_t i = 0; i < a->nr_parts; i++) {
		failed = finish_part(&a->parts[i]);
		a->parts[i].is_lost = failed;
		err = err ?: failed;
	}
	failed = hand_on(a);
	return err ?: failed;
}

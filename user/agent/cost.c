// SPDX-License-Identifier: Apache-2.0
/* What the agent costs, and the rate at which it costs no more than it may. */
#include "agent/internal.h"
#include "base/clock.h"
#include "base/log.h"
#include "session/cpu_time.h"

/* Shares of --max-cpu: above the first one the rate is lowered; a higher rate must stay below the second one. */
#define HIGH_SHARE 0.8
#define LOW_SHARE  0.7
/* Epochs in a row that have to allow a higher rate before it is raised. */
#define CHEAP_EPOCHS 3
/* A lower rate that saves less than this share is of no use: most of the cost does not come from samples. */
#define USE_SHARE 0.1
/* The rate is halved up to this divisor. */
#define DIVISOR_MOST 16

double agent_sinks_used_s(const struct agent *a)
{
	struct agent_metrics m;
	double used_s;

	agent_get_metrics(a, &m);
	used_s = m.serve.cpu_s;
	for (size_t i = 0; i < AGENT_RECEIVERS; i++)
		used_s += m.push[i].counts.cpu_s;
	for (size_t i = 0; i < a->nr_parts; i++)
		used_s += m.modes[i].files.cpu_s;
	return used_s;
}

double agent_epoch_used_s(const struct agent *a)
{
	const double most_s = clock_s(CLOCK_MONOTONIC) - a->begin;
	double sinks_s = agent_sinks_used_s(a) - a->sinks_begin_s;

	/* A compromised one can report any time. */
	sinks_s = sinks_s > most_s ? most_s : sinks_s;
	return session_used_s() - a->cpu_begin_s + (sinks_s > 0 ? sinks_s : 0);
}

/* Returns as agent_hold(). */
static int set_divisor(struct agent *a, unsigned divisor, double share)
{
	struct agent_metrics *m = &a->metrics;
	int err = 0;

	log_warn("the rate is %s to %.3g Hz: pybpf took %.2g %% of a CPU, and --max-cpu is %.2g %%",
		 divisor > m->divisor ? "lowered" : "raised", (double)a->options.freq / divisor, 100 * share,
		 100 * a->options.max_cpu);
	if (divisor == DIVISOR_MOST)
		log_warn("the rate is not lowered further: choose fewer processes, or longer epochs");
	m->divisor = divisor;
	a->least = divisor < a->least ? divisor : a->least;
	a->most = divisor > a->most ? divisor : a->most;
	a->rate_changed = true;
	a->cheap_epochs = 0;
	for (size_t i = 0; i < a->nr_parts && !err; i++) {
		/* Samples of the rate so far count for what they did. */
		err = agent_take_samples(&a->parts[i], false);
		if (!err)
			session_divide_rate(a->parts[i].session, divisor);
	}
	return err;
}

/*
 * Returns the share of a CPU above which the rate is lowered. It is the limit itself while it is not known yet what the
 * last lowering has saved, or if that was little.
 */
static double get_high_share(const struct agent *a, double share)
{
	bool is_useless = a->lowered_at > 0 || (a->saved_known && a->saved < share * USE_SHARE);

	return a->options.max_cpu * (is_useless ? 1 : HIGH_SHARE);
}

static int lower(struct agent *a, double share)
{
	a->lowered_at = share;
	return set_divisor(a, a->metrics.divisor * 2, share);
}

/* Returns whether the rate can be lowered. In the first epoch all processes of the machine are looked at, once. */
static bool may_lower(const struct agent *a)
{
	return a->metrics.epochs && a->metrics.divisor < DIVISOR_MOST && !a->rate_changed;
}

int agent_limit_cost(struct agent *a)
{
	double planned = a->end - a->begin, used = agent_epoch_used_s(a);

	/* Once in an epoch: what is done at its end costs the same at any rate. */
	if (!may_lower(a) || used < planned * get_high_share(a, used / planned))
		return 0;
	return lower(a, used / (clock_s(CLOCK_MONOTONIC) - a->begin));
}

/* Notes what the last lowering has saved, once an epoch has been sampled at one rate from its start to its end. */
static void note_saving(struct agent *a, double share)
{
	if (a->lowered_at <= 0 || a->rate_changed)
		return;
	a->saved = a->lowered_at > share ? a->lowered_at - share : 0;
	a->saved_known = true;
	a->lowered_at = 0;
}

/* Returns the share of a CPU that pybpf would take at twice the rate. */
static double predict_share(const struct agent *a, double share)
{
	return share + (a->saved_known && a->saved < share ? a->saved : share);
}

int agent_adapt_rate(struct agent *a)
{
	struct agent_metrics *m = &a->metrics;
	int err;
	double share = m->epoch_s > 0 ? m->epoch_cpu_s / m->epoch_s : 0;

	note_saving(a, share);
	if (may_lower(a) && m->epochs > 1 && share > get_high_share(a, share))
		return lower(a, share);
	a->cheap_epochs = predict_share(a, share) < a->options.max_cpu * LOW_SHARE ? a->cheap_epochs + 1 : 0;
	if (m->divisor == 1 || a->cheap_epochs < CHEAP_EPOCHS)
		return 0;
	err = set_divisor(a, m->divisor / 2, share);
	a->saved *= 2;
	return err;
}

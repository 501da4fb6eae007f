// SPDX-License-Identifier: Apache-2.0
/* What the agent costs, and the rate at which it costs no more than it may. */
#include "agent/internal.h"
#include "base/clock.h"
#include "base/log.h"
#include "helper/helper.h"

/* Share of the CPU time that pybpf may take at which the rate is lowered, and at which it may be higher again. */
#define HIGH_SHARE 0.8
#define LOW_SHARE  0.3
/* Epochs in a row that must have been that cheap. */
#define CHEAP_EPOCHS 3
/* The rate is halved up to this divisor. */
#define DIVISOR_MOST 16

double agent_cpu_s(const struct agent *a)
{
	return clock_s(CLOCK_PROCESS_CPUTIME_ID) + helper_cpu_s() + a->keeper.counts.cpu_s;
}

static void set_divisor(struct agent *a, unsigned divisor, double share)
{
	struct agent_metrics *m = &a->metrics;

	log_warn("the rate is %s to %.3g Hz: pybpf took %.2g %% of a CPU, and --max-cpu is %.2g %%",
		 divisor > m->divisor ? "lowered" : "raised", (double)a->options.freq / divisor, 100 * share,
		 100 * a->options.max_cpu);
	if (divisor == DIVISOR_MOST)
		log_warn("the rate is not lowered further: choose fewer processes, or longer epochs");
	m->divisor = divisor;
	a->least = divisor < a->least ? divisor : a->least;
	a->most = divisor > a->most ? divisor : a->most;
	a->cheap_epochs = 0;
	session_divide_rate(a->session, divisor);
}

/* Returns whether the rate can be lowered. In the first epoch all processes of the machine are looked at, once. */
static bool may_lower(const struct agent *a)
{
	return a->metrics.epochs && a->metrics.divisor < DIVISOR_MOST && a->most == a->least;
}

int agent_limit_cost(struct agent *a)
{
	double planned = a->end - a->begin, used = agent_cpu_s(a) - a->cpu_begin_s;

	/* Once in an epoch: what is done at its end costs the same at any rate. */
	if (!may_lower(a) || used < planned * a->options.max_cpu * HIGH_SHARE)
		return 0;
	if (agent_take_samples(a, false))
		return -1;
	set_divisor(a, a->metrics.divisor * 2, used / planned);
	return 0;
}

void agent_adapt_rate(struct agent *a)
{
	struct agent_metrics *m = &a->metrics;
	double share = m->epoch_s > 0 ? m->epoch_cpu_s / m->epoch_s : 0;

	if (may_lower(a) && m->epochs > 1 && share > a->options.max_cpu * HIGH_SHARE) {
		set_divisor(a, m->divisor * 2, share);
		return;
	}
	a->cheap_epochs = share < a->options.max_cpu * LOW_SHARE ? a->cheap_epochs + 1 : 0;
	if (m->divisor > 1 && a->cheap_epochs >= CHEAP_EPOCHS)
		set_divisor(a, m->divisor / 2, share);
}

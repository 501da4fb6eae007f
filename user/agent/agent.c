// SPDX-License-Identifier: Apache-2.0
/* The agent: its sinks, and the loop that ends an epoch after the other. */
#include "agent/agent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/internal.h"
#include "base/clock.h"
#include "base/log.h"
#include "helper/helper.h"
#include "profile/profile.h"
#include "rights/priority.h"
#include "session/run/run.h"

/* Most seconds between looks at what is due: epochs end on time to a share of their length. */
#define TICK_MOST_S 0.5
#define TICK_SHARE  0.02

static void choose_sinks(struct agent *a)
{
	for (size_t i = 0; i < AGENT_SINKS; i++) {
		if (agent_sinks[i]->is_wanted(&a->options))
			a->sinks[a->nr_sinks++] = agent_sinks[i];
	}
}

static void make_parts(struct agent *a)
{
	for (size_t i = 0; i < a->options.nr_modes; i++) {
		a->parts[a->nr_parts++] = (struct agent_part){
			.agent = a,
			.mode = a->options.modes[i],
			.name = agent_mode_name(a->options.modes[i]),
			.metrics = &a->metrics.modes[i],
		};
	}
}

struct agent *agent_new(const struct agent_options *options, struct error *error)
{
	struct agent *a = calloc(1, sizeof(*a));
	int err;

	if (!a) {
		error_set(error, -ENOMEM, "out of memory while starting");
		return NULL;
	}
	a->options = *options;
	a->metrics.divisor = 1;
	make_parts(a);
	choose_sinks(a);
	err = agent_notify_open(&a->notify, error);
	for (size_t i = 0; i < a->nr_sinks && !err; i++)
		err = a->sinks[i]->open ? a->sinks[i]->open(a, error) : 0;
	if (!err)
		return a;
	agent_free(a);
	return NULL;
}

void agent_free(struct agent *a)
{
	if (!a)
		return;
	for (size_t i = a->nr_sinks; i-- > 0;) {
		if (a->sinks[i]->close)
			a->sinks[i]->close(a);
	}
	agent_notify_close(&a->notify);
	for (size_t i = 0; i < a->nr_parts; i++)
		profile_free(a->parts[i].held);
	free(a);
}

/* Returns 0, or -EPIPE after reporting that no process can be looked at any more. */
static int look_at_helpers(void)
{
	if (!helper_is_gone())
		return 0;
	log_error("the process that makes helpers has ended: processes that start cannot be sampled any more");
	return -EPIPE;
}

static int on_tick(void *arg)
{
	struct agent *a = arg;
	int err = look_at_helpers();
	bool is_cut;

	agent_notify_tell_alive(&a->notify);
	for (size_t i = 0; i < a->nr_sinks && !err; i++)
		err = a->sinks[i]->do_periodic_work ? a->sinks[i]->do_periodic_work(a) : 0;
	if (err)
		return err;
	is_cut = agent_clocks_cut_epoch(a);
	if (is_cut || clock_s(CLOCK_MONOTONIC) >= a->end)
		return agent_end_epoch(a, is_cut);
	return agent_limit_cost(a) ?: agent_hold(a);
}

static void on_hangup(void *arg)
{
	struct agent *a = arg;

	a->options.on_hangup(a->options.on_hangup_arg);
}

/* Returns the seconds between looks at what is due. */
static double get_tick_s(const struct agent *a)
{
	const double tick = a->options.epoch_s * TICK_SHARE;

	return tick < TICK_MOST_S ? tick : TICK_MOST_S;
}

int agent_change(struct agent *a, const struct agent_options *options)
{
	/* The next look at what is due, after which the epoch that goes on can end. */
	const double soon = clock_s(CLOCK_MONOTONIC) + get_tick_s(a), end = a->begin + options->epoch_s;
	int err = 0;

	a->options.epoch_s = options->epoch_s;
	a->options.fixed_epochs = options->fixed_epochs;
	a->options.keep_s = options->keep_s;
	a->options.keep_size = options->keep_size;
	a->options.max_cpu = options->max_cpu;
	if (end < a->end)
		a->end = end > soon ? end : soon;
	if (a->run)
		a->run->interval_s = get_tick_s(a);
	for (size_t i = 0; i < a->nr_sinks && !err; i++)
		err = a->sinks[i]->reload ? a->sinks[i]->reload(a) : 0;
	if (err)
		log_error("cannot change the options: %s", strerror(-err));
	return err;
}

void agent_count_refused_change(struct agent *a)
{
	a->metrics.refused_changes++;
}

int agent_run(struct agent *a, struct session *const *sessions, bool (*goes_on)(void *arg), void *goes_on_arg)
{
	struct session_run run = {
		.goes_on = goes_on,
		.goes_on_arg = goes_on_arg,
		.on_interval = on_tick,
		.interval_s = get_tick_s(a),
		.on_hangup = a->options.on_hangup ? on_hangup : NULL,
		.watcher = a,
	};
	enum session_end end;
	int err;

	for (size_t i = 0; i < a->nr_parts; i++)
		run.sessions[i] = a->parts[i].session = sessions[i];
	for (size_t i = 1; i < a->nr_parts; i++)
		session_join_memory(sessions[0], sessions[i]);
	a->run = &run;
	agent_begin_epochs(a);
	agent_notify_tell(&a->notify, "READY=1");
	end = session_run(&run);
	a->run = NULL;
	agent_notify_tell(&a->notify, "STOPPING=1");
	for (size_t i = 0; i < a->nr_parts; i++)
		session_detach(sessions[i]);
	priority_restore();
	err = agent_finish(a);
	return end == SESSION_END_ERROR ? -EIO : err;
}

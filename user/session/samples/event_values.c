// SPDX-License-Identifier: Apache-2.0
/* Tells what the events of a run are, and the sum of their values. */
#include "session/samples/event_values.h"

#include "kernel/events.h"
#include "session/internal.h"
#include "session/measure.h"

static void describe(const struct session *s, const struct session_account *account, struct profile_measure *values)
{
	(void)account;
	values->name = s->options.events->title ?: "events";
	values->unit = s->options.events->unit ?: "count";
}

static void tell(const struct session *s, struct session_account *account)
{
	account->freq = 0;
	account->event = s->options.events->title ?: "events";
	account->period = s->options.events->period;
	account->unit = s->options.events->unit;
	account->touched = s->touched;
	account->given_back = kernel_get_given_back(s->kernel);
}

static void ask_kernel(const struct session_options *options, struct kernel_options *kernel)
{
	kernel->events = options->events;
	kernel->nr_events = options->nr_events;
}

static bool is_wanted(const struct session_options *options)
{
	return options->nr_events > 0;
}

const struct session_measure session_event_values_measure = {
	.name = "values of events",
	.is_wanted = is_wanted,
	.ask_kernel = ask_kernel,
	.describe = describe,
	.tell = tell,
};

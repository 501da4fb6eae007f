// SPDX-License-Identifier: Apache-2.0
/* Starts and ends the sampler, and puts the counts of samples into the profile. */
#include "session/samples/samples.h"

#include "session/internal.h"
#include "session/measure.h"
#include "session/sample_owner.h"

#define NS_PER_S 1000000000u

static int attach(struct session *s)
{
	return kernel_attach_sampler(s->kernel, s->options.freq);
}

static void detach(struct session *s)
{
	kernel_detach_sampler(s->kernel);
}

static int add_count(struct session *s, const struct session_counted *counted)
{
	const struct pybpf_thread_key of = counted->key->thread;
	uint32_t period = s->options.nr_events ? (uint32_t)s->options.events->period : 0;
	uint32_t owner, thread;
	int err = session_find_owners(s, &of, counted->process, &owner, &thread);

	if (counted->key->kind != PYBPF_KIND_CPU)
		s->touched += counted->count->value;
	err = err ?: profile_add_sample(s->profile, counted->stack, owner, thread, counted->count->value);
	if (err || !s->options.times)
		return err;
	if (session_times_know(&s->times, counted->key, profile_find_sample(s->profile, counted->stack, owner, thread),
			       period ?: 1))
		s->counters[PYBPF_COUNT_UNTIMED] += counted->count->count;
	return 0;
}

static void describe(const struct session *s, const struct session_account *account, struct profile_measure *values)
{
	(void)s;
	values->name = "samples";
	values->unit = "count";
	/* The kernel keeps a timer of cycles to the given frequency, too, so the period holds for both timers. */
	values->period_ns = account->freq ? NS_PER_S / account->freq : 0;
}

/* With the time of threads, samples say in which stacks it was; without the time on a CPU there is nothing to say. */
static bool is_wanted(const struct session_options *options)
{
	return options->mode != SESSION_OFFCPU;
}

const struct session_measure session_samples_measure = {
	.name = "samples",
	.is_wanted = is_wanted,
	.attach = attach,
	.detach = detach,
	.add_count = add_count,
	.describe = describe,
};

// SPDX-License-Identifier: Apache-2.0
/* The time that threads were on a CPU, shared among their samples. */
#include "session/waits/running.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "kernel/waits.h"
#include "session/run/due.h"
#include "session/internal.h"
#include "session/waits/wait_profile.h"

struct running_time {
	struct pybpf_thread_key thread;
	uint64_t ns;
};

void session_running_init(struct session_running *r)
{
	memset(r, 0, sizeof(*r));
	intern_init(&r->times, sizeof(struct running_time), sizeof(struct pybpf_thread_key));
}

void session_running_free(struct session_running *r)
{
	intern_free(&r->times);
	free(r->samples);
	session_running_init(r);
}

int session_running_add_samples(struct session_running *r, const struct pybpf_count_key *key, uint32_t stack,
				uint64_t count)
{
	if (array_reserve(&r->samples, &r->samples_room, r->nr_samples + 1, sizeof(*r->samples)))
		return -ENOMEM;
	r->samples[r->nr_samples++] =
		(struct session_cpu_count){.thread = key->thread, .stack = stack, .count = count, .key = *key};
	return 0;
}

int session_running_add(struct session *s, const struct pybpf_thread_key *thread, uint64_t ns)
{
	struct session_running *r = &s->waits.running;
	struct running_time fresh = {.thread = *thread};
	bool is_fresh;
	uint32_t i;

	if (s->options.mode == SESSION_OFFCPU)
		return 0;
	i = intern_add(&r->times, &fresh, &is_fresh);
	if (i == INTERN_NONE)
		return -ENOMEM;
	((struct running_time *)intern_item(&r->times, i))->ns += ns;
	return 0;
}

static int compare_threads(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct pybpf_thread_key));
}

/* Gives each of the samples its part of the time, for its event. */
static int know_times(struct session *s, const struct session_cpu_count *samples, uint32_t sample, uint64_t ns)
{
	uint64_t us = ns / samples->count / 1000;

	return session_times_know(&s->times, &samples->key, sample, us < UINT32_MAX ? (uint32_t)us : UINT32_MAX);
}

/*
 * Returns what samples stand for whose thread has no time: where map threads had no room for it, each for its period.
 * In a rolling session, else, its time was counted in an earlier epoch, which the samples have come too late for.
 */
static uint64_t without_time(const struct session *s, uint64_t samples)
{
	uint64_t lost_ns, lost_threads;

	kernel_get_lost_time(s->kernel, &lost_ns, &lost_threads);
	return s->options.rolling && !lost_threads ? 0 : samples * (1000000000u / s->options.freq);
}

int session_running_share(struct session *s, const struct session_due *due)
{
	struct session_running *r = &s->waits.running;
	size_t kept = 0;
	int err = 0;

	if (r->nr_samples)
		qsort(r->samples, r->nr_samples, sizeof(*r->samples), compare_threads);
	for (size_t i = 0, end; i < r->nr_samples && !err; i = end) {
		const struct pybpf_thread_key thread = r->samples[i].thread;
		uint32_t at = intern_find(&r->times, &thread);
		uint64_t total = 0, seen = 0, ns, given = 0;

		for (end = i; end < r->nr_samples && !compare_threads(&r->samples[end], &thread); end++)
			total += r->samples[end].count;
		if (!session_is_due(s, due, thread.proc_id)) {
			memmove(&r->samples[kept], &r->samples[i], (end - i) * sizeof(*r->samples));
			kept += end - i;
			continue;
		}
		ns = at == INTERN_NONE ? without_time(s, total)
				       : ((const struct running_time *)intern_item(&r->times, at))->ns;
		for (; i < end && !err; i++) {
			uint64_t until;
			uint32_t sample;

			seen += r->samples[i].count;
			until = (uint64_t)((long double)ns * seen / total);
			err = session_add_thread_time(
				s, &thread, r->samples[i].stack, PYBPF_STATE_RUNNING,
				(struct pybpf_wait_time){.count = r->samples[i].count, .ns = until - given}, &sample);
			if (!err && s->options.times && sample != PROFILE_NONE)
				err = know_times(s, &r->samples[i], sample, until - given);
			given = until;
		}
		if (at != INTERN_NONE)
			intern_remove(&r->times, at);
	}
	r->nr_samples = kept;
	for (uint32_t i = r->times.count; i-- > 0 && !err;) {
		const struct running_time running = *(const struct running_time *)intern_item(&r->times, i);

		if (!session_is_due(s, due, running.thread.proc_id))
			continue;
		intern_remove(&r->times, i);
		if (!running.ns)
			continue;
		err = session_add_thread_time(
			s, &running.thread,
			s->options.mode == SESSION_GIL
				? PROFILE_ROOT
				: session_push_note(s->profile, PROFILE_ROOT, "[on CPU, not sampled]"),
			PYBPF_STATE_RUNNING, (struct pybpf_wait_time){.ns = running.ns}, NULL);
	}
	return err;
}

// SPDX-License-Identifier: Apache-2.0
/* Keeps time records of samples, and turns them into events of the profile. */
#include "session/samples/times.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/beyond.h"
#include "session/internal.h"
#include "session/measure.h"

struct known {
	struct pybpf_count_key key;
	uint32_t sample;
	uint32_t value; /* of one event */
};

void session_times_init(struct session_times *t)
{
	memset(t, 0, sizeof(*t));
	intern_init(&t->samples, sizeof(struct known), sizeof(struct pybpf_count_key));
}

void session_times_free(struct session_times *t)
{
	free(t->waiting);
	intern_free(&t->samples);
	session_times_init(t);
}

int session_times_add(struct session_times *t, const struct pybpf_time_event *event, size_t size)
{
	if (size < sizeof(*event))
		return -EBADMSG;
	if (array_reserve(&t->waiting, &t->room, t->count + 1, sizeof(*t->waiting)))
		return -ENOMEM;
	t->waiting[t->count++] = *event;
	return 0;
}

int session_times_know(struct session_times *t, const struct pybpf_count_key *key, uint32_t sample, uint32_t value)
{
	struct known known = {.key = *key, .sample = sample, .value = value};
	bool fresh;

	return intern_add(&t->samples, &known, &fresh) == INTERN_NONE ? -ENOMEM : 0;
}

int session_times_settle(struct session_times *t, struct profile *profile, uint64_t origin_ns)
{
	size_t kept = 0;
	int err = 0;

	for (size_t i = 0; i < t->count; i++) {
		const struct pybpf_time_event *event = &t->waiting[i];
		uint32_t at = err ? INTERN_NONE : intern_find(&t->samples, &event->key);
		const struct known *known;

		if (at == INTERN_NONE) {
			t->waiting[kept++] = *event;
			continue;
		}
		known = intern_item(&t->samples, at);
		err = profile_add_event(profile, beyond(event->time_ns, origin_ns), known->sample, known->value);
	}
	t->count = kept;
	return err;
}

static void init(struct session *s)
{
	session_times_init(&s->times);
}

static void release(struct session *s)
{
	session_times_free(&s->times);
}

static int take(struct session *s, const struct pybpf_event *event)
{
	bool has_room = session_may_keep_time(s);
	int err = has_room ? session_times_add(&s->times, (const void *)event, event->size) : 0;

	s->counters[PYBPF_COUNT_UNTIMED] += !has_room || err;
	return err;
}

static size_t count_times(const struct session *s)
{
	return s->times.count;
}

static int settle(struct session *s, const struct session_due *due)
{
	(void)due;
	return session_times_settle(&s->times, s->profile, s->attach_ns);
}

static void forget_samples(struct session *s)
{
	intern_free(&s->times.samples);
}

static void ask_kernel(const struct session_options *options, struct kernel_options *kernel)
{
	kernel->times = options->times;
}

static bool is_wanted(const struct session_options *options)
{
	return options->times;
}

const struct session_measure session_times_measure = {
	.name = "times of samples",
	.is_wanted = is_wanted,
	.ask_kernel = ask_kernel,
	.init = init,
	.free = release,
	.records = SESSION_RECORD(PYBPF_EVENT_TIME),
	.take = take,
	.count_times = count_times,
	.settle = settle,
	.in_epochs = true,
	.forget_samples = forget_samples,
};

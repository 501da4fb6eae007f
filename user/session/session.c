// SPDX-License-Identifier: Apache-2.0
/* Makes, runs and frees a session: consumes records and events, and keeps to the memory limit. */
#include "session/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/procfs.h"
#include "kernel/events.h"
#include "pybpf.h"
#include "session/internal.h"
#include "session/source_file.h"

/* Most bytes taken per call: a program whose stacks are all new and deep fills the ring as fast as it is emptied. */
#define CONSUME_BYTES (256u << 10)
/*
 * Longest time of one call: objects that a code object refers to may have to be read from its process, while a process
 * that has just started is not sampled before it was looked at.
 */
#define CONSUME_NS 5000000

int session_take_event(struct session *s, const struct pybpf_event *event)
{
	if (session_must_wait(s, event))
		return session_put_aside(s, event);
	switch (event->type) {
	case PYBPF_EVENT_CODE:
		return pysym_add_code(s->pysym, (const void *)event, event->size);
	case PYBPF_EVENT_TIME:
		return session_times_add(&s->times, (const void *)event, event->size);
	default:
		return stacks_add(s->stacks, (const void *)event, event->size);
	}
}

static int on_event(void *ctx, void *data, size_t size)
{
	struct session *s = ctx;
	const struct pybpf_event *event = data;
	int err = 0;

	if (size < sizeof(*event) || event->size > size)
		return 0;
	err = session_take_event(s, event);
	if (err == -ENOENT) {
		/* The event of its process is in the other buffer; if that was full, the stack is lost. */
		err = processes_consume_events(s->processes) ?: session_take_event(s, event);
		if (err == -ENOENT)
			err = 0;
	}
	if (err && !s->error) {
		s->error = err;
		log_error("cannot keep what the kernel sent: %s", strerror(-err));
	}
	s->consumed += (uint32_t)size;
	return s->consumed < CONSUME_BYTES && clock_ns(CLOCK_MONOTONIC) < s->consume_until_ns ? 0 : -EAGAIN;
}

/* Interval between checks of the memory limit. */
#define MEMORY_LOOK_S 0.1

/* Checks the memory limit: once it is reached, stacks not known yet are lost, and the kernel counts them. */
static void keep_memory(struct session *s, double now)
{
	uint64_t kib;

	if (s->memory_full || now < s->next_memory_look)
		return;
	s->next_memory_look = now + MEMORY_LOOK_S;
	if (procfs_rss(getpid(), &kib) || kib * 1024 + s->map_bytes < s->options.max_memory)
		return;
	s->memory_full = true;
	kernel_refuse_new_stacks(s->kernel, true);
	log_warn("the memory limit of %llu MiB is reached: new stacks are not kept any more, see --max-memory",
		 (unsigned long long)(s->options.max_memory >> 20));
}

static int met_file(void *arg, uint64_t proc_id, const struct pybpf_rights *rights, const char *file, const char *path)
{
	struct session *s = arg;

	return session_sources_met(s->sources, proc_id, rights, file, path);
}

/* Makes the kernel side with the session's options. */
static struct kernel *new_kernel(const struct session_options *options)
{
	const struct kernel_options kernel = {
		.all = options->all,
		.follow = options->follow,
		.hold = options->names != NULL,
		.threads = options->threads,
		.times = options->times,
		.rolling = options->rolling,
		.users = options->users,
		.cgroups = options->cgroups,
		.cgroup_subsystem = options->cgroup_subsystem,
		.max_processes = options->max_processes,
		.max_stacks = options->max_stacks,
		.source = options->source,
		.events = options->events,
		.nr_events = options->nr_events,
		.without = options->without,
	};

	return kernel_new(&kernel);
}

static struct processes *new_processes(const struct session *s)
{
	const struct processes_options options = {
		.all = s->options.all,
		.follow = s->options.follow,
		.names = s->options.names,
		.merge = s->options.merge,
		.cmdline = s->options.cmdline,
		.containers = s->options.containers,
	};

	return processes_new(&options, s->kernel, s->pysym);
}

int session_new_profile(struct session *s)
{
	struct profile *profile = profile_new();
	struct stacks *stacks = profile ? stacks_new(s->pysym, profile) : NULL;

	if (!stacks) {
		profile_free(profile);
		return -ENOMEM;
	}
	profile_set_roots(profile, s->options.roots);
	if (s->options.sources)
		stacks_tell_files(stacks, met_file, s);
	stacks_free(s->stacks);
	profile_free(s->profile);
	s->stacks = stacks;
	s->profile = profile;
	return 0;
}

struct session *session_new(const struct session_options *options)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		goto no_memory;
	s->options = *options;
	session_times_init(&s->times);
	session_epochs_init(&s->epochs);
	s->kernel = new_kernel(options);
	if (!s->kernel || kernel_load(s->kernel))
		goto failed;
	s->pysym = pysym_new(options->lines, options->full_filenames);
	s->profile = profile_new();
	if (!s->pysym || session_new_profile(s))
		goto no_memory;
	s->processes = new_processes(s);
	if (!s->processes)
		goto failed;
	if (options->sources) {
		s->sources = session_sources_new(s);
		if (!s->sources)
			goto no_memory;
	}
	pysym_look_at_paths_by(s->pysym, source_file_shown_at);
	s->map_bytes = kernel_get_map_bytes(s->kernel);
	if (kernel_open_events(s->kernel, on_event, s))
		goto failed;
	if (options->measure_kernel)
		kernel_enable_stats(s->kernel);
	return s;
no_memory:
	log_error("out of memory while starting");
failed:
	session_free(s);
	return NULL;
}

void session_free(struct session *s)
{
	if (!s)
		return;
	session_detach(s);
	processes_free(s->processes);
	stacks_free(s->stacks);
	session_times_free(&s->times);
	session_epochs_free(&s->epochs);
	session_sources_free(s->sources);
	pysym_free(s->pysym);
	profile_free(s->profile);
	kernel_free(s->kernel);
	free(s);
}

int session_follow(struct session *s, const uint32_t *pids, size_t count)
{
	return processes_follow(s->processes, pids, count);
}

int session_attach(struct session *s)
{
	s->attach_ns = clock_ns(CLOCK_MONOTONIC);
	s->start_ns = clock_ns(CLOCK_REALTIME);
	return kernel_attach_sampler(s->kernel, s->options.freq);
}

double session_jitter(struct session *s)
{
	return kernel_vary_rate(s->kernel);
}

void session_detach(struct session *s)
{
	if (s->attach_ns && !s->detach_ns)
		s->detach_ns = clock_ns(CLOCK_MONOTONIC);
	if (s->kernel)
		kernel_detach_sampler(s->kernel);
}

void session_fds(const struct session *s, int fds[SESSION_FDS])
{
	fds[0] = kernel_get_events_fd(s->kernel);
	processes_get_fds(s->processes, fds + 1);
}

int session_consume(struct session *s)
{
	int n = processes_consume_events(s->processes);

	if (n)
		return n;
	s->consumed = 0;
	s->consume_until_ns = clock_ns(CLOCK_MONOTONIC) + CONSUME_NS;
	n = kernel_consume_events(s->kernel);
	if (s->error)
		return s->error;
	return n == -EAGAIN ? 1 : n;
}

double session_tend(struct session *s)
{
	double now = clock_s(CLOCK_MONOTONIC), next;

	processes_look_at_due(s->processes, now);
	processes_label_young(s->processes, now);
	keep_memory(s, now);
	if (now >= s->next_collect) {
		int err = session_collect_ended(s, now);

		if (err)
			return err;
	}
	next = processes_get_next_look(s->processes);
	return next < s->next_collect ? next : s->next_collect;
}

bool session_all_ended(const struct session *s)
{
	return !s->options.all && processes_count_living(s->processes) == 0;
}

bool session_uses_bpf_loop(const struct session *s)
{
	return kernel_uses_bpf_loop(s->kernel);
}

bool session_python_found(const struct session *s)
{
	return processes_have_python(s->processes);
}

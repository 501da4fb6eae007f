// SPDX-License-Identifier: Apache-2.0
/* Makes, runs and frees a session. */
#include "session/session.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "kernel/cpus.h"
#include "kernel/events.h"
#include "kernel/opener.h"
#include "pybpf.h"
#include "session/cpu_time.h"
#include "session/internal.h"
#include "session/sources/source_file.h"

static int met_function(void *arg, const struct stacks_function *function)
{
	struct session *s = arg;

	return session_sources_met(s->sources, function);
}

/* Makes the kernel side with the session's options. */
static struct kernel *new_kernel(struct session *s)
{
	const struct session_options *options = &s->options;
	struct kernel_options kernel = {
		.all = options->all,
		.follow = options->follow,
		.hold = options->names || (options->chosen && options->chosen->count),
		.threads = options->threads,
		.kernel_stacks = options->kernel_stacks,
		.native = options->native != SESSION_NATIVE_NONE,
		.native_chunks = (uint32_t)(options->native_memory >> 20),
		.native_exact = session_native_exact(options),
		.tasks = options->tasks,
		.gil = options->gil,
		.exception = options->exception,
		.gc = options->gc,
		.opcodes = options->opcodes,
		.python_only = options->python_only || options->gil || options->exception,
		.rolling = options->rolling,
		.users = options->users,
		.cgroups = options->cgroups,
		.cgroup_subsystem = options->cgroup_subsystem,
		.max_processes = options->max_processes,
		.max_stacks = options->max_stacks,
		.max_memory = options->max_memory,
		.source = options->source,
		.disabled_features = options->disabled_features,
		.run = options->run,
	};

	session_measures_ask_kernel(s, &kernel);
	return kernel_new(&kernel);
}

static struct processes *new_processes(const struct session *s)
{
	const struct processes_options options = {
		.all = s->options.all,
		.follow = s->options.follow,
		.filtered = s->options.users.nr_included || s->options.users.nr_excluded ||
			    s->options.cgroups.nr_included || s->options.cgroups.nr_excluded,
		.names = s->options.names,
		.tasks = s->options.tasks,
		.merge = s->options.merge,
		.cmdline = s->options.cmdline,
		.containers = s->options.containers,
		.parents = s->options.parents,
		.patient = s->options.rolling,
		.services = s->options.services,
		.chosen = s->options.chosen,
	};

	return processes_new(&options, s->kernel, s->pysym);
}

/* Copies the stacks that are still needed. Returns 0 or negative errno. */
static int keep_stacks(struct session *s, struct stacks *to)
{
	struct intern ids = INTERN_INIT(sizeof(uint64_t), sizeof(uint64_t));
	int err = session_measures_keep_stacks(s, &ids);

	err = err ?: stacks_keep(to, s->stacks, &ids);
	intern_free(&ids);
	return err;
}

int session_new_profile(struct session *s)
{
	struct profile *profile = profile_new();
	struct stacks *stacks = profile ? stacks_new(s->pysym, profile) : NULL;

	if (!stacks || (s->stacks && keep_stacks(s, stacks))) {
		stacks_free(stacks);
		profile_free(profile);
		return -ENOMEM;
	}
	profile_set_roots(profile, s->options.roots);
	if (s->options.sources)
		stacks_set_on_first_use(stacks, met_function, s);
	stacks_name_kernel(stacks, s->kernel_names);
	stacks_set_native(stacks, session_native_frames(s));
	stacks_set_own(stacks, s->options.own_paths);
	stacks_free(s->stacks);
	session_measures_forget_frames(s);
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
	s->beside = s;
	s->weight = 1;
	s->end_at = HUGE_VAL;
	session_measures_init(s);
	session_pending_init(&s->pending);
	s->kernel = new_kernel(s);
	if (!s->kernel || kernel_load(s->kernel))
		goto failed;
	s->pysym = pysym_new(options->lines, options->full_filenames);
	if (options->kernel_stacks) {
		s->kernel_names = kernel_names_new();
		if (!s->kernel_names)
			goto no_memory;
	}
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
	pysym_look_at_paths_by(s->pysym, source_file_look_at_path);
	session_let_blocks_grow_in_place();
	if (kernel_open_events(s->kernel, session_on_record, s))
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
	session_leave_memory(s);
	processes_free(s->processes);
	stacks_free(s->stacks);
	kernel_names_free(s->kernel_names);
	session_measures_free(s);
	session_pending_free(&s->pending);
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
	int err;

	s->attach_ns = clock_ns(CLOCK_MONOTONIC);
	s->start_ns = clock_ns(CLOCK_REALTIME);
	s->machine_begin = session_machine_read();
	processes_begin_cpu(s->processes);
	err = session_measures_attach(s);
	if (!err)
		kernel_start_opener(s->kernel);
	return err;
}

void session_end_at(struct session *s, double when)
{
	s->end_at = when;
}

double session_estimate_end(const struct session *s)
{
	return session_measures_estimate_end(s);
}

double session_jitter(struct session *s)
{
	return kernel_vary_rate(s->kernel);
}

void session_divide_rate(struct session *s, unsigned divisor)
{
	kernel_divide_rate(s->kernel, divisor);
	s->weight = divisor;
}

void session_detach(struct session *s)
{
	bool first = s->attach_ns && !s->detach_ns;

	if (first) {
		s->ended_used_s = session_used_s();
		session_measures_end(s);
		s->detach_ns = clock_ns(CLOCK_MONOTONIC);
		s->machine_end = session_machine_read();
	}
	if (s->kernel)
		session_measures_detach(s);
	if (first)
		processes_end_cpu(s->processes);
}

void session_fds(const struct session *s, int fds[SESSION_FDS])
{
	fds[0] = kernel_get_events_fd(s->kernel);
	processes_get_fds(s->processes, fds + 1);
}

double session_do_periodic_work(struct session *s)
{
	double now = clock_s(CLOCK_MONOTONIC), next, measures;

	processes_look_at_due(s->processes, now);
	processes_label_young(s->processes, now);
	session_keep_memory(s, now);
	kernel_follow_cpus(s->kernel, now);
	session_sources_ask_again(s->sources, now);
	measures = session_measures_do_periodic_work(s);
	if (measures < 0)
		return measures;
	if (now >= s->next_collect) {
		int err = session_collect_ended(s, now);

		if (err)
			return err;
	}
	next = processes_get_next_look(s->processes);
	if (s->next_collect < next)
		next = s->next_collect;
	return measures < next ? measures : next;
}

bool session_all_ended(const struct session *s)
{
	return !s->options.all && processes_count_living(s->processes) == 0;
}

bool session_uses_bpf_loop(const struct session *s)
{
	return kernel_uses_bpf_loop(s->kernel);
}

size_t session_count_undecided(const struct session *s)
{
	return processes_count_undecided(s->processes);
}

bool session_python_found(const struct session *s)
{
	return processes_have_python(s->processes);
}

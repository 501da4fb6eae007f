// SPDX-License-Identifier: Apache-2.0
#include "session/session.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/host.h"
#include "base/log.h"
#include "base/procfs.h"
#include "pybpf.h"
#include "pybpf.skel.h"
#include "session/internal.h"
#include "session/source_file.h"

/*
 * New stacks and code objects cross here, each once. A start-up that meets thousands of them at once at 10 kHz needs
 * some 2 MiB until user space runs; what does not fit is sent at its next sample.
 */
#define RING_BYTES (4u << 20)
/* So much is taken at a time: a program all of whose stacks are new and deep fills the ring as fast as it is emptied.
 */
#define CONSUME_BYTES (256u << 10)
/*
 * Nor do they take longer in one go: what a code object refers to may have to be read from its process, and a process
 * that has just begun is not sampled before it was looked at.
 */
#define CONSUME_NS 5000000
/* A thousand starts in a second, each with some events, while pybpf has to wait for a CPU. */
#define PROCESS_RING_BYTES (1u << 20)
#define MAX_THREAD_NAMES   16384
/* Executable files that are remembered in the kernel. */
#define MAX_FILES 8192

/* What it went through in the end (BPF_LOG_STATS, include/linux/bpf_verifier.h, Linux 5.2). */
#define VERIFIER_STATS 4

static int libbpf_says(enum libbpf_print_level level, const char *fmt, va_list args)
{
	(void)level;
	log_vprintf_lines(LOG_DEBUG, fmt, args);
	return 0;
}

static uint32_t filter_size(const struct session_filter *filter)
{
	return (uint32_t)(filter->nr_included + filter->nr_excluded) ?: 1;
}

static int size_maps(struct session *s)
{
	struct pybpf_bpf *skel = s->skel;
	uint32_t stacks = s->options.max_stacks;
	int cpus = libbpf_num_possible_cpus(), err = 0;

	if (cpus < 0)
		return cpus;
	err = err ?: bpf_map__set_max_entries(skel->maps.procs, s->options.max_processes);
	err = err ?: bpf_map__set_max_entries(skel->maps.layouts, SESSION_MAX_LAYOUTS);
	err = err ?: bpf_map__set_max_entries(skel->maps.files, MAX_FILES);
	err = err ?: bpf_map__set_max_entries(skel->maps.users, filter_size(&s->options.users));
	err = err ?: bpf_map__set_max_entries(skel->maps.cgroups, filter_size(&s->options.cgroups));
	err = err ?: bpf_map__set_max_entries(skel->maps.process_events, PROCESS_RING_BYTES);
	err = err ?: bpf_map__set_max_entries(skel->maps.mappings, (uint32_t)cpus);
	err = err ?: bpf_map__set_max_entries(skel->maps.counts, stacks);
	err = err ?: bpf_map__set_max_entries(skel->maps.stacks, stacks);
	/* A program with more code objects than stacks has the rest read from the process. */
	err = err ?: bpf_map__set_max_entries(skel->maps.codes, stacks);
	err = err ?: bpf_map__set_max_entries(skel->maps.thread_names, s->options.threads ? MAX_THREAD_NAMES : 1);
	err = err ?: bpf_map__set_max_entries(skel->maps.scratches, (uint32_t)cpus);
	err = err ?: bpf_map__set_max_entries(skel->maps.bounces, (uint32_t)cpus);
	err = err ?: bpf_map__set_max_entries(skel->maps.events, RING_BYTES);
	return err;
}

static int choose_programs(struct session *s)
{
	struct pybpf_bpf *skel = s->skel;
	bool loop = s->kernel.bpf_loop;
	struct host_clock_offsets offsets;
	int err = host_clock_offsets(&offsets);

	skel->rodata->cfg_direct_reads = s->kernel.direct_reads;
	skel->rodata->cfg_checked_reads = s->kernel.checked_reads;
	skel->rodata->cfg_task_regs = s->kernel.task_regs;
	skel->rodata->cfg_task_storage = s->kernel.task_storage;
	skel->rodata->cfg_pidns_inum = host_pid_namespace();
	skel->rodata->cfg_boottime_offset = offsets.boottime;
	skel->rodata->cfg_monotonic_offset = offsets.monotonic;
	skel->rodata->cfg_threads = s->options.threads;
	skel->rodata->cfg_times = s->options.times;
	skel->rodata->cfg_all = s->options.all;
	skel->rodata->cfg_follow = s->options.follow;
	skel->rodata->cfg_hold = s->options.names != NULL;
	skel->rodata->cfg_self = (uint32_t)getpid();
	skel->rodata->cfg_cpus = (uint32_t)libbpf_num_possible_cpus();
	skel->rodata->cfg_users = s->options.users.nr_included || s->options.users.nr_excluded;
	skel->rodata->cfg_cgroups = s->options.cgroups.nr_included || s->options.cgroups.nr_excluded;
	skel->rodata->cfg_include_users = s->options.users.nr_included;
	skel->rodata->cfg_include_cgroups = s->options.cgroups.nr_included;
	skel->rodata->cfg_cgroup_subsystem = s->options.cgroup_subsystem;
	err = err ?: bpf_program__set_autoload(skel->progs.sample_loop, loop);
	err = err ?: bpf_program__set_autoload(skel->progs.sample_chain, !loop);
	err = err ?: bpf_program__set_autoload(skel->progs.chain_walk, !loop);
	err = err ?: bpf_program__set_autoload(skel->progs.chain_finish, !loop);
	if (!s->kernel.task_storage)
		err = err ?: bpf_map__set_autocreate(skel->maps.thread_storage, false) ?:
			     bpf_map__set_autocreate(skel->maps.thread_more_storage, false);
	else
		err = err ?: bpf_map__set_max_entries(skel->maps.thread_hash, 1);
	if (s->kernel.direct_reads)
		err = err ?: bpf_map__set_autocreate(skel->maps.bounces, false);
	return err;
}

static struct bpf_program *sampler(const struct session *s)
{
	return s->kernel.bpf_loop ? s->skel->progs.sample_loop : s->skel->progs.sample_chain;
}

static int fill_chain(const struct session *s)
{
	const struct bpf_program *programs[PYBPF_CHAIN_PROGRAMS] = {
		[PYBPF_CHAIN_WALK] = s->skel->progs.chain_walk,
		[PYBPF_CHAIN_FINISH] = s->skel->progs.chain_finish,
	};

	if (s->kernel.bpf_loop)
		return 0;
	for (uint32_t i = 0; i < PYBPF_CHAIN_PROGRAMS; i++) {
		int fd = bpf_program__fd(programs[i]);
		int err = bpf_map__update_elem(s->skel->maps.chain, &i, sizeof(i), &fd, sizeof(fd), 0);

		if (err)
			return err;
	}
	return 0;
}

static int fill_bounces(const struct session *s)
{
	const char bounce[PYBPF_READ_MAX] = "";
	int cpus = libbpf_num_possible_cpus(), err = 0;

	if (s->kernel.direct_reads)
		return 0;
	for (int cpu = 0; cpu < cpus && !err; cpu++) {
		const struct pybpf_bounce_key key = {.bits = PYBPF_BOUNCE_KEY_BITS, .cpu = (uint32_t)cpu};

		err = bpf_map__update_elem(s->skel->maps.bounces, &key, sizeof(key), bounce, sizeof(bounce), 0);
	}
	return err;
}

static int fill_filter(const struct bpf_map *map, const struct session_filter *filter)
{
	const uint8_t include = PYBPF_FILTER_INCLUDE, exclude = PYBPF_FILTER_EXCLUDE;
	size_t key_size = bpf_map__key_size(map);
	int err = 0;

	/* UIDs are the lower half of their numbers. */
	for (size_t i = 0; i < filter->nr_included && !err; i++)
		err = bpf_map__update_elem(map, &filter->included[i], key_size, &include, sizeof(include), 0);
	for (size_t i = 0; i < filter->nr_excluded && !err; i++)
		err = bpf_map__update_elem(map, &filter->excluded[i], key_size, &exclude, sizeof(exclude), 0);
	return err;
}

static int take_event(struct session *s, const struct pybpf_event *event)
{
	switch (event->type) {
	case PYBPF_EVENT_CODE:
		return pysym_add_code(s->pysym, (const void *)event, event->size);
	case PYBPF_EVENT_TIME:
		return session_times_add(&s->times, (const void *)event, event->size);
	default:
		return session_stacks_add(s->stacks, (const void *)event, event->size);
	}
}

static int on_event(void *ctx, void *data, size_t size)
{
	struct session *s = ctx;
	const struct pybpf_event *event = data;
	int err = 0;

	if (size < sizeof(*event) || event->size > size)
		return 0;
	err = take_event(s, event);
	if (err == -ENOENT) {
		/* What tells of its process is in the other buffer, unless that was full: then the stack is lost. */
		err = session_processes_consume(s->processes) ?: take_event(s, event);
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

/* log_level: of the verifier; 0: nothing, but all where it refuses a program. */
static int load_with(struct session *s, uint32_t log_level)
{
	const struct bpf_object_open_opts opts = {.sz = sizeof(opts), .kernel_log_level = log_level};
	int err;

	s->skel = pybpf_bpf__open_opts(&opts);
	if (!s->skel)
		return -errno;
	err = size_maps(s);
	err = err ?: choose_programs(s);
	err = err ?: pybpf_bpf__load(s->skel);
	err = err ?: fill_chain(s);
	err = err ?: fill_bounces(s);
	err = err ?: fill_filter(s->skel->maps.users, &s->options.users);
	err = err ?: fill_filter(s->skel->maps.cgroups, &s->options.cgroups);
	if (err) {
		pybpf_bpf__destroy(s->skel);
		s->skel = NULL;
	}
	return err;
}

static int load_verbosely(struct session *s)
{
	bool debug = log_enabled(LOG_DEBUG);
	int err = load_with(s, debug ? VERIFIER_STATS : 0);

	return err && debug ? load_with(s, 0) : err;
}

static int load(struct session *s)
{
	struct utsname host = {0};
	int err = load_verbosely(s);

	/*
	 * A verifier may not take the one program, and take it in parts: the stack of what bpf_loop calls
	 * counts on top of the caller's (512 bytes for all, on Linux 6.1).
	 */
	if (err && err != -EPERM && err != -ENOMEM && s->kernel.bpf_loop) {
		log_info("kernel: its verifier does not take the program with bpf_loop (%s): a chain of programs is "
			 "used",
			 strerror(-err));
		s->kernel.bpf_loop = false;
		err = load_verbosely(s);
	}
	if (!err)
		return 0;
	uname(&host);
	log_error("cannot load the BPF programs into this kernel (%s): %s; see `pybpf doctor`, and -vv for the "
		  "verifier's log",
		  host.release, strerror(-err));
	return err;
}

/* What the kernel says that the maps take. */
static uint64_t map_bytes(const struct session *s)
{
	const struct bpf_map *map;
	uint64_t total = 0;

	bpf_object__for_each_map(map, s->skel->obj)
	{
		uint64_t bytes = 0;

		if (bpf_map__fd(map) >= 0 && procfs_fdinfo(bpf_map__fd(map), "memlock:", &bytes) == 0)
			total += bytes;
	}
	return total;
}

/* So often the memory is looked at. */
#define MEMORY_LOOK_S 0.1

/* At the limit, stacks that are not known yet are lost from then on; the kernel counts them. */
static void keep_memory(struct session *s, double now)
{
	uint64_t kib;

	if (s->skel->bss->memory_full || now < s->next_memory_look)
		return;
	s->next_memory_look = now + MEMORY_LOOK_S;
	if (procfs_rss(getpid(), &kib) || kib * 1024 + s->map_bytes < s->options.max_memory)
		return;
	s->skel->bss->memory_full = true;
	log_warn("the memory limit of %llu MiB is reached: new stacks are not kept any more, see --max-memory",
		 (unsigned long long)(s->options.max_memory >> 20));
}

static int met_file(void *arg, uint64_t proc_id, const struct pybpf_rights *rights, const char *file, const char *path)
{
	struct session *s = arg;

	return session_sources_met(s->sources, proc_id, rights, file, path);
}

static int choose_source(struct session *s)
{
	if (s->options.source == SESSION_PERF_CPU_CLOCK || session_kernel_takes_cycles(&s->kernel))
		return 0;
	if (s->options.source == SESSION_PERF_CYCLES) {
		log_error("-e cycles: on this kernel, an interrupt by the CPU's cycles cannot tell whose memory it "
			  "reads; "
			  "use -e cpu-clock");
		return -ENOTSUP;
	}
	s->options.source = SESSION_PERF_CPU_CLOCK;
	return 0;
}

struct session *session_new(const struct session_options *options)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		goto no_memory;
	s->options = *options;
	session_times_init(&s->times);
	s->stats_fd = -1;
	libbpf_set_print(libbpf_says);
	session_kernel_probe(&s->kernel);
	if (options->without && session_kernel_without(&s->kernel, options->without)) {
		log_error("--without-kernel-feature %s: the features are bpf_loop, checked_reads, direct_reads, "
			  "task_regs and task_storage",
			  options->without);
		goto failed;
	}
	log_info("kernel: bpf_loop %s, task registers %s, task storage %s, user memory read %s",
		 s->kernel.bpf_loop ? "used" : "not used", s->kernel.task_regs ? "used" : "not used",
		 s->kernel.task_storage ? "used" : "not used", s->kernel.direct_reads ? "directly" : "in two steps");
	if (choose_source(s))
		goto failed;
	if (load(s))
		goto failed;
	s->pysym = pysym_new(options->lines, options->full_filenames);
	s->profile = profile_new();
	s->stacks = session_stacks_new(s->pysym, s->profile);
	s->files = session_files_new(s);
	if (!s->pysym || !s->profile || !s->stacks || !s->files)
		goto no_memory;
	s->processes = session_processes_new(s);
	if (!s->processes)
		goto failed;
	if (options->sources) {
		s->sources = session_sources_new(s);
		if (!s->sources)
			goto no_memory;
		session_stacks_tell_files(s->stacks, met_file, s);
	}
	pysym_look_at_paths_by(s->pysym, source_file_shown_at);
	s->map_bytes = map_bytes(s);
	profile_set_roots(s->profile, options->roots);
	s->ring = ring_buffer__new(bpf_map__fd(s->skel->maps.events), on_event, s, NULL);
	if (!s->ring) {
		log_error("cannot map the ring buffer: %s", strerror(errno));
		goto failed;
	}
	if (options->measure_kernel)
		s->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
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
	session_processes_free(s->processes);
	session_files_free(s->files);
	ring_buffer__free(s->ring);
	if (s->stats_fd >= 0)
		close(s->stats_fd);
	session_stacks_free(s->stacks);
	session_times_free(&s->times);
	session_sources_free(s->sources);
	pysym_free(s->pysym);
	profile_free(s->profile);
	pybpf_bpf__destroy(s->skel);
	free(s);
}

int session_put_layout(struct session *s, const struct pybpf_layout *layout)
{
	int err;

	for (uint32_t i = 0; i < s->nr_layouts; i++) {
		if (memcmp(&s->layouts[i], layout, sizeof(*layout)) == 0)
			return (int)i;
	}
	if (s->nr_layouts == SESSION_MAX_LAYOUTS)
		return -E2BIG;
	err = bpf_map__update_elem(s->skel->maps.layouts, &s->nr_layouts, sizeof(s->nr_layouts), layout,
				   sizeof(*layout), 0);
	if (err)
		return err;
	s->layouts[s->nr_layouts] = *layout;
	return (int)s->nr_layouts++;
}

const struct pybpf_layout *session_layout(const struct session *s, uint32_t index)
{
	return &s->layouts[index];
}

int session_follow(struct session *s, const uint32_t *pids, size_t count)
{
	return session_processes_start(s->processes, pids, count);
}

int session_attach(struct session *s)
{
	s->attach_ns = clock_ns(CLOCK_MONOTONIC);
	s->start_ns = clock_ns(CLOCK_REALTIME);
	return session_perf_attach(&s->perf, sampler(s), s->options.freq, s->options.source);
}

double session_jitter(struct session *s)
{
	return session_perf_jitter(&s->perf);
}

void session_detach(struct session *s)
{
	if (s->attach_ns && !s->detach_ns)
		s->detach_ns = clock_ns(CLOCK_MONOTONIC);
	if (s->perf.count) {
		s->options.source = s->perf.source;
		s->cpus = s->perf.count;
	}
	session_perf_detach(&s->perf);
}

void session_fds(const struct session *s, int fds[SESSION_FDS])
{
	fds[0] = ring_buffer__epoll_fd(s->ring);
	session_processes_fds(s->processes, fds + 1);
}

int session_consume(struct session *s)
{
	int n = session_processes_consume(s->processes);

	if (n)
		return n;
	s->consumed = 0;
	s->consume_until_ns = clock_ns(CLOCK_MONOTONIC) + CONSUME_NS;
	n = ring_buffer__consume(s->ring);
	if (s->error)
		return s->error;
	if (n == -EAGAIN)
		return 1;
	return n < 0 && n != -EINTR ? n : 0;
}

double session_tend(struct session *s)
{
	double now = clock_s(CLOCK_MONOTONIC), next;

	session_processes_look(s->processes, now);
	session_processes_label(s->processes, now);
	keep_memory(s, now);
	if (now >= s->next_collect) {
		int err = session_collect_ended(s, now);

		if (err)
			return err;
	}
	next = session_processes_next_look(s->processes);
	return next < s->next_collect ? next : s->next_collect;
}

bool session_all_ended(const struct session *s)
{
	return !s->options.all && session_processes_living(s->processes) == 0;
}

bool session_uses_bpf_loop(const struct session *s)
{
	return s->kernel.bpf_loop;
}

bool session_python_found(const struct session *s)
{
	return session_processes_python_found(s->processes);
}

// SPDX-License-Identifier: Apache-2.0
#include "session.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "log.h"
#include "pybpf.skel.h"
#include "session_internal.h"

/*
 * New stacks and code objects cross here, each once. A start-up that meets thousands of them at once at 10 kHz needs
 * some 2 MiB until user space runs; what does not fit is sent at its next sample.
 */
#define RING_BYTES (4u << 20)
/* So much is taken at a time: a program all of whose stacks are new and deep fills the ring as fast as it is emptied.
 */
#define CONSUME_BYTES (256u << 10)
/* Distinct builds of Python in one run. */
#define MAX_LAYOUTS      256
#define MAX_PROCESSES    4096
#define MAX_THREAD_NAMES 16384
/* proc_id's first value differs from what fresh kernel memory holds. */
#define FIRST_PROC_ID 1

/* What it went through in the end (BPF_LOG_STATS, include/linux/bpf_verifier.h, Linux 5.2). */
#define VERIFIER_STATS 4

/* Inode of the initial PID namespace (PROC_PID_INIT_INO, include/linux/proc_ns.h). */
#define PID_NS_INITIAL 0xEFFFFFFCu

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int libbpf_says(enum libbpf_print_level level, const char *fmt, va_list args)
{
	(void)level;
	log_vprintf(LOG_DEBUG, fmt, args);
	return 0;
}

static uint32_t pid_namespace(void)
{
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) || st.st_ino == PID_NS_INITIAL)
		return 0;
	return (uint32_t)st.st_ino;
}

static int size_maps(struct session *s)
{
	struct pybpf_bpf *skel = s->skel;
	uint32_t stacks = s->options.max_stacks;
	int cpus = libbpf_num_possible_cpus(), err = 0;

	if (cpus < 0)
		return cpus;
	err = err ?: bpf_map__set_max_entries(skel->maps.procs, MAX_PROCESSES);
	err = err ?: bpf_map__set_max_entries(skel->maps.layouts, MAX_LAYOUTS);
	err = err ?: bpf_map__set_max_entries(skel->maps.counts, stacks);
	err = err ?: bpf_map__set_max_entries(skel->maps.stacks, stacks);
	/* A program with more code objects than stacks has the rest read from the process. */
	err = err ?: bpf_map__set_max_entries(skel->maps.codes, stacks);
	err = err ?: bpf_map__set_max_entries(skel->maps.thread_names, s->options.threads ? MAX_THREAD_NAMES : 1);
	err = err ?: bpf_map__set_max_entries(skel->maps.scratches, (uint32_t)cpus);
	err = err ?: bpf_map__set_max_entries(skel->maps.events, RING_BYTES);
	return err;
}

static int choose_programs(struct session *s)
{
	struct pybpf_bpf *skel = s->skel;
	bool loop = s->kernel.bpf_loop;
	int err = 0;

	skel->rodata->cfg_task_regs = s->kernel.task_regs;
	skel->rodata->cfg_task_storage = s->kernel.task_storage;
	skel->rodata->cfg_pidns_inum = pid_namespace();
	skel->rodata->cfg_threads = s->options.threads;
	err = err ?: bpf_program__set_autoload(skel->progs.sample_loop, loop);
	err = err ?: bpf_program__set_autoload(skel->progs.sample_chain, !loop);
	err = err ?: bpf_program__set_autoload(skel->progs.chain_walk, !loop);
	err = err ?: bpf_program__set_autoload(skel->progs.chain_finish, !loop);
	if (!s->kernel.task_storage)
		err = err ?: bpf_map__set_autocreate(skel->maps.thread_storage, false);
	else
		err = err ?: bpf_map__set_max_entries(skel->maps.thread_hash, 1);
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

static int on_event(void *ctx, void *data, size_t size)
{
	struct session *s = ctx;
	const struct pybpf_event *event = data;
	int err = 0;

	if (size < sizeof(*event) || event->size > size)
		return 0;
	if (event->type == PYBPF_EVENT_CODE)
		err = pysym_add_code(s->pysym, data, event->size);
	else if (event->type == PYBPF_EVENT_STACK)
		err = session_stacks_add(s->stacks, data, event->size);
	else if (event->type == PYBPF_EVENT_EXEC && size >= sizeof(struct pybpf_exec_event))
		s->exec_pid = (pid_t)((const struct pybpf_exec_event *)data)->tgid;
	if (err && !s->error) {
		s->error = err;
		log_error("cannot keep what the kernel sent: %s", strerror(-err));
	}
	s->consumed += (uint32_t)size;
	return s->consumed < CONSUME_BYTES ? 0 : -EAGAIN;
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
	if (err) {
		pybpf_bpf__destroy(s->skel);
		s->skel = NULL;
	}
	return err;
}

static int load(struct session *s)
{
	bool debug = log_enabled(LOG_DEBUG);
	struct utsname host = {0};
	int err = load_with(s, debug ? VERIFIER_STATS : 0);

	if (err && debug)
		err = load_with(s, 0);
	if (!err)
		return 0;
	uname(&host);
	log_error("cannot load the BPF programs into this kernel (%s): %s; see `pybpf doctor`, and -vv for the "
		  "verifier's log",
		  host.release, strerror(-err));
	return err;
}

struct session *session_new(const struct session_options *options)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		goto no_memory;
	s->options = *options;
	s->stats_fd = -1;
	s->next_proc_id = FIRST_PROC_ID;
	libbpf_set_print(libbpf_says);
	session_kernel_probe(&s->kernel);
	if (options->without && session_kernel_without(&s->kernel, options->without)) {
		log_error("--without-kernel-feature %s: the features are bpf_loop, task_regs and task_storage",
			  options->without);
		goto failed;
	}
	log_info("kernel: bpf_loop %s, task registers %s, task storage %s", s->kernel.bpf_loop ? "used" : "not used",
		 s->kernel.task_regs ? "used" : "not used", s->kernel.task_storage ? "used" : "not used");
	if (load(s))
		goto failed;
	s->pysym = pysym_new(options->lines, options->full_filenames);
	s->profile = profile_new();
	s->stacks = session_stacks_new(s->pysym, s->profile);
	if (!s->pysym || !s->profile || !s->stacks)
		goto no_memory;
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
	ring_buffer__free(s->ring);
	if (s->stats_fd >= 0)
		close(s->stats_fd);
	session_stacks_free(s->stacks);
	pysym_free(s->pysym);
	profile_free(s->profile);
	pybpf_bpf__destroy(s->skel);
	free(s);
}

/* Puts the layout where the kernel finds it; an equal one is used again. Returns its index or negative errno. */
static int put_layout(struct session *s, const struct pybpf_layout *layout)
{
	struct pybpf_layout known;
	int err;

	for (uint32_t i = 0; i < s->nr_layouts; i++) {
		err = bpf_map__lookup_elem(s->skel->maps.layouts, &i, sizeof(i), &known, sizeof(known), 0);
		if (err)
			return err;
		if (memcmp(&known, layout, sizeof(known)) == 0)
			return (int)i;
	}
	if (s->nr_layouts == MAX_LAYOUTS)
		return -E2BIG;
	err = bpf_map__update_elem(s->skel->maps.layouts, &s->nr_layouts, sizeof(s->nr_layouts), layout,
				   sizeof(*layout), 0);
	return err ? err : (int)s->nr_layouts++;
}

int session_set_other(struct session *s, pid_t pid)
{
	struct pybpf_proc proc = {.state = PYBPF_PROC_OTHER};
	uint32_t tgid = (uint32_t)pid;

	return bpf_map__update_elem(s->skel->maps.procs, &tgid, sizeof(tgid), &proc, sizeof(proc), 0);
}

int session_set_process(struct session *s, pid_t pid, const struct discovery_python *python)
{
	struct pybpf_proc proc = {.state = PYBPF_PROC_PENDING};
	uint32_t tgid = (uint32_t)pid;

	if (python) {
		int layout = put_layout(s, &python->build.layout), err;

		if (layout < 0)
			return layout;
		proc = (struct pybpf_proc){
			.interp_head = python->interp_head_addr,
			.tstate_current = python->tstate_current_addr,
			.code_type = python->code_type_addr,
			.proc_id = s->next_proc_id++,
			.layout = (uint32_t)layout,
			.state = PYBPF_PROC_READY,
		};
		err = pysym_add_process(s->pysym, proc.proc_id, pid, python->comm, &python->build.layout);
		if (err)
			return err;
	}
	return bpf_map__update_elem(s->skel->maps.procs, &tgid, sizeof(tgid), &proc, sizeof(proc), 0);
}

int session_attach(struct session *s)
{
	int err;

	s->exec_link = bpf_program__attach(s->skel->progs.process_exec);
	if (!s->exec_link) {
		err = -errno;
		log_error("cannot follow exec (tp_btf/sched_process_exec): %s; see `pybpf doctor`", strerror(-err));
		return err;
	}
	s->attach_ns = now_ns();
	return session_perf_attach(&s->perf, sampler(s), s->options.freq, s->options.source);
}

double session_jitter(struct session *s)
{
	return session_perf_jitter(&s->perf);
}

void session_detach(struct session *s)
{
	if (s->attach_ns && !s->detach_ns)
		s->detach_ns = now_ns();
	if (s->perf.count)
		s->options.source = s->perf.source;
	session_perf_detach(&s->perf);
	bpf_link__destroy(s->exec_link);
	s->exec_link = NULL;
}

int session_fd(const struct session *s)
{
	return ring_buffer__epoll_fd(s->ring);
}

int session_consume(struct session *s)
{
	int n;

	s->consumed = 0;
	n = ring_buffer__consume(s->ring);
	if (s->error)
		return s->error;
	if (n == -EAGAIN)
		return 1;
	return n < 0 && n != -EINTR ? n : 0;
}

bool session_took_exec(struct session *s, pid_t pid)
{
	bool took = s->exec_pid == pid;

	if (took)
		s->exec_pid = 0;
	return took;
}

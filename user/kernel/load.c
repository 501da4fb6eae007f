// SPDX-License-Identifier: Apache-2.0
/* From options to loaded programs: sizes of maps, constants, which programs are loaded, what maps hold at first. */
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/host.h"
#include "base/host_kernel.h"
#include "base/log.h"
#include "kernel/calls.h"
#include "kernel/cpus.h"
#include "kernel/internal.h"
#include "kernel/kernel_types.h"
#include "kernel/min_btf.h"
#include "kernel/native.h"
#include "kernel/prepare.h"
#include "kernel/procs.h"
#include "kernel/waits.h"
#include "cpython/opcodes.h"

/*
 * Size of the ring buffer through which each new stack and code object is sent once. A start-up that meets thousands of
 * them at once at 10 kHz needs some 2 MiB until user space runs; one that does not fit is sent at its next sample.
 */
#define RING_BYTES (4u << 20)
/*
 * With records of memory. Each page that is touched is one of 88 bytes: those of a second of a thread that does nothing
 * else, unless that is more than one part in RING_SHARE of the memory limit.
 */
#define MEMORY_RING_BYTES (16u << 20)
#define RING_SHARE        16
/* Room for a thousand starts in a second, each with some events, while pybpf has to wait for a CPU. */
#define PROCESS_RING_BYTES (1u << 20)
#define MAX_THREAD_NAMES   16384
/* One of this many counts may be of samples without Python frames. */
#define NO_FRAMES_PART 4
/* Cgroups of containers that start during a run, or restart. */
#define MORE_CGROUPS 1024
/* Executable files that the kernel's map remembers. */
#define MAX_FILES 8192
/* Threads that touch memory; of others that run at the same time, the page of a fault may be unknown. */
#define MAX_MEMORY_THREADS 8192
/* Threads of the wanted processes, and what they wait for, with their stacks. */
#define MAX_THREADS    32768
#define WAITS_OF_STACK 4
/* Threads that poll one descriptor when the run begins. */
#define MAX_POLLED 8192
/* Threads with event loops, and places where these are blocked. */
#define MAX_LOOPS  4096
#define MAX_BLOCKS 4096

/* What it went through in the end (BPF_LOG_STATS, include/linux/bpf_verifier.h, Linux 5.2). */
#define VERIFIER_STATS 4

static uint32_t filter_size(const struct kernel_filter *filter)
{
	return (uint32_t)(filter->nr_included + filter->nr_excluded) ?: 1;
}

/* A power of two, as the kernel wants it. */
static uint32_t ring_bytes(const struct kernel_options *options)
{
	uint32_t bytes = RING_BYTES;

	while (options->held && bytes < MEMORY_RING_BYTES && bytes * 2 <= options->max_memory / RING_SHARE)
		bytes *= 2;
	return bytes;
}

/* Only the time of threads is measured in a switch. */
static uint32_t contexts_of(const struct kernel *k)
{
	return k->options.waits ? PYBPF_CONTEXTS : PYBPF_CONTEXT_SWITCH;
}

/* Programs refer to these maps even in runs without --native, so they need an entry. */
static int size_native(const struct kernel *k, uint32_t cpus)
{
	const struct pybpf_bpf *skel = k->skel;
	uint32_t scratches = cpus * contexts_of(k);
	bool native = k->options.native;
	int err = bpf_map__set_max_entries(skel->maps.native_chunks, native ? k->options.native_chunks : 1);

	err = err ?: bpf_map__set_max_entries(skel->maps.native_lists, native ? k->options.max_processes : 1);
	return err ?: bpf_map__set_max_entries(skel->maps.native_scratches, native ? scratches : 1);
}

static int size_maps(struct kernel *k)
{
	struct pybpf_bpf *skel = k->skel;
	uint32_t stacks = k->options.max_stacks;
	int cpus = kernel_present_cpus(), err = cpus < 0 ? cpus : 0;

	err = err ?: bpf_map__set_max_entries(skel->maps.procs, k->options.max_processes);
	err = err ?: bpf_map__set_max_entries(skel->maps.memory_sizes, k->options.max_processes);
	err = err ?: bpf_map__set_max_entries(skel->maps.memory_threads, MAX_MEMORY_THREADS);
	err = err ?: bpf_map__set_max_entries(skel->maps.layouts, KERNEL_MAX_LAYOUTS);
	err = err ?: bpf_map__set_max_entries(skel->maps.files, MAX_FILES);
	err = err ?: bpf_map__set_max_entries(skel->maps.users, filter_size(&k->options.users));
	err = err ?: bpf_map__set_max_entries(skel->maps.cgroups, filter_size(&k->options.cgroups) + MORE_CGROUPS);
	err = err ?: bpf_map__set_max_entries(skel->maps.process_events, PROCESS_RING_BYTES);
	for (int set = 0; set < PYBPF_SETS && !err; set++) {
		const struct kernel_set maps = kernel_get_set(k, set);

		err = bpf_map__set_max_entries(maps.counts, stacks);
		err = err ?: bpf_map__set_max_entries(maps.stacks, stacks);
		/* If a program has more code objects than stacks, pybpf reads the rest from the process. */
		err = err ?: bpf_map__set_max_entries(maps.codes, stacks);
		/* Each set holds the waits of one epoch. */
		err = err
			      ?: bpf_map__set_max_entries(maps.wait_times,
							  stacks * WAITS_OF_STACK /
								  (kernel_has_wait_sets(k) ? PYBPF_SETS : 1));
	}
	err = err ?: bpf_map__set_max_entries(skel->maps.thread_names, k->options.threads ? MAX_THREAD_NAMES : 1);
	err = err ?: bpf_map__set_max_entries(skel->maps.threads, MAX_THREADS);
	err = err ?: bpf_map__set_max_entries(skel->maps.waits, KERNEL_WAITS_MAX);
	err = err ?: bpf_map__set_max_entries(skel->maps.polled, MAX_POLLED);
	err = err ?: bpf_map__set_max_entries(skel->maps.callbacks, k->options.loop_block_ns ? MAX_LOOPS : 1);
	err = err ?: bpf_map__set_max_entries(skel->maps.blocks, k->options.loop_block_ns ? MAX_BLOCKS : 1);
	err = err ?: bpf_map__set_max_entries(skel->maps.wakers, k->options.wakers ? stacks : 1);
	err = err ?: bpf_map__set_max_entries(skel->maps.scratches, (uint32_t)cpus * contexts_of(k));
	err = err ?: size_native(k, (uint32_t)cpus);
	err = err ?: bpf_map__set_max_entries(skel->maps.bounces, (uint32_t)cpus);
	err = err ?: bpf_map__set_max_entries(skel->maps.events, ring_bytes(&k->options));
	return err;
}

/*
 * Has the kernel take memory for the entries that there are, and not for all that there may be: a machine has a tenth
 * of the processes and threads that there is room for. Before Linux 6.1 (bpf: Introduce any context BPF specific memory
 * allocator) an entry that is added while the scheduler's lock is held may wait for that lock.
 */
static int grow_with_entries(struct kernel *k)
{
	struct pybpf_bpf *skel = k->skel;
	struct bpf_map *maps[] = {skel->maps.procs,        skel->maps.native_lists,
				  skel->maps.threads,      skel->maps.wait_times,
				  skel->maps.wait_times_2, bpf_map__inner_map(skel->maps.wait_times_sets),
				  skel->maps.waits,        skel->maps.polled};
	struct host_kernel host;
	int err = 0;

	host_kernel_look(&host);
	if (!host_kernel_at_least(&host, 6, 1))
		return 0;
	for (size_t i = 0; i < sizeof(maps) / sizeof(*maps) && !err; i++)
		err = bpf_map__set_map_flags(maps[i], BPF_F_NO_PREALLOC);
	return err;
}

/* The programs and maps of the time of threads. */
static int choose_waits(struct kernel *k)
{
	struct pybpf_bpf *skel = k->skel;
	struct bpf_program *programs[] = {skel->progs.wait_switch,    skel->progs.wait_wakeup, skel->progs.wait_new,
					  skel->progs.wait_exit,      skel->progs.wait_exec,   skel->progs.wait_find,
					  skel->progs.wait_see_polled};
	struct bpf_map *maps[] = {skel->maps.threads, skel->maps.wait_times, skel->maps.wait_times_sets,
				  skel->maps.waits, skel->maps.polled};
	struct host_kernel host;
	int err = 0;

	host_kernel_look(&host);
	skel->rodata->cfg_switch_state = host_kernel_at_least(&host, 5, 18);
	skel->rodata->cfg_waits = k->options.waits;
	skel->rodata->cfg_wait_detail = k->options.wait_detail;
	skel->rodata->cfg_min_block_ns = k->options.min_block_ns;
	skel->rodata->cfg_gil_waits = k->options.gil_waits;
	skel->rodata->cfg_states_only = k->options.states;
	skel->rodata->cfg_wait_sets = kernel_has_wait_sets(k);
	kernel_fill_calls((uint8_t *)skel->rodata->cfg_calls);
	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs) && !err; i++)
		err = bpf_program__set_autoload(programs[i], k->options.waits);
	for (size_t i = 0; i < sizeof(maps) / sizeof(*maps) && !err; i++)
		err = bpf_map__set_autocreate(maps[i], k->options.waits);
	err = err ?: bpf_map__set_autocreate(skel->maps.wait_times_2, kernel_has_wait_sets(k));
	err = err ?: bpf_program__set_autoload(skel->progs.wait_waking, k->options.wakers);
	err = err ?: bpf_map__set_autocreate(skel->maps.wakers, k->options.waits);
	return err ?: bpf_map__set_autocreate(skel->maps.gil_waits, k->options.waits);
}

/* The programs and maps of the growth of memory. */
static int choose_memory(struct kernel *k, bool memory)
{
	struct pybpf_bpf *skel = k->skel;
	bool held = memory && k->options.held;
	int err = 0;

	skel->rodata->cfg_held = held;
	skel->rodata->cfg_memory_calls = kernel_memory_calls;
	err = err ?: bpf_program__set_autoload(skel->progs.sample_memory, memory);
	err = err ?: bpf_program__set_autoload(skel->progs.memory_fault, held);
	err = err ?: bpf_program__set_autoload(skel->progs.memory_mapped, held);
	err = err ?: bpf_map__set_autocreate(skel->maps.memory_threads, memory);
	return err ?: bpf_map__set_autocreate(skel->maps.memory_sizes, memory);
}

/*
 * The kernel counts these itself, in the thread that caused them and with its memory: also a switch of threads, at
 * which the run queue has the next one already (perf_event_task_sched_out(), before switch_mm_irqs_off()).
 */
static bool counts_in_software(const struct kernel *k)
{
	for (size_t i = 0; i < k->options.nr_events; i++) {
		const struct kernel_event *event = &k->options.events[i];

		if (event->category || event->path || event->type != PERF_TYPE_SOFTWARE)
			return false;
	}
	return k->options.nr_events > 0;
}

static int choose_programs(struct kernel *k)
{
	struct pybpf_bpf *skel = k->skel;
	bool loop = k->features.bpf_loop;
	struct host_clock_offsets offsets;
	struct kernel_event_needs needs;
	int err = host_read_clock_offsets(&offsets);

	err = err ?: kernel_check_events(k, &needs);
	if (err)
		return err;

	skel->rodata->cfg_direct_reads = k->features.direct_reads;
	skel->rodata->cfg_checked_reads = k->features.checked_reads || counts_in_software(k);
	skel->rodata->cfg_rolling = k->options.rolling;
	skel->rodata->cfg_kind = needs.kind;
	skel->rodata->cfg_tracepoint_period = needs.tracepoint_period;
	skel->rodata->cfg_cookies = needs.cookies;
	skel->rodata->cfg_task_regs = k->features.task_regs;
	skel->rodata->cfg_task_storage = k->features.task_storage;
	skel->rodata->cfg_pidns_inum = host_pid_namespace();
	skel->rodata->cfg_boottime_offset = offsets.boottime;
	skel->rodata->cfg_monotonic_offset = offsets.monotonic;
	skel->rodata->cfg_threads = k->options.threads;
	skel->rodata->cfg_async = k->options.tasks;
	skel->rodata->cfg_times = k->options.times;
	skel->rodata->cfg_kernel_stacks = k->options.kernel_stacks;
	skel->rodata->cfg_native = k->options.native;
	skel->rodata->cfg_native_exact = k->options.native_exact;
	skel->rodata->cfg_gil = k->options.gil;
	skel->rodata->cfg_exception = k->options.exception;
	skel->rodata->cfg_gc = k->options.gc;
	skel->rodata->cfg_opcodes = k->options.opcodes;
	opcodes_fill_caches((uint8_t(*)[256])skel->rodata->cfg_caches);
	skel->rodata->cfg_python_only = k->options.python_only;
	skel->rodata->cfg_max_no_frames = k->options.max_stacks / NO_FRAMES_PART;
	skel->rodata->cfg_all = k->options.all;
	skel->rodata->cfg_follow = k->options.follow;
	skel->rodata->cfg_hold = k->options.hold;
	skel->rodata->cfg_self = (uint32_t)getpid();
	skel->rodata->cfg_cpus = (uint32_t)libbpf_num_possible_cpus();
	skel->rodata->cfg_contexts = contexts_of(k);
	skel->rodata->cfg_users = k->options.users.nr_included || k->options.users.nr_excluded;
	skel->rodata->cfg_cgroups = k->options.cgroups.nr_included || k->options.cgroups.nr_excluded;
	skel->rodata->cfg_include_users = k->options.users.nr_included;
	skel->rodata->cfg_include_cgroups = k->options.cgroups.nr_included;
	skel->rodata->cfg_cgroup_subsystem = k->options.cgroup_subsystem;
	skel->rodata->cfg_ancestor_cgroups = k->features.ancestor_cgroups;
	err = err ?: choose_waits(k);
	skel->rodata->cfg_loop_block_ns = k->options.loop_block_ns;
	err = err ?: bpf_program__set_autoload(skel->progs.sample_loop, loop);
	err = err ?: bpf_program__set_autoload(skel->progs.cgroup_made, k->options.cgroups.nr_included);
	err = err ?: bpf_program__set_autoload(skel->progs.sample_tracepoint, needs.tracepoints);
	err = err ?: bpf_program__set_autoload(skel->progs.sample_uprobe, needs.functions);
	err = err ?: choose_memory(k, needs.memory);
	err = err ?: bpf_program__set_autoload(skel->progs.sample_chain, !loop);
	err = err ?: bpf_program__set_autoload(skel->progs.chain_walk, !loop);
	err = err ?: bpf_program__set_autoload(skel->progs.chain_finish, !loop);
	if (!k->features.task_storage)
		err = err ?: bpf_map__set_autocreate(skel->maps.thread_storage, false) ?:
			     bpf_map__set_autocreate(skel->maps.thread_more_storage, false);
	else
		err = err ?: bpf_map__set_max_entries(skel->maps.thread_hash, 1);
	if (k->features.direct_reads)
		err = err ?: bpf_map__set_autocreate(skel->maps.bounces, false);
	for (int set = 1; set < PYBPF_SETS && !k->options.rolling; set++) {
		const struct kernel_set maps = kernel_get_set(k, set);

		err = err ?: bpf_map__set_autocreate(maps.counts, false) ?: bpf_map__set_autocreate(maps.stacks, false);
		err = err ?: bpf_map__set_autocreate(maps.codes, false);
	}
	return err;
}

/* Returns whether the first argument of a function is a pointer to a struct. */
static bool takes_struct(const struct btf *btf, const struct btf_type *function)
{
	const struct btf_type *prototype = btf__type_by_id(btf, function->type), *first;

	if (!btf_vlen(prototype))
		return false;
	first = btf__type_by_id(btf, btf_params(prototype)->type);
	return btf_is_ptr(first) && btf__resolve_type(btf, first->type) >= 0 &&
	       btf_is_struct(btf__type_by_id(btf, (uint32_t)btf__resolve_type(btf, first->type)));
}

/*
 * Kernels without bpf_loop may refuse global functions that take pointers (before 5.13, e5069b9c23b3). There they
 * become static ones, through which the verifier goes at each call. libbpf does the same with hidden functions; the
 * type is that of the object, which is not loaded yet.
 */
static void make_functions_static(const struct kernel *k)
{
	const struct btf *btf = bpf_object__btf(k->skel->obj);

	for (uint32_t id = 1; !k->features.bpf_loop && id < btf__type_cnt(btf); id++) {
		struct btf_type *type = (struct btf_type *)btf__type_by_id(btf, id);

		if (btf_is_func(type) && takes_struct(btf, type))
			type->info = (type->info & ~0xffffu) | BTF_FUNC_STATIC;
	}
}

static int put_map(const struct bpf_map *sets, uint32_t set, const struct bpf_map *map)
{
	int fd = bpf_map__fd(map);

	return bpf_map__update_elem(sets, &set, sizeof(set), &fd, sizeof(fd), 0);
}

static int fill_sets(const struct kernel *k)
{
	int err = 0;

	for (uint32_t set = 0; k->options.rolling && set < PYBPF_SETS && !err; set++) {
		const struct kernel_set maps = kernel_get_set(k, (int)set);

		err = put_map(k->skel->maps.counts_sets, set, maps.counts);
		err = err ?: put_map(k->skel->maps.stacks_sets, set, maps.stacks);
		err = err ?: put_map(k->skel->maps.codes_sets, set, maps.codes);
		if (kernel_has_wait_sets(k))
			err = err ?: put_map(k->skel->maps.wait_times_sets, set, maps.wait_times);
	}
	return err;
}

static int fill_chain(const struct kernel *k)
{
	const struct bpf_program *programs[PYBPF_CHAIN_PROGRAMS] = {
		[PYBPF_CHAIN_WALK] = k->skel->progs.chain_walk,
		[PYBPF_CHAIN_FINISH] = k->skel->progs.chain_finish,
	};

	if (k->features.bpf_loop)
		return 0;
	for (uint32_t i = 0; i < PYBPF_CHAIN_PROGRAMS; i++) {
		int fd = bpf_program__fd(programs[i]);
		int err = bpf_map__update_elem(k->skel->maps.chain, &i, sizeof(i), &fd, sizeof(fd), 0);

		if (err)
			return err;
	}
	return 0;
}

static int fill_bounces(const struct kernel *k)
{
	const char bounce[PYBPF_READ_MAX] = "";
	int cpus = kernel_present_cpus(), err = 0;

	if (k->features.direct_reads)
		return 0;
	for (int cpu = 0; cpu < cpus && !err; cpu++) {
		const struct pybpf_bounce_key key = {.bits = PYBPF_BOUNCE_KEY_BITS, .cpu = (uint32_t)cpu};

		err = bpf_map__update_elem(k->skel->maps.bounces, &key, sizeof(key), bounce, sizeof(bounce), 0);
	}
	return err;
}

static int fill_filter(const struct bpf_map *map, const struct kernel_filter *filter)
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

/* btf: an empty file, for those of the kernel's types that the programs can name. */
static int load_programs(struct kernel *k, int btf)
{
	struct kernel_types types;
	int err = kernel_types_open(&types);

	if (err) {
		log_info("kernel: its types (/sys/kernel/btf/vmlinux) cannot be read: %s", strerror(-err));
		return err;
	}
	err = kernel_write_min_btf(&types, bpf_object__btf(k->skel->obj), btf);
	kernel_prepare_with(&types, k->skel->maps.rodata);
	err = err ?: pybpf_bpf__load(k->skel);
	kernel_prepare_with(NULL, NULL);
	kernel_types_close(&types);
	return err;
}

/* btf: as load_programs. */
static int load_object(struct kernel *k, const struct bpf_object_open_opts *opts, int btf)
{
	int err = kernel_prepare_programs();

	if (err)
		return err;
	k->skel = pybpf_bpf__open_opts(opts);
	if (!k->skel)
		return -errno;
	err = size_maps(k);
	err = err ?: grow_with_entries(k);
	err = err ?: choose_programs(k);
	make_functions_static(k);
	err = err ?: load_programs(k, btf);
	err = err ?: fill_sets(k);
	err = err ?: fill_chain(k);
	err = err ?: fill_bounces(k);
	err = err ?: k->options.run ? kernel_begin_proc_ids(k) : 0;
	err = err ?: fill_filter(k->skel->maps.users, &k->options.users);
	err = err ?: fill_filter(k->skel->maps.cgroups, &k->options.cgroups);
	/* Adds the first chunk before any program runs; later it would have to wait for them. */
	if (!err && k->options.native)
		err = kernel_add_native_chunk(k);
	if (err) {
		pybpf_bpf__destroy(k->skel);
		k->skel = NULL;
	}
	return err;
}

/* log_level: of the verifier; 0: no log, except the full one of a program that it refuses. */
static int load_with(struct kernel *k, uint32_t log_level)
{
	int btf = memfd_create("kernel-btf", MFD_CLOEXEC), err;
	char path[32];
	const struct bpf_object_open_opts opts = {
		.sz = sizeof(opts),
		.kernel_log_level = log_level,
		.btf_custom_path = path,
	};

	if (btf < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", btf);
	err = load_object(k, &opts, btf);
	close(btf);
	return err;
}

static int load_verbosely(struct kernel *k)
{
	bool debug = log_enabled(LOG_DEBUG);
	int err = load_with(k, debug ? VERIFIER_STATS : 0);

	return err && debug ? load_with(k, 0) : err;
}

/* Whether the verifier may have refused a program. */
static bool may_be_refused(int err)
{
	return err && err != -EPERM && err != -ENOMEM && err != -ENOENT;
}

/*
 * Chooses what to load after a refusal. A verifier may refuse the walk as one program and accept it in parts: the stack
 * of bpf_loop's callback counts on top of the caller's (512 bytes for all, on Linux 6.1). Returns whether there is a
 * choice.
 */
static bool choose_less(struct kernel *k, const struct kernel_event_needs *needs, int err)
{
	if (k->options.states) {
		log_info("kernel: its verifier rejects the programs that keep threads' states (%s): the states "
			 "are not measured",
			 strerror(-err));
		k->options.states = false;
		k->options.waits = false;
		return true;
	}
	if (!k->features.bpf_loop || k->options.waits || k->options.native || kernel_event_needs_loop(needs))
		return false;
	log_info("kernel: its verifier rejects the program with bpf_loop (%s): a chain of programs is used",
		 strerror(-err));
	k->features.bpf_loop = false;
	return true;
}

/* Returns 0, or -ENOTSUP after reporting what is missing. */
static int check_native(const struct kernel *k)
{
	struct utsname host = {0};

	uname(&host);
#if !defined(__x86_64__)
	log_error("--native: native frames are supported on x86-64 only, and this machine is %s", host.machine);
	return -ENOTSUP;
#endif
	if (k->features.bpf_loop && k->features.task_regs)
		return 0;
	log_error(
		"--native needs Linux 5.17 or later (bpf_loop, bpf_task_pt_regs), and this is %s: leave it out for the "
		"Python functions alone",
		host.release);
	return -ENOTSUP;
}

int kernel_load(struct kernel *k)
{
	struct kernel_event_needs needs;
	struct utsname host = {0};
	int err = kernel_check_events(k, &needs);

	/* A command that is profiled was started before, and keeps its own. */
	host_raise_descriptors();
	if (!err && k->options.native)
		err = check_native(k);
	if (err)
		return err;
	err = load_verbosely(k);
	while (may_be_refused(err) && choose_less(k, &needs, err))
		err = load_verbosely(k);
	/* The kernel's types have taken some 10 MiB, which are not needed any more. */
	malloc_trim(0);
	if (!err)
		return 0;
	uname(&host);
	log_error("cannot load the BPF programs into this kernel (%s): %s%s%s", host.release, strerror(-err),
		  host_advise(err), err == -EMFILE ? "" : ", and -vv for the verifier's log");
	return err;
}

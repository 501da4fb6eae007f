// SPDX-License-Identifier: Apache-2.0
/* Attaches the hooks of processes, and hands their events and the mappings to the watcher. */
#include "kernel/watch.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "base/host.h"
#include "base/log.h"
#include "kernel/internal.h"

static int on_record(void *ctx, void *data, size_t size)
{
	const struct kernel *k = ctx;

	if (size >= sizeof(struct pybpf_process_event))
		k->watcher.on_process(data, k->watcher.arg);
	return 0;
}

int kernel_open_watch(struct kernel *k, const struct kernel_watcher *watcher)
{
	int err;

	k->watcher = *watcher;
	k->process_events = ring_buffer__new(bpf_map__fd(k->skel->maps.process_events), on_record, k, NULL);
	if (k->process_events)
		k->mappings = kernel_mappings_new(k->options.native, watcher->on_mapping, watcher->arg);
	if (k->mappings)
		return 0;
	err = -errno;
	log_error("cannot follow what programs map (perf events): %s%s%s", strerror(-err),
		  host_explain_event_denial(err), host_advise(err));
	return err;
}

int kernel_attach_watch(struct kernel *k)
{
	const struct kernel_hook hooks[KERNEL_NR_HOOKS] = {
		{k->skel->progs.process_exit, "the end of processes (tp_btf/sched_process_exit)"},
		{k->skel->progs.process_exec, "exec (tp_btf/sched_process_exec)"},
		{k->skel->progs.process_fork, "fork (tp_btf/sched_process_fork)"},
	};
	int err = kernel_attach_hooks(hooks, KERNEL_NR_HOOKS, k->hooks);

	if (err)
		return err;
	if (!k->options.cgroups.nr_included)
		return 0;
	k->cgroup_hook = bpf_program__attach_trace(k->skel->progs.cgroup_made);
	if (!k->cgroup_hook)
		log_info(
			"cannot follow new cgroups (tp_btf/cgroup_mkdir): %s; containers that start during the run are "
			"not found",
			strerror(errno));
	return 0;
}

static void on_found(const void *record, void *arg)
{
	const struct kernel *k = arg;

	k->watcher.on_process(record, k->watcher.arg);
}

int kernel_find_processes(struct kernel *k)
{
	return kernel_read_tasks(k->skel->progs.process_find, "processes", sizeof(struct pybpf_process_event), on_found,
				 k);
}

void kernel_get_watch_fds(const struct kernel *k, int fds[KERNEL_WATCH_FDS])
{
	fds[0] = ring_buffer__epoll_fd(k->process_events);
	fds[1] = kernel_mappings_fd(k->mappings);
}

int kernel_consume_processes(struct kernel *k)
{
	int n = ring_buffer__consume(k->process_events);

	return n < 0 && n != -EINTR ? n : 0;
}

void kernel_consume_mappings(struct kernel *k)
{
	kernel_mappings_consume(k->mappings);
}

/*
 * Returns the number of events for which no program ran. Since tracepoints leave preemption on (Linux 7.0,
 * a46023d5616e), a program may be in the middle of one process's event when the same event of another process comes on
 * that CPU; the kernel does not run it a second time then (05b24ff9b2cf).
 */
static uint64_t missed_events(const struct pybpf_bpf *skel)
{
	const struct bpf_program *programs[] = {skel->progs.process_fork, skel->progs.process_exec,
						skel->progs.process_exit};
	uint64_t missed = 0;

	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++) {
		struct bpf_prog_info info = {0};
		uint32_t size = sizeof(info);

		if (bpf_obj_get_info_by_fd(bpf_program__fd(programs[i]), &info, &size) == 0)
			missed += info.recursion_misses;
	}
	return missed;
}

void kernel_read_losses(const struct kernel *k, struct kernel_losses *out)
{
	*out = (struct kernel_losses){
		.events = k->skel->bss->process_events_lost + missed_events(k->skel),
		.others = k->skel->bss->other_events_lost,
		.mappings = kernel_mappings_lost(k->mappings),
	};
}

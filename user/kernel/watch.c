// SPDX-License-Identifier: Apache-2.0
/* Attaches the hooks of processes, and hands their events and the mappings to the watcher. */
#include "kernel/watch.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "kernel/internal.h"

/* Processes that one read of the iterator returns at the start of a run. */
#define FOUND_EVENTS 512

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
		k->mappings =
			kernel_mappings_new(bpf_map__fd(k->skel->maps.mappings), watcher->on_mapping, watcher->arg);
	if (k->mappings)
		return 0;
	err = -errno;
	log_error("cannot follow what programs map (perf events): %s; see `pybpf doctor`", strerror(-err));
	return err;
}

int kernel_attach_watch(struct kernel *k)
{
	const struct {
		struct bpf_program *program;
		const char *what;
	} hooks[KERNEL_NR_HOOKS] = {
		{k->skel->progs.process_exit, "the end of processes (tp_btf/sched_process_exit)"},
		{k->skel->progs.process_exec, "exec (tp_btf/sched_process_exec)"},
		{k->skel->progs.process_fork, "fork (tp_btf/sched_process_fork)"},
	};

	for (size_t i = 0; i < KERNEL_NR_HOOKS; i++) {
		k->hooks[i] = bpf_program__attach(hooks[i].program);
		if (!k->hooks[i]) {
			int err = -errno;

			log_error("cannot follow %s: %s; see `pybpf doctor`", hooks[i].what, strerror(-err));
			return err;
		}
	}
	return 0;
}

int kernel_find_processes(struct kernel *k)
{
	struct bpf_link *link = bpf_program__attach_iter(k->skel->progs.process_find, NULL);
	struct pybpf_process_event *events = calloc(FOUND_EVENTS, sizeof(*events));
	size_t have = 0;
	ssize_t n = -1;
	int fd = -1, err = 0;

	if (!link || !events) {
		err = link ? -ENOMEM : -errno;
		goto done;
	}
	fd = bpf_iter_create(bpf_link__fd(link));
	if (fd < 0) {
		err = fd;
		goto done;
	}
	while (!err && n) {
		size_t whole;

		n = read(fd, (char *)events + have, FOUND_EVENTS * sizeof(*events) - have);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			err = -errno;
		if (n <= 0)
			continue;
		have += (size_t)n;
		whole = have / sizeof(*events);
		for (size_t i = 0; i < whole; i++)
			k->watcher.on_process(&events[i], k->watcher.arg);
		have -= whole * sizeof(*events);
		memmove(events, events + whole, have);
	}
done:
	if (err)
		log_error("cannot go through the processes (iter/task): %s; see `pybpf doctor`", strerror(-err));
	if (fd >= 0)
		close(fd);
	bpf_link__destroy(link);
	free(events);
	return err;
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

int kernel_consume_mappings(struct kernel *k)
{
	return kernel_mappings_consume(k->mappings);
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

uint64_t kernel_count_lost_processes(const struct kernel *k)
{
	return k->skel->bss->process_events_lost;
}

uint64_t kernel_count_lost(const struct kernel *k)
{
	return kernel_count_lost_processes(k) + kernel_mappings_lost(k->mappings) + missed_events(k->skel);
}

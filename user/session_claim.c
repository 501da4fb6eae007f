// SPDX-License-Identifier: Apache-2.0
/* The begin of a run: which processes are there. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "discovery_scan.h"
#include "log.h"
#include "pybpf.h"
#include "pybpf.skel.h"
#include "session_processes_internal.h"

/* Processes found at the start that one read of the iterator takes. */
#define FOUND_EVENTS 512

static uint64_t ticks_per_s(void)
{
	return (uint64_t)sysconf(_SC_CLK_TCK);
}

static int attach(struct session_processes *p)
{
	const struct pybpf_bpf *skel = p->session->skel;
	const struct {
		struct bpf_program *program;
		const char *what;
	} hooks[] = {
		{skel->progs.process_exit, "the end of processes (tp_btf/sched_process_exit)"},
		{skel->progs.process_exec, "exec (tp_btf/sched_process_exec)"},
		{skel->progs.process_fork, "fork (tp_btf/sched_process_fork)"},
	};

	for (size_t i = 0; i < sizeof(hooks) / sizeof(*hooks); i++) {
		p->links[i] = bpf_program__attach(hooks[i].program);
		if (!p->links[i]) {
			int err = -errno;

			log_error("cannot follow %s: %s; see `pybpf doctor`", hooks[i].what, strerror(-err));
			return err;
		}
	}
	return 0;
}

static int claim(const struct session_processes *p, const uint32_t *pids, size_t count)
{
	const struct pybpf_proc claimed = {.state = PYBPF_PROC_CLAIMED};

	for (size_t i = 0; i < count; i++) {
		int err = bpf_map_update_elem(session_procs_fd(p), &pids[i], &claimed, BPF_NOEXIST);

		if (err && err != -EEXIST) {
			log_error("cannot hand process %u to the kernel: %s", pids[i], strerror(-err));
			return err;
		}
	}
	return 0;
}

/* A process and whose child it is. */
struct kinship {
	uint32_t pid, parent;
	bool taken;
};

struct kin {
	struct kinship *items;
	size_t count, capacity;
};

static int add_kin(const struct discovery_process *process, void *arg)
{
	struct kin *kin = arg;

	if (kin->count == kin->capacity) {
		size_t capacity = kin->capacity ? kin->capacity * 2 : 256;
		struct kinship *items = reallocarray(kin->items, capacity, sizeof(*items));

		if (!items)
			return -ENOMEM;
		kin->items = items;
		kin->capacity = capacity;
	}
	kin->items[kin->count++] = (struct kinship){.pid = (uint32_t)process->pid, .parent = (uint32_t)process->ppid};
	return 0;
}

static bool is_claimed(const struct session_processes *p, uint32_t pid)
{
	struct pybpf_proc entry;

	return bpf_map_lookup_elem(session_procs_fd(p), &pid, &entry) == 0;
}

/* The children that the claimed processes have already, and theirs. Forks from now on are seen by the kernel. */
static int claim_children(const struct session_processes *p)
{
	struct kin kin = {0};
	bool more = true;
	int err = discovery_scan(add_kin, &kin, NULL);

	while (!err && more) {
		more = false;
		for (size_t i = 0; i < kin.count && !err; i++) {
			struct kinship *one = &kin.items[i];

			if (one->taken || !is_claimed(p, one->parent))
				continue;
			err = claim(p, &one->pid, 1);
			one->taken = more = true;
		}
	}
	if (err)
		log_error("cannot go through the processes in /proc: %s", strerror(-err));
	free(kin.items);
	return err;
}

/* Has the kernel go through all tasks. */
static int find(struct session_processes *p)
{
	struct bpf_link *link = bpf_program__attach_iter(p->session->skel->progs.process_find, NULL);
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
			session_processes_event(p, &events[i], sizeof(*events));
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

int session_processes_start(struct session_processes *p, const uint32_t *pids, size_t count)
{
	double next = 0;
	int err = claim(p, pids, count);
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	p->begin = (uint64_t)t.tv_sec * ticks_per_s() + (uint64_t)t.tv_nsec / (1000000000u / ticks_per_s());
	err = err ?: attach(p);
	if (p->session->options.follow)
		err = err ?: claim_children(p);
	err = err ?: find(p);
	discovery_memo_begin();
	while (!err && next <= session_now()) {
		session_processes_look(p, session_now());
		err = session_processes_consume(p);
		next = session_processes_next_look(p);
	}
	discovery_memo_end();
	return err ?: p->error;
}

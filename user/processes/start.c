// SPDX-License-Identifier: Apache-2.0
/* The begin of a run: which processes are there. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/scan.h"
#include "foreign/foreign.h"
#include "base/log.h"
#include "pybpf.h"
#include "pybpf.skel.h"
#include "processes/internal.h"

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

/* *fresh is raised by the number of those that the kernel did not know. */
static int claim(const struct session_processes *p, const uint32_t *pids, size_t count, size_t *fresh)
{
	const struct pybpf_proc claimed = {.state = PYBPF_PROC_CLAIMED};

	for (size_t i = 0; i < count; i++) {
		int err = bpf_map_update_elem(session_procs_fd(p), &pids[i], &claimed, BPF_NOEXIST);

		if (err && err != -EEXIST) {
			log_error("cannot hand process %u to the kernel: %s", pids[i], strerror(-err));
			return err;
		}
		*fresh += !err;
	}
	return 0;
}

/*
 * Sampling begins after so long, whatever is still to be looked at then. A machine with 300 processes takes a fifth of
 * it.
 */
#define START_S 0.5

/* Rounds through /proc: each finds what was started during the one before by processes that were not claimed then. */
#define CLAIM_ROUNDS 16

/* The children that the processes have already, and theirs. Forks of claimed processes are seen by the kernel. */
static int claim_children(const struct session_processes *p, const uint32_t *pids, size_t count)
{
	size_t below_count, fresh = 1;
	uint32_t *below;
	int err = 0;

	for (int round = 0; round < CLAIM_ROUNDS && fresh && !err; round++) {
		fresh = 0;
		err = discovery_scan_below(pids, count, &below, &below_count);
		if (err) {
			log_error("cannot go through the processes in /proc: %s", strerror(-err));
			break;
		}
		err = claim(p, below, below_count, &fresh);
		free(below);
	}
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
	const struct timespec pause = {.tv_nsec = 1000000};
	double next = 0, until;
	size_t fresh = 0;
	int err = claim(p, pids, count, &fresh);
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	p->begin = (uint64_t)t.tv_sec * ticks_per_s() + (uint64_t)t.tv_nsec / (1000000000u / ticks_per_s());
	err = err ?: attach(p);
	if (p->session->options.follow)
		err = err ?: claim_children(p, pids, count);
	err = err ?: find(p);
	p->starting = true;
	until = session_now() + START_S;
	while (!err && session_now() < until && (next <= session_now() || next <= p->busy_until) &&
	       !foreign_is_interrupted()) {
		if (next > session_now())
			nanosleep(&pause, NULL);
		session_processes_look(p, session_now());
		err = session_processes_consume(p);
		next = session_processes_next_look(p);
	}
	p->starting = false;
	return err ?: p->error;
}

// SPDX-License-Identifier: Apache-2.0
/* Attaches the programs that keep the time of threads, and reads their maps. */
#include "kernel/waits.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <unistd.h>

#include "kernel/internal.h"

bool kernel_has_states(const struct kernel *k)
{
	return k->options.states;
}

bool kernel_has_wait_sets(const struct kernel *k)
{
	return k->options.waits && k->options.rolling && !k->options.states;
}

static const struct bpf_map *times_of(const struct kernel *k, uint32_t sets)
{
	return kernel_get_set(k, kernel_has_wait_sets(k) ? PYBPF_COUNTS_SET(sets) : 0).wait_times;
}

int kernel_attach_waits(struct kernel *k)
{
	/* A thread must be in the map before its first switch is seen, and leave it last. */
	const struct kernel_hook hooks[KERNEL_NR_WAIT_HOOKS] = {
		{k->skel->progs.wait_exit, "the end of threads (tp_btf/sched_process_exit)"},
		{k->skel->progs.wait_exec, "exec (tp_btf/sched_process_exec)"},
		{k->skel->progs.wait_new, "the start of threads (tp_btf/sched_wakeup_new)"},
		{k->skel->progs.wait_wakeup, "what wakes threads (tp_btf/sched_wakeup)"},
		{k->skel->progs.wait_switch, "switches between threads (tp_btf/sched_switch)"},
		{k->skel->progs.wait_waking, "who wakes threads (tp_btf/sched_waking)"},
	};

	int err = kernel_attach_hooks(hooks, KERNEL_NR_WAIT_HOOKS - !k->options.wakers, k->wait_hooks);

	if (err || k->options.states)
		return err;
	/* Later pybpf has no right to open one. */
	k->polled_fd = kernel_open_tasks(k->skel->progs.wait_see_polled, "threads");
	return k->polled_fd < 0 ? k->polled_fd : 0;
}

static void close_polled(struct kernel *k)
{
	if (k->polled_fd > 0)
		close(k->polled_fd);
	k->polled_fd = 0;
}

void kernel_start_waits(struct kernel *k, bool on)
{
	if (k->skel)
		k->skel->bss->waits_on = on;
}

void kernel_detach_waits(struct kernel *k)
{
	for (size_t i = KERNEL_NR_WAIT_HOOKS; i-- > 0;) {
		bpf_link__destroy(k->wait_hooks[i]);
		k->wait_hooks[i] = NULL;
	}
	close_polled(k);
}

struct found_visit {
	void (*visit)(const struct pybpf_thread_found *found, void *arg);
	void *arg;
};

static void visit_found(const void *record, void *arg)
{
	const struct found_visit *v = arg;

	v->visit(record, v->arg);
}

int kernel_find_threads(struct kernel *k, void (*visit)(const struct pybpf_thread_found *found, void *arg), void *arg)
{
	struct found_visit v = {visit, arg};

	return kernel_read_tasks(k->skel->progs.wait_find, "threads", sizeof(struct pybpf_thread_found), visit_found,
				 &v);
}

int kernel_note_polled(struct kernel *k, uint32_t pid, uint32_t fd)
{
	return bpf_map_update_elem(bpf_map__fd(k->skel->maps.polled), &pid, &fd, BPF_ANY);
}

void kernel_see_polled(struct kernel *k)
{
	char none;

	/* The program writes nothing: the first read goes through all tasks. */
	while (k->polled_fd && read(k->polled_fd, &none, sizeof(none)) < 0 && (errno == EINTR || errno == EAGAIN))
		;
	close_polled(k);
}

int kernel_get_thread(const struct kernel *k, uint32_t pid, struct pybpf_thread *thread)
{
	return bpf_map_lookup_elem(bpf_map__fd(k->skel->maps.threads), &pid, thread);
}

struct thread_visit {
	int (*visit)(const struct pybpf_thread *thread, void *arg);
	void *arg;
};

static int visit_thread(const void *key, const void *value, void *arg)
{
	const struct thread_visit *v = arg;

	(void)key;
	return v->visit(value, v->arg);
}

int kernel_visit_threads(const struct kernel *k, int (*visit)(const struct pybpf_thread *thread, void *arg), void *arg)
{
	struct thread_visit v = {visit, arg};

	return kernel_visit_map(k->skel->maps.threads, bpf_map_lookup_batch, visit_thread, &v);
}

struct time_visit {
	kernel_wait_visitor *visit;
	void *arg;
};

static int visit_time(const void *key, const void *value, void *arg)
{
	const struct time_visit *v = arg;

	return v->visit(key, value, v->arg);
}

int kernel_visit_wait_times(const struct kernel *k, kernel_wait_visitor *visit, void *arg)
{
	struct time_visit v = {visit, arg};

	return kernel_visit_map(times_of(k, k->sets), bpf_map_lookup_batch, visit_time, &v);
}

int kernel_take_wait_times(struct kernel *k, kernel_wait_visitor *visit, void *arg)
{
	struct time_visit v = {visit, arg};

	return kernel_visit_map(times_of(k, PYBPF_OTHER_COUNTS(k->sets)), bpf_map_lookup_and_delete_batch, visit_time,
				&v);
}

void kernel_delete_wait_time(struct kernel *k, const struct pybpf_wait_key *key)
{
	bpf_map_delete_elem(bpf_map__fd(times_of(k, k->sets)), key);
}

void kernel_forget_wait(struct kernel *k, uint64_t wait_id)
{
	bpf_map_delete_elem(bpf_map__fd(k->skel->maps.waits), &wait_id);
}

int kernel_get_gil_waits(const struct kernel *k, struct pybpf_gil_waits *waits)
{
	int cpus = libbpf_num_possible_cpus(), err;
	struct pybpf_gil_waits *each;
	uint32_t first = 0;

	memset(waits, 0, sizeof(*waits));
	each = cpus < 0 ? NULL : calloc((size_t)cpus, sizeof(*each));
	if (!each)
		return cpus < 0 ? cpus : -ENOMEM;
	err = bpf_map_lookup_elem(bpf_map__fd(k->skel->maps.gil_waits), &first, each);
	for (int i = 0; i < cpus && !err; i++) {
		waits->count += each[i].count;
		if (each[i].longest_ns > waits->longest_ns)
			waits->longest_ns = each[i].longest_ns;
	}
	free(each);
	return err;
}

void kernel_get_lost_time(const struct kernel *k, uint64_t *ns, uint64_t *threads)
{
	*ns = k->skel->bss->wait_lost_ns;
	*threads = k->skel->bss->threads_lost;
}

uint64_t kernel_get_unnamed_waits(const struct kernel *k)
{
	return k->skel->bss->waits_unnamed;
}

void kernel_get_lost_intervals(const struct kernel *k, struct pybpf_wait_time *lost)
{
	*lost = (struct pybpf_wait_time){.count = k->skel->bss->intervals_lost, .ns = k->skel->bss->intervals_lost_ns};
}

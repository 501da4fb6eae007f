// SPDX-License-Identifier: Apache-2.0
/* From the kernel's maps to a profile and an account. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "foreign/foreign.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/procfs.h"
#include "pybpf.h"
#include "pybpf.skel.h"
#include "session/account.h"
#include "session/internal.h"

/* Entries that one batch look-up takes from a map. */
#define BATCH 4096

static int read_counters(struct session *s, uint64_t total[PYBPF_NR_COUNTERS])
{
	int cpus = libbpf_num_possible_cpus(), err;
	struct pybpf_counters *each;
	uint32_t zero = 0;

	memset(total, 0, PYBPF_NR_COUNTERS * sizeof(*total));
	if (cpus < 0)
		return cpus;
	each = calloc((size_t)cpus, sizeof(*each));
	if (!each)
		return -ENOMEM;
	err = bpf_map__lookup_elem(s->skel->maps.counters, &zero, sizeof(zero), each, (size_t)cpus * sizeof(*each), 0);
	for (int cpu = 0; !err && cpu < cpus; cpu++) {
		for (int i = 0; i < PYBPF_NR_COUNTERS; i++)
			total[i] += each[cpu].value[i];
	}
	free(each);
	return err;
}

void session_progress(struct session *s, uint64_t *samples, uint64_t *stacks)
{
	uint64_t total[PYBPF_NR_COUNTERS];

	*samples = read_counters(s, total) ? 0 : total[PYBPF_COUNT_PYTHON];
	*stacks = session_stacks_count(s->stacks);
}

/* The process and the thread of a count. */
static int owners_of(struct session *s, const struct pybpf_count_key *key, struct session_process *process,
		     uint32_t *owner, uint32_t *thread)
{
	const struct pybpf_thread_key named = {key->proc_id, key->tid, key->tid_start_ms};
	struct pybpf_thread_name name = {{0}};
	char text[sizeof(name.comm) + 1] = "";

	*thread = PROFILE_NONE;
	*owner = session_add_to_profile(s, process);
	if (*owner == PROFILE_NONE)
		return -ENOMEM;
	if (!s->options.threads)
		return 0;
	bpf_map__lookup_elem(s->skel->maps.thread_names, &named, sizeof(named), &name, sizeof(name), 0);
	memcpy(text, name.comm, sizeof(name.comm));
	*thread = profile_add_thread(s->profile, *owner, (int32_t)key->tid, text);
	return *thread == PROFILE_NONE ? -ENOMEM : 0;
}

/* Samples that were taken before it was known what the process is. */
static void add_undecided(struct session *s, const struct session_process *process, uint64_t value)
{
	enum session_process_state state = process ? process->state : SESSION_PROCESS_OTHER;
	enum pybpf_counter what = PYBPF_COUNT_NOT_READY;

	if (state == SESSION_PROCESS_PYTHON)
		what = process->in_time ? PYBPF_COUNT_NO_INTERPRETER : PYBPF_COUNT_NOT_READY;
	else if (state == SESSION_PROCESS_LOOKING)
		what = process->ended ? PYBPF_COUNT_MISSED : PYBPF_COUNT_NOT_READY;
	else if (s->options.all)
		return;
	else if (state == SESSION_PROCESS_OTHER)
		what = PYBPF_COUNT_NO_INTERPRETER;
	s->counters[PYBPF_COUNT_ASKED] += value;
	s->counters[what] += value;
}

static int add_count(struct session *s, const struct pybpf_count_key *key, uint64_t value)
{
	struct session_process *process = session_processes_find(s->processes, key->proc_id);
	uint32_t stack, owner, thread;
	int err;

	/* The kernel's filters let it pass. */
	if (process)
		process->wanted = true;
	if (key->stack_id == PYBPF_STACK_ID_UNDECIDED) {
		add_undecided(s, process, value);
		return 0;
	}
	stack = session_stacks_find(s->stacks, key->stack_id);
	if (!process || stack == PROFILE_NONE) {
		s->unsent += value;
		return 0;
	}
	err = owners_of(s, key, process, &owner, &thread);
	err = err ?: profile_add_sample(s->profile, stack, owner, thread, value);
	if (err || !s->options.times)
		return err;
	return session_times_know(&s->times, key, profile_find_sample(s->profile, stack, owner, thread));
}

/* What a pass over map counts takes: all, or what belongs to processes that had ended by then. */
struct pass {
	struct session *session;
	bool all;
	double before;
	struct pybpf_count_key *taken; /* unless all */
	size_t nr_taken, taken_room;
};

static bool is_of_pass(const struct pass *pass, const struct pybpf_count_key *key)
{
	const struct session_process *process;

	if (pass->all)
		return true;
	process = session_processes_find(pass->session->processes, key->proc_id);
	return process && process->ended && process->ended_at < pass->before;
}

static int note_taken(struct pass *pass, const struct pybpf_count_key *key)
{
	if (array_reserve(&pass->taken, &pass->taken_room, pass->nr_taken + 1, sizeof(*pass->taken)))
		return -ENOMEM;
	pass->taken[pass->nr_taken++] = *key;
	return 0;
}

static int read_counts(struct pass *pass)
{
	struct pybpf_count_key *keys = calloc(BATCH, sizeof(*keys));
	uint64_t *values = calloc(BATCH, sizeof(*values));
	int fd = bpf_map__fd(pass->session->skel->maps.counts), err = 0;
	uint64_t cursor = 0; /* a hash map's batch position is a bucket number, 4 bytes */
	bool first = true, end = false;

	if (!keys || !values)
		err = -ENOMEM;
	while (!err && !end) {
		uint32_t n = BATCH;

		err = bpf_map_lookup_batch(fd, first ? NULL : &cursor, &cursor, keys, values, &n, NULL);
		end = err == -ENOENT;
		if (end)
			err = 0;
		first = false;
		for (uint32_t i = 0; !err && i < n; i++) {
			if (!is_of_pass(pass, &keys[i]))
				continue;
			err = add_count(pass->session, &keys[i], values[i]);
			if (!err && !pass->all)
				err = note_taken(pass, &keys[i]);
		}
	}
	free(keys);
	free(values);
	return err;
}

/* A thread that has a name in the kernel is told apart by options.threads only. */
static void delete_taken(const struct pass *pass)
{
	struct session *s = pass->session;
	int counts = bpf_map__fd(s->skel->maps.counts), stacks = bpf_map__fd(s->skel->maps.stacks);
	int names = bpf_map__fd(s->skel->maps.thread_names);

	for (size_t i = 0; i < pass->nr_taken; i++) {
		const struct pybpf_count_key *key = &pass->taken[i];
		const struct pybpf_thread_key named = {key->proc_id, key->tid, key->tid_start_ms};

		bpf_map_delete_elem(counts, key);
		bpf_map_delete_elem(stacks, &key->stack_id);
		session_stacks_remove(s->stacks, key->stack_id);
		if (s->options.threads)
			bpf_map_delete_elem(names, &named);
	}
}

struct process_codes {
	const struct session *session;
	uint64_t proc_id;
};

static void delete_code(void *arg, uint64_t code, uint32_t sig)
{
	const struct process_codes *codes = arg;
	const struct pybpf_code_key key = {.code = code, .sig = sig, .proc_id = codes->proc_id};

	bpf_map__delete_elem(codes->session->skel->maps.codes, &key, sizeof(key), 0);
}

static void finish_process(struct session_process *process, void *arg)
{
	struct session *s = arg;

	s->error = s->error ?: session_stacks_finish_process(s->stacks, process->proc_id);
}

static void forget_process(struct session_process *process, void *arg)
{
	struct session *s = arg;
	struct process_codes codes = {.session = s, .proc_id = process->proc_id};

	pysym_each_code(s->pysym, process->proc_id, delete_code, &codes);
	pysym_remove_process(s->pysym, process->proc_id);
	session_processes_forget(s->processes, process);
}

/*
 * A sample that was under way when its process ended is counted by then, and what it sent has been taken: the loop
 * comes by ten times a second.
 */
#define ENDED_SINCE_S 0.5
/* A pass over the map takes milliseconds: at most this share of one CPU's time. */
#define COLLECT_LEAST_S 1.0
#define COLLECT_SHARE   0.01

int session_collect_ended(struct session *s, double now)
{
	struct pass pass = {.session = s, .before = now - ENDED_SINCE_S};
	double pause;
	int err = 0;

	s->next_collect = now + COLLECT_LEAST_S;
	if (!session_processes_any_ended(s->processes, pass.before))
		return 0;
	session_processes_settle(s->processes);
	session_processes_each_ended(s->processes, pass.before, finish_process, s);
	err = s->error ?: read_counts(&pass);
	err = err ?: session_times_settle(&s->times, s->profile, s->attach_ns);
	if (!err) {
		delete_taken(&pass);
		session_processes_each_ended(s->processes, pass.before, forget_process, s);
	} else if (!s->error) {
		log_error("cannot read the counts from the kernel: %s", strerror(-err));
	}
	free(pass.taken);
	pause = (clock_s(CLOCK_MONOTONIC) - now) / COLLECT_SHARE;
	if (pause > COLLECT_LEAST_S)
		s->next_collect = now + pause;
	return err;
}

static double kernel_time(struct session *s, uint64_t asked)
{
	struct bpf_prog_info info = {0};
	uint32_t size = sizeof(info);
	const struct bpf_program *program =
		s->kernel.bpf_loop ? s->skel->progs.sample_loop : s->skel->progs.sample_chain;

	if (s->stats_fd < 0 || !asked || bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size))
		return -1;
	return (double)info.run_time_ns / (double)asked;
}

static void own_cost(struct session_account *account)
{
	struct rusage usage;
	uint64_t kib = 0;

	/* ru_maxrss would have that of the program that started pybpf. */
	procfs_peak_rss(getpid(), &kib);
	account->peak_rss_kib = (int64_t)kib;
	getrusage(RUSAGE_SELF, &usage);
	account->user_cpu_s = foreign_cpu_s() + (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
			      (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

int session_collect(struct session *s, const struct profile **profile, struct session_account *account)
{
	struct pass all = {.session = s, .all = true};
	size_t timed;
	int err;

	memset(account, 0, sizeof(*account));
	do
		err = session_consume(s);
	while (err > 0);
	session_processes_say_doubts(s->processes);
	session_processes_settle(s->processes);
	err = err ?: session_stacks_finish(s->stacks);
	err = err ?: read_counters(s, account->counters);
	err = err ?: read_counts(&all);
	err = err ?: session_times_settle(&s->times, s->profile, s->attach_ns);
	profile_sort_events(s->profile);
	if (!err && s->sources)
		err = session_sources_collect(s->sources, s->profile);
	if (err) {
		if (!s->error)
			log_error("cannot read the counts from the kernel: %s", strerror(-err));
		return err;
	}
	for (int i = 0; i < PYBPF_NR_COUNTERS; i++)
		account->counters[i] += s->counters[i];
	account->unsent = s->unsent;
	session_processes_counts(s->processes, &account->processes);
	account->lost = session_account_lost(account);
	account->taken = account->counters[PYBPF_COUNT_ASKED] - account->lost;
	account->python = account->counters[PYBPF_COUNT_PYTHON] - account->unsent;
	account->stacks = session_stacks_count(s->stacks);
	account->names = *pysym_counters(s->pysym);
	account->duration_s = (double)(s->detach_ns - s->attach_ns) / 1e9;
	account->kernel_ns_per_sample = kernel_time(s, account->counters[PYBPF_COUNT_ASKED]);
	account->measured = account->kernel_ns_per_sample >= 0;
	account->time_to_first_sample_ms =
		s->skel->bss->first_sample_ns
			? (double)(int64_t)(s->skel->bss->first_sample_ns - s->options.start_ns) / 1e6
			: -1;
	account->source = s->options.source;
	account->freq = s->options.freq;
	own_cost(account);
	profile_events(s->profile, &timed);
	account->timed = timed;
	account->timed_bytes = timed * (sizeof(struct pybpf_time_event) + sizeof(struct profile_event));
	err = session_describe(s, account);
	if (err) {
		log_error("cannot finish the profile: %s", strerror(-err));
		return err;
	}
	*profile = s->profile;
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* From the kernel's maps to a profile and an account. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "log.h"
#include "procfs.h"
#include "pybpf.skel.h"
#include "session_account.h"
#include "session_internal.h"

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
static int owners_of(struct session *s, const struct pybpf_count_key *key, uint32_t *process, uint32_t *thread)
{
	struct pybpf_thread_name name = {{0}};
	char text[sizeof(name.comm) + 1] = "";
	const char *comm;
	pid_t pid = pysym_process(s->pysym, key->proc_id, &comm);

	*thread = PROFILE_NONE;
	*process = profile_add_process(s->profile, pid, comm);
	if (*process == PROFILE_NONE)
		return -ENOMEM;
	if (!s->options.threads)
		return 0;
	bpf_map__lookup_elem(s->skel->maps.thread_names, &key->tid, sizeof(key->tid), &name, sizeof(name), 0);
	memcpy(text, name.comm, sizeof(name.comm));
	*thread = profile_add_thread(s->profile, *process, (int32_t)key->tid, text);
	return *thread == PROFILE_NONE ? -ENOMEM : 0;
}

static int add_count(struct session *s, const struct pybpf_count_key *key, uint64_t value,
		     struct session_account *account)
{
	uint32_t stack = session_stacks_find(s->stacks, key->stack_id), process, thread;
	int err;

	if (stack == PROFILE_NONE) {
		account->unsent += value;
		return 0;
	}
	err = owners_of(s, key, &process, &thread);
	return err ? err : profile_add_sample(s->profile, stack, process, thread, value);
}

static int read_counts(struct session *s, struct session_account *account)
{
	struct pybpf_count_key *keys = calloc(BATCH, sizeof(*keys));
	uint64_t *values = calloc(BATCH, sizeof(*values));
	int fd = bpf_map__fd(s->skel->maps.counts), err = 0;
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
		for (uint32_t i = 0; !err && i < n; i++)
			err = add_count(s, &keys[i], values[i], account);
	}
	free(keys);
	free(values);
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
	account->user_cpu_s = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
			      (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

int session_collect(struct session *s, const struct profile **profile, struct session_account *account)
{
	int err;

	memset(account, 0, sizeof(*account));
	do
		err = session_consume(s);
	while (err > 0);
	err = err ?: session_stacks_finish(s->stacks);
	err = err ?: read_counters(s, account->counters);
	err = err ?: read_counts(s, account);
	if (err) {
		log_error("cannot read the counts from the kernel: %s", strerror(-err));
		return err;
	}
	account->lost = account->unsent;
	account->lost += session_account_lost(account);
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
	*profile = s->profile;
	return 0;
}

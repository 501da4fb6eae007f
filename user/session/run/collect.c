// SPDX-License-Identifier: Apache-2.0
/* Moves counts from the kernel's maps into the profile, and fills the account at the end of a run. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "helper/helper.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/procfs.h"
#include "kernel/counts.h"
#include "kernel/events.h"
#include "pybpf.h"
#include "session/account/account.h"
#include "session/cpu_time.h"
#include "session/run/due.h"
#include "session/internal.h"
#include "session/sample_owner.h"
#include "session/wanted.h"

void session_progress(struct session *s, uint64_t *samples, uint64_t *stacks)
{
	uint64_t total[PYBPF_NR_COUNTERS];

	*samples = kernel_read_counters(s->kernel, total) ? 0 : total[PYBPF_COUNT_PYTHON];
	*stacks = stacks_count(s->stacks);
}

bool session_is_half_full(const struct session *s)
{
	return (uint64_t)stacks_count(s->stacks) * 2 > s->options.max_stacks;
}

/* Counts samples from before the process's interpreter ran. Returns 0 or -ENOMEM. */
static int add_early(struct session *s, struct processes_record *process, const struct pybpf_count *count)
{
	const struct pybpf_pseudo_stack pseudo = {.no_frames_reason = PYBPF_COUNT_NO_INTERPRETER};
	const struct pybpf_thread_key of = {.proc_id = process->proc_id};
	uint32_t stack, owner, thread;

	/* They are counted as samples, which is not the unit of the values of events, nor of the time of threads. */
	if (s->options.python_only || s->options.gil || s->options.exception || s->options.nr_events ||
	    s->options.mode != SESSION_CPU)
		return 0;
	stack = stacks_add_pseudo(s->stacks, &pseudo);
	if (stack == PROFILE_NONE || session_find_owners(s, &of, process, &owner, &thread))
		return -ENOMEM;
	if (profile_add_sample(s->profile, stack, owner, thread, count->value))
		return -ENOMEM;
	if (s->options.times)
		s->counters[PYBPF_COUNT_UNTIMED] += count->count;
	return 0;
}

static enum pybpf_counter counter_of(const struct pybpf_count_key *key)
{
	if (key->stack_id == PYBPF_STACK_ID_UNDECIDED)
		return PYBPF_COUNT_NO_INTERPRETER;
	return key->no_frames_reason ? key->no_frames_reason : PYBPF_COUNT_PYTHON;
}

void session_lose_count(struct session *s, const struct pybpf_count_key *key, const struct pybpf_count *count, int err)
{
	if (!s->lost_counts++)
		log_warn("cannot keep samples: %s; the run goes on without them", strerror(-err));
	/* The kernel has these in no counter. */
	if (key->stack_id == PYBPF_STACK_ID_UNDECIDED)
		s->counters[PYBPF_COUNT_NO_INTERPRETER] += count->count;
	s->unkept[counter_of(key)] += count->count;
}

/* Counts samples that were taken before pybpf knew what the process is. Returns 0 or -ENOMEM. */
static int add_undecided(struct session *s, struct processes_record *process, const struct pybpf_count *count)
{
	enum processes_state state = process ? process->state : PROCESSES_OTHER;
	enum pybpf_counter what = PYBPF_COUNT_NOT_READY;
	int err;

	if (state == PROCESSES_PYTHON && process->known_before_run) {
		err = add_early(s, process, count);
		if (!err)
			s->counters[PYBPF_COUNT_NO_INTERPRETER] += count->count;
		return err;
	}
	if (state == PROCESSES_LOOKING)
		what = process->ended ? PYBPF_COUNT_MISSED : PYBPF_COUNT_NOT_READY;
	else if (state != PROCESSES_PYTHON && s->options.all)
		return 0;
	else if (state == PROCESSES_OTHER)
		what = PYBPF_COUNT_OTHER_PROGRAM;
	if (process && what == PYBPF_COUNT_NOT_READY)
		process->undecided += count->count;
	s->counters[what] += count->count;
	return 0;
}

/*
 * Returns the stack of a count, or PROFILE_NONE. A pseudo stack, of samples without Python frames, whose record has not
 * come is reported without the thread's name.
 */
static uint32_t stack_of(struct session *s, const struct pybpf_count_key *key)
{
	const struct pybpf_pseudo_stack pseudo = {.no_frames_reason = key->no_frames_reason};
	uint32_t stack = stacks_find(s->stacks, key->stack_id);

	return stack == PROFILE_NONE && key->no_frames_reason ? stacks_add_pseudo(s->stacks, &pseudo) : stack;
}

struct pybpf_count session_weigh_count(const struct session *s, const struct pybpf_count_key *key,
				       const struct pybpf_count *count)
{
	struct pybpf_count weighed = *count;

	if (key->kind == PYBPF_KIND_CPU)
		weighed.value = count->count * s->weight;
	return weighed;
}

void session_add_count(struct session *s, const struct pybpf_count_key *key, const struct pybpf_count *count)
{
	struct processes_record *process = processes_find_record(s->processes, key->thread.proc_id);
	struct session_counted counted = {.key = key, .count = count, .process = process};
	int err;

	/* A count exists, so the kernel's filters let the process pass. */
	if (process)
		process->wanted = true;
	if (key->stack_id == PYBPF_STACK_ID_UNDECIDED) {
		err = add_undecided(s, process, count);
	} else {
		if (process && !key->no_frames_reason)
			processes_mark_sampled(s->processes, process);
		counted.stack = process ? stack_of(s, key) : PROFILE_NONE;
		if (counted.stack == PROFILE_NONE) {
			s->unsent[counter_of(key)] += count->count;
			return;
		}
		err = session_measures_add_count(s, &counted);
	}
	if (err)
		session_lose_count(s, key, count, err);
}

/* What a pass over map counts takes. */
struct pass {
	struct session *session;
	struct session_due due;
	struct pybpf_count_key *taken; /* unless all are due */
	size_t nr_taken, taken_room;
};

static bool is_of_pass(const struct pybpf_count_key *key, void *arg)
{
	const struct pass *pass = arg;

	return session_is_due(pass->session, &pass->due, key->thread.proc_id);
}

static int note_taken(struct pass *pass, const struct pybpf_count_key *key)
{
	if (array_reserve(&pass->taken, &pass->taken_room, pass->nr_taken + 1, sizeof(*pass->taken)))
		return -ENOMEM;
	pass->taken[pass->nr_taken++] = *key;
	return 0;
}

static int take_count(const struct pybpf_count_key *key, const struct pybpf_count *count, void *arg)
{
	struct pass *pass = arg;
	struct pybpf_count weighed;

	/* One that could not be deleted would count twice: it waits for the next pass. */
	if (!is_of_pass(key, arg) || (!pass->due.all && note_taken(pass, key)))
		return 0;
	weighed = session_weigh_count(pass->session, key, count);
	session_add_count(pass->session, key, &weighed);
	return 0;
}

static int add_count(const struct pybpf_count_key *key, const struct pybpf_count *count, void *arg)
{
	const struct pass *pass = arg;

	session_add_count(pass->session, key, count);
	return 0;
}

/* Deletes the taken counts from the kernel's maps. Thread names exist in the kernel only with options.threads. */
static void delete_taken(const struct pass *pass)
{
	struct session *s = pass->session;

	for (size_t i = 0; i < pass->nr_taken; i++) {
		const struct pybpf_count_key *key = &pass->taken[i];
		const struct pybpf_thread_key named = key->thread;

		kernel_delete_count(s->kernel, key);
		kernel_delete_stack(s->kernel, key->stack_id);
		stacks_remove(s->stacks, key->stack_id);
		if (s->options.threads)
			kernel_delete_thread_name(s->kernel, &named);
	}
}

struct process_codes {
	struct kernel *kernel;
	uint64_t proc_id;
};

static void delete_code(void *arg, uint64_t code, uint32_t sig)
{
	const struct process_codes *codes = arg;
	const struct pybpf_code_key key = {.code = code, .sig = sig, .proc_id = codes->proc_id};

	kernel_delete_code(codes->kernel, &key);
}

static void finish_process(struct processes_record *process, void *arg)
{
	struct session *s = arg;

	s->lost_records += stacks_finish_process(s->stacks, process->proc_id);
}

static void forget_process(struct processes_record *process, void *arg)
{
	struct session *s = arg;
	struct process_codes codes = {.kernel = s->kernel, .proc_id = process->proc_id};

	pysym_each_code(s->pysym, process->proc_id, delete_code, &codes);
	pysym_remove_process(s->pysym, process->proc_id);
	session_measures_forget_process(s, process->proc_id);
	processes_forget_record(s->processes, process);
}

/*
 * Seconds after the end of a process until its counts are taken: a sample that was under way at the end is counted by
 * then, and its records have been read, as the loop runs ten times a second.
 */
#define ENDED_SINCE_S 0.5
/* Shortest interval between passes over the map, which take milliseconds each, and their share of one CPU's time. */
#define COLLECT_LEAST_S 1.0
#define COLLECT_SHARE   0.01

int session_collect_ended(struct session *s, double now)
{
	struct pass pass = {.session = s, .due.before = now - ENDED_SINCE_S};
	double pause;
	int err = 0;

	s->next_collect = now + COLLECT_LEAST_S;
	if (!processes_have_ended(s->processes, pass.due.before))
		return 0;
	/* What the ended processes have done to their memory must be known by now. */
	do
		err = session_measures_need_records(s) ? session_consume(s) : 0;
	while (err > 0);
	processes_settle_ended(s->processes);
	processes_visit_ended(s->processes, pass.due.before, finish_process, s);
	err = err ?: kernel_visit_counts(s->kernel, take_count, &pass);
	err = err ?: session_pending_take_counts(&s->pending, is_of_pass, add_count, &pass);
	err = err ?: session_measures_settle(s, &pass.due);
	if (!err) {
		delete_taken(&pass);
		processes_visit_ended(s->processes, pass.due.before, forget_process, s);
	} else if (!s->error) {
		log_error("cannot read the counts from the kernel: %s", strerror(-err));
	}
	free(pass.taken);
	pause = (clock_s(CLOCK_MONOTONIC) - now) / COLLECT_SHARE;
	if (pause > COLLECT_LEAST_S)
		s->next_collect = now + pause;
	return err;
}

static double kernel_time(const struct session *s, uint64_t asked)
{
	int64_t ns = asked ? kernel_get_sampler_ns(s->kernel) : -1;

	return ns < 0 ? -1 : (double)ns / (double)asked;
}

static void own_cost(struct session_account *account)
{
	struct rusage usage;
	uint64_t kib = 0;

	/* ru_maxrss may be the peak of the program that started pybpf. */
	procfs_peak_rss(getpid(), &kib);
	account->peak_rss_kib = (int64_t)kib;
	getrusage(RUSAGE_SELF, &usage);
	account->user_cpu_s = helper_cpu_s() + (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
			      (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* Moves samples that are not in the profile from what they were counted as to the lost ones. */
static void take_lost(const struct session *s, struct session_account *account)
{
	for (int i = 0; i < PYBPF_NR_COUNTERS; i++) {
		account->counters[i] -= s->unsent[i] + s->unkept[i];
		account->unsent += s->unsent[i];
		account->unkept += s->unkept[i];
	}
}

/* Adds up the samples by what became of them. account->counters: as the kernel has counted them. */
static void sum_up(const struct session *s, struct session_account *account)
{
	for (int i = 0; i < PYBPF_NR_COUNTERS; i++)
		account->counters[i] += s->counters[i];
	account->counters[PYBPF_COUNT_ASKED] = session_account_asked(account);
	take_lost(s, account);
	account->lost = session_account_lost(account);
	account->taken = account->counters[PYBPF_COUNT_ASKED] - account->lost;
	account->python = account->counters[PYBPF_COUNT_PYTHON];
	account->source = kernel_get_source(s->kernel);
}

int session_count_samples(struct session *s, struct session_account *account)
{
	int err;

	memset(account, 0, sizeof(*account));
	err = kernel_read_counters(s->kernel, account->counters);
	sum_up(s, account);
	account->freq = s->options.freq;
	processes_get_final_counts(s->processes, &account->processes);
	session_count_states(s, account);
	return err;
}

int session_describe_epochs(struct session *s, const struct session_account *account, struct profile *profile)
{
	int err = account ? session_describe(s, account, profile) : 0;

	return err || !s->sources ? err : session_sources_collect(s->sources, profile);
}

size_t session_count_refused_processes(const struct session *s)
{
	return processes_count_refused(s->processes);
}

char *session_read_source(struct session *s, const char *file)
{
	return s->sources ? session_sources_read(s->sources, file) : NULL;
}

/* Limits the time for what is missing of code objects, and for what measures read. */
static void limit_reading(struct session *s)
{
	double left = s->ended_used_s + SESSION_END_CODES_S - session_used_s();

	pysym_read_for(s->pysym, left > 0 ? (uint64_t)(left * 1e9) : 0);
	session_measures_limit_reading(s);
}

int session_collect(struct session *s, const struct profile **profile, struct session_account *account)
{
	struct pass all = {.session = s, .due.all = true};
	uint64_t first_ns;
	size_t timed;
	int err;

	memset(account, 0, sizeof(*account));
	limit_reading(s);
	do
		err = session_consume(s);
	while (err > 0);
	processes_report_mismatches(s->processes);
	processes_settle_ended(s->processes);
	session_measures_name_frames(s);
	s->lost_records += stacks_finish(s->stacks);
	err = err ?: kernel_read_counters(s->kernel, account->counters);
	err = err ?: kernel_visit_counts(s->kernel, take_count, &all);
	err = err ?: session_pending_take_counts(&s->pending, is_of_pass, add_count, &all);
	err = err ?: session_measures_settle(s, &all.due);
	err = err ?: processes_tell_parents(s->processes, s->profile);
	profile_sort_events(s->profile);
	if (!err && s->sources)
		err = session_sources_collect(s->sources, s->profile);
	if (err) {
		if (!s->error)
			log_error("cannot read the counts from the kernel: %s", strerror(-err));
		return err;
	}
	sum_up(s, account);
	session_note_wanted(s);
	processes_get_counts(s->processes, &account->processes);
	account->stacks = stacks_count(s->stacks);
	account->lost_records = s->lost_records;
	account->names = *pysym_get_counters(s->pysym);
	account->duration_s = (double)(s->detach_ns - s->attach_ns) / 1e9;
	account->kernel_ns_per_sample = kernel_time(s, account->counters[PYBPF_COUNT_ASKED]);
	account->measured = account->kernel_ns_per_sample >= 0;
	first_ns = kernel_get_first_sample_ns(s->kernel);
	account->time_to_first_sample_ms = first_ns ? (double)(int64_t)(first_ns - s->options.start_ns) / 1e6 : -1;
	account->freq = s->options.freq;
	session_measures_tell(s, account);
	own_cost(account);
	profile_events(s->profile, &timed);
	account->timed = timed;
	account->timed_bytes = timed * SESSION_TIME_BYTES;
	err = session_describe(s, account, s->profile);
	err = err ?: session_machine_describe(&s->machine_begin, &s->machine_end, s->profile);
	if (err) {
		log_error("cannot finish the profile: %s", strerror(-err));
		return err;
	}
	*profile = s->profile;
	return 0;
}

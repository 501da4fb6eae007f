// SPDX-License-Identifier: Apache-2.0
/* Ends an epoch: switches the sets, and takes the old set's records and counts. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "kernel/counts.h"
#include "kernel/events.h"
#include "session/cpu_time.h"
#include "session/internal.h"

static void take_pending_records(struct session *s)
{
	struct session_epoch_pending *pending = &s->pending;

	while (pending->records) {
		struct session_pending_record *first = pending->records;

		/* If the process is not known by now, the stack is lost, as in session_on_record(). */
		session_take_event(s, &first->event);
		pending->records = first->next;
		free(first);
	}
	pending->records_end = &pending->records;
}

struct epoch {
	struct session *session;
	bool forget;
};

/* Returns whether the stack and process of the count are known by now, or will never be. */
static bool is_decided(const struct pybpf_count_key *key, void *arg)
{
	const struct epoch *epoch = arg;
	const struct session *s = epoch->session;
	const struct processes_record *process = processes_find_record(s->processes, key->thread.proc_id);

	if (!process)
		return true;
	if (key->stack_id == PYBPF_STACK_ID_UNDECIDED)
		return process->state != PROCESSES_LOOKING || process->ended;
	return epoch->forget || stacks_find(s->stacks, key->stack_id) != PROFILE_NONE;
}

static int take_count(const struct pybpf_count_key *key, const struct pybpf_count *count, void *arg)
{
	struct epoch *epoch = arg;
	const struct pybpf_count weighed = session_weigh_count(epoch->session, key, count);

	int err = 0;

	if (is_decided(key, epoch))
		session_add_count(epoch->session, key, &weighed);
	else
		err = session_pending_add_count(&epoch->session->pending, key, &weighed);
	if (err)
		session_lose_count(epoch->session, key, &weighed, err);
	return 0;
}

static int add_count(const struct pybpf_count_key *key, const struct pybpf_count *count, void *arg)
{
	const struct epoch *epoch = arg;

	session_add_count(epoch->session, key, count);
	return 0;
}

/* Takes the old epoch's records, which are all in the ring buffer by now, and its counts. */
static int take_epoch(struct session *s, bool forget)
{
	struct epoch epoch = {.session = s, .forget = forget};
	int err;

	do
		err = session_consume(s);
	while (err > 0);
	processes_settle_ended(s->processes);
	if (forget)
		s->lost_records += stacks_finish(s->stacks);
	err = err ?: kernel_take_counts(s->kernel, take_count, &epoch);
	err = err ?: session_pending_take_counts(&s->pending, is_decided, add_count, &epoch);
	return err ?: session_measures_settle_epoch(s);
}

/* Begins the next epoch's profile: with the known stacks and code objects or, if forget, empty. */
static int begin_epoch(struct session *s, bool forget)
{
	int err = 0;

	session_measures_forget_samples(s);
	if (s->times_full)
		kernel_refuse_times(s->kernel, false);
	s->times_full = false;
	if (!forget) {
		profile_clear_samples(s->profile);
		return 0;
	}
	pysym_forget_codes(s->pysym);
	err = session_new_profile(s) ?: kernel_forget_known(s->kernel);
	session_keep_new_stacks(s);
	return err;
}

/*
 * CPU time for names of threads when an epoch ends: those that are not read then have the name that was read before, or
 * the kernel's.
 */
#define NAMES_S 0.05

double session_get_begin(const struct session *s)
{
	return (double)s->attach_ns / 1e9;
}

double session_get_epoch_end(const struct session *s)
{
	return (double)(s->detach_ns ?: s->epoch_end_ns) / 1e9;
}

int session_end_epoch(struct session *s, bool forget, int (*take)(const struct profile *profile, void *arg), void *arg)
{
	int err;

	session_thread_names_read_until(&s->thread_names, session_used_s() + NAMES_S);
	s->pending.old_sets = kernel_get_sets(s->kernel);
	s->pending.changing = true;
	err = session_measures_prepare_epoch(s);
	err = err ?: kernel_change_sets(s->kernel, forget, &s->epoch_end_ns);
	err = err ?: take_epoch(s, forget);
	if (!err) {
		profile_sort_events(s->profile);
		err = take(s->profile, arg);
	}
	err = err ?: begin_epoch(s, forget);
	session_thread_names_read_until(&s->thread_names, HUGE_VAL);
	s->pending.changing = false;
	if (!err)
		take_pending_records(s);
	if (err && !s->error)
		log_error("cannot read what the kernel counted: %s", strerror(-err));
	return err;
}

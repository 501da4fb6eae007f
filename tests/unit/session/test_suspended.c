// SPDX-License-Identifier: Apache-2.0
/* Snapshots of suspended tasks that fail: they are counted, and the run goes on. The kernel and the helper are played.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "discovery/ask_tasks.h"
#include "kernel/procs.h"
#include "session/cpu_time.h"
#include "session/internal.h"
#include "session/sample_owner.h"
#include "session/user_shares.h"

#define PROCESSES 2

static struct {
	double now;
	struct processes_record records[PROCESSES];
	int err[PROCESSES]; /* the answer; 0: no tasks */
	unsigned asked[PROCESSES];
	int visit_err;
} played;

double clock_s(clockid_t clock)
{
	(void)clock;
	return played.now;
}

uint64_t clock_ns(clockid_t clock)
{
	return (uint64_t)(clock_s(clock) * 1e9);
}

double session_used_s(void)
{
	return 0;
}

void processes_visit_all(struct processes *p, void (*visit)(struct processes_record *process, void *arg), void *arg)
{
	(void)p;
	for (int i = 0; i < PROCESSES; i++)
		visit(&played.records[i], arg);
}

struct processes_record *processes_find_record(const struct processes *p, uint64_t proc_id)
{
	(void)p;
	return &played.records[proc_id - 1];
}

int session_visit_by_user(struct session *s, double until_s,
			  bool (*is_due)(const struct processes_record *process, void *arg),
			  void (*visit)(struct processes_record *process, double until_s, void *arg), void *arg)
{
	(void)s;
	for (int i = 0; i < PROCESSES && !played.visit_err; i++) {
		if (is_due(&played.records[i], arg))
			visit(&played.records[i], until_s, arg);
	}
	return played.visit_err;
}

/* What other measures call, which are no part of this. */
bool session_takes_new_stacks(const struct session *s)
{
	return !s->stacks_refused;
}

bool session_may_keep_time(struct session *s)
{
	(void)s;
	return true;
}

size_t session_count_users(struct session *s, bool (*is_due)(const struct processes_record *process, void *arg),
			   void *arg)
{
	(void)s;
	(void)is_due;
	(void)arg;
	return 1;
}

bool session_runs_python(const struct processes_record *process, void *arg)
{
	(void)arg;
	return process->state == PROCESSES_PYTHON;
}

int session_find_owners(struct session *s, const struct pybpf_thread_key *of, struct processes_record *process,
			uint32_t *owner, uint32_t *thread)
{
	(void)s;
	(void)of;
	(void)process;
	*owner = *thread = 0;
	return 0;
}

int kernel_get_process(const struct kernel *k, pid_t pid, struct pybpf_proc *entry)
{
	(void)k;
	memset(entry, 0, sizeof(*entry));
	entry->proc_id = (uint64_t)pid;
	entry->nr_runtimes = 1;
	entry->runtimes[0].asyncio.current_tasks = 1;
	return 0;
}

bool kernel_owns_proc_id(const struct kernel *k, uint64_t proc_id)
{
	(void)k;
	(void)proc_id;
	return true;
}

const struct pybpf_layout *kernel_get_layout(const struct kernel *k, uint32_t index)
{
	static const struct pybpf_layout layout = {.minor = 12};

	(void)k;
	(void)index;
	return &layout;
}

int discovery_ask_tasks(pid_t pid, const struct task_read_place *place, double patience_s, double cpu_s,
			int (*visit)(const struct task_read *task, void *arg), void *arg,
			struct task_read_counts *counts)
{
	(void)place;
	(void)patience_s;
	(void)cpu_s;
	(void)visit;
	(void)arg;
	(void)counts;
	played.asked[pid - 1]++;
	return played.err[pid - 1];
}

static int setup(void **state)
{
	struct session *s = calloc(1, sizeof(*s));

	memset(&played, 0, sizeof(played));
	played.now = 1000;
	for (int i = 0; i < PROCESSES; i++)
		played.records[i] =
			(struct processes_record){.proc_id = (uint64_t)i + 1, .pid = i + 1, .state = PROCESSES_PYTHON};
	s->options.suspended = true;
	s->attach_ns = clock_ns(CLOCK_MONOTONIC);
	s->ended_used_s = 1;
	session_suspended_measure.init(s);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	session_suspended_measure.free(*state);
	free(*state);
	return 0;
}

static struct session_suspended_account account_of(const struct session *s)
{
	struct session_account account;

	memset(&account, 0, sizeof(account));
	session_suspended_measure.tell(s, &account);
	return account.suspended;
}

/* What one process costs ends no run: the others' snapshots go on. */
static void test_one_without_memory_is_counted(void **state)
{
	struct session *s = *state;

	played.err[0] = -ENOMEM;
	for (int i = 0; i < 10; i++) {
		assert_true(session_suspended_measure.do_periodic_work(s, played.now) >= played.now);
		played.now += 0.5;
	}
	assert_int_equal(s->error, 0);
	assert_int_equal(account_of(s).failed, played.asked[0]);
	assert_int_equal(account_of(s).snapshots, played.asked[1]);
	assert_true(played.asked[0] > 1 && played.asked[1] > 1);
}

/* The tasks of all count as they were seen last. */
static void test_no_memory_for_last_snapshots(void **state)
{
	struct session *s = *state;

	played.visit_err = -ENOMEM;
	session_suspended_measure.end(s);
	assert_int_equal(s->error, 0);
	assert_int_equal(account_of(s).failed, 1);
}

static void test_last_snapshots(void **state)
{
	struct session *s = *state;

	played.err[1] = -ENOMEM;
	session_suspended_measure.end(s);
	assert_int_equal(s->error, 0);
	assert_int_equal(account_of(s).snapshots, 1);
	assert_int_equal(account_of(s).failed, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_one_without_memory_is_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_memory_for_last_snapshots, setup, teardown),
		cmocka_unit_test_setup_teardown(test_last_snapshots, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * How the time for names of threads is shared between users, and which are forgotten. The kernel, processes and the
 * time are played.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/procfs.h"
#include "kernel/procs.h"
#include "session/cpu_time.h"
#include "session/internal.h"
#include "session/user_shares.h"

#define NAME_S 0.001

static struct {
	double used_s;
	unsigned reads[3]; /* by PID */
	struct processes_record processes[3];
} played;

struct processes_record *processes_find_record(const struct processes *p, uint64_t proc_id)
{
	(void)p;
	for (size_t i = 0; i < sizeof(played.processes) / sizeof(*played.processes); i++) {
		if (proc_id && played.processes[i].proc_id == proc_id)
			return &played.processes[i];
	}
	return NULL;
}

double session_used_s(void)
{
	return played.used_s;
}

size_t session_count_users(struct session *s, bool (*is_due)(const struct processes_record *process, void *arg),
			   void *arg)
{
	(void)s;
	(void)is_due;
	(void)arg;
	return 2;
}

bool session_runs_python(const struct processes_record *process, void *arg)
{
	(void)arg;
	return process->state == PROCESSES_PYTHON;
}

/* A name is read from here on. */
int kernel_get_process(const struct kernel *k, pid_t pid, struct pybpf_proc *entry)
{
	(void)k;
	(void)entry;
	played.reads[pid]++;
	played.used_s += NAME_S;
	return -ENOENT;
}

const struct pybpf_layout *kernel_get_layout(const struct kernel *k, uint32_t index)
{
	(void)k;
	(void)index;
	return NULL;
}

/* The names of so many threads of a process are asked for. */
static void ask(struct session *s, pid_t pid, uint32_t threads)
{
	struct processes_record process = {.pid = pid,
					   .proc_id = (uint64_t)pid,
					   .user = 1000 + (uid_t)pid,
					   .user_known = true,
					   .state = PROCESSES_PYTHON};

	for (uint32_t i = 1; i <= threads; i++) {
		const struct pybpf_thread_key key = {.proc_id = process.proc_id, .tid = i};

		session_thread_names_note(s, &key, i);
		assert_string_equal(session_find_thread_name(s, &process, &key, "kernel's"), "kernel's");
	}
}

static int setup(void **state)
{
	memset(&played, 0, sizeof(played));
	*state = calloc(1, sizeof(struct session));
	session_thread_names_init(&((struct session *)*state)->thread_names);
	return 0;
}

static int teardown(void **state)
{
	session_thread_names_free(&((struct session *)*state)->thread_names);
	free(*state);
	return 0;
}

static void test_a_stranger_takes_nobodys_time(void **state)
{
	struct session *s = *state;

	s->ended_used_s = 0.1 - SESSION_END_NAMES_S;
	session_thread_names_measure.limit_reading(s);
	ask(s, 1, 1000);
	ask(s, 2, 40);
	assert_in_range(played.reads[1], 40, 52);
	assert_int_equal(played.reads[2], 40);
	assert_int_equal(s->thread_names.unread, 1000 - played.reads[1]);
}

static void test_one_user_has_all_the_time(void **state)
{
	struct session *s = *state;

	session_thread_names_read_until(&s->thread_names, 0.1);
	ask(s, 1, 1000);
	assert_in_range(played.reads[1], 95, 102);
}

/* Returns the key of this program's thread, as the kernel has it. */
static struct pybpf_thread_key own_thread(uint64_t proc_id)
{
	struct procfs_stat stat;

	assert_int_equal(procfs_read_task_stat(getpid(), getpid(), &stat), 0);
	return (struct pybpf_thread_key){.proc_id = proc_id,
					 .tid = (uint32_t)getpid(),
					 .tid_start_ms =
						 (uint32_t)(stat.start_time * 1000 / (uint64_t)sysconf(_SC_CLK_TCK))};
}

static bool is_noted(const struct session *s, const struct pybpf_thread_key *key)
{
	return intern_find(&s->thread_names.threads, key) != INTERN_NONE;
}

/* At the second look, as what is counted of one may be taken between them. A living one keeps its name. */
static void test_threads_that_ended_are_forgotten(void **state)
{
	struct session *s = *state;
	const struct pybpf_thread_key own = own_thread(1), ended = {.proc_id = 1, .tid = 1u << 30},
				      of_ended = {.proc_id = 2, .tid = 5}, of_unknown = {.proc_id = 3, .tid = 6};
	const struct pybpf_thread_key *const keys[] = {&ended, &own, &of_ended, &of_unknown};

	played.processes[0] = (struct processes_record){.pid = getpid(), .proc_id = 1, .state = PROCESSES_PYTHON};
	played.processes[1] = (struct processes_record){.pid = 2, .proc_id = 2, .ended = true};
	for (size_t i = 0; i < 4; i++)
		session_thread_names_note(s, keys[i], i);
	session_thread_names_measure.forget_frames(s);
	for (size_t i = 0; i < 4; i++)
		assert_true(is_noted(s, keys[i]));
	session_thread_names_measure.forget_frames(s);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(is_noted(s, keys[i]), keys[i] == &own);
	for (int i = 0; i < 3; i++)
		session_thread_names_measure.forget_frames(s);
	assert_int_equal(s->thread_names.threads.count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_stranger_takes_nobodys_time, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_user_has_all_the_time, setup, teardown),
		cmocka_unit_test_setup_teardown(test_threads_that_ended_are_forgotten, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

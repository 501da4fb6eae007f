// SPDX-License-Identifier: Apache-2.0
/* How the time for names of threads is shared between users. The kernel, processes and the time are played. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/procs.h"
#include "session/cpu_time.h"
#include "session/internal.h"
#include "session/shares.h"

#define NAME_S 0.001

static struct {
	double used_s;
	unsigned reads[3]; /* by PID */
} played;

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

		assert_int_equal(session_thread_names_note(s, &key, i), 0);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_stranger_takes_nobodys_time, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_user_has_all_the_time, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

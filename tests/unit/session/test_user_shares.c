// SPDX-License-Identifier: Apache-2.0
/* How the time of a visit to all processes is shared between users. Processes and the time are played. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "session/cpu_time.h"
#include "session/internal.h"
#include "session/user_shares.h"

#define PROCESSES 5

static struct {
	struct processes_record records[PROCESSES];
	double wants_s[PROCESSES]; /* the time that reading all of its threads takes */
	double took_s[PROCESSES];
	double now;
} played;

double session_used_s(void)
{
	return played.now;
}

uid_t processes_get_user(struct processes_record *process)
{
	return process->user;
}

void processes_visit_all(struct processes *p, void (*visit)(struct processes_record *process, void *arg), void *arg)
{
	(void)p;
	for (int i = 0; i < PROCESSES; i++)
		visit(&played.records[i], arg);
}

static int setup(void **state)
{
	(void)state;
	memset(&played, 0, sizeof(played));
	return 0;
}

static void play(int process, uid_t user, double wants_s)
{
	played.records[process].state = PROCESSES_PYTHON;
	played.records[process].user = user;
	played.wants_s[process] = wants_s;
}

static bool is_python(const struct processes_record *process, void *arg)
{
	(void)arg;
	return process->state == PROCESSES_PYTHON;
}

static void visit(struct processes_record *process, double until_s, void *arg)
{
	size_t i = (size_t)(process - played.records);
	double left = until_s - played.now;

	(void)arg;
	assert_true(is_python(process, NULL));
	played.took_s[i] = played.wants_s[i] < left ? played.wants_s[i] : left > 0 ? left : 0;
	played.now += played.took_s[i];
}

static void visit_all(double seconds)
{
	static struct session session;

	assert_int_equal(session_visit_by_user(&session, played.now + seconds, is_python, visit, NULL), 0);
}

/* Wherever the stranger is in the table. */
static void test_a_stranger_takes_nobodys_share(void **state)
{
	(void)state;
	for (int stranger = 0; stranger < 3; stranger++) {
		setup(NULL);
		for (int i = 0; i < 3; i++)
			play(i, 1000 + (uid_t)i, 0.3);
		played.wants_s[stranger] = 100;
		visit_all(1);
		for (int i = 0; i < 3; i++)
			assert_true(played.took_s[i] > 0.3 - 1e-9);
		assert_true(played.now < 1 + 1e-9);
	}
}

/* A user has no larger share with more processes. */
static void test_processes_share_their_users_time(void **state)
{
	(void)state;
	play(0, 2000, 100);
	play(1, 1000, 0.4);
	play(2, 2000, 100);
	play(3, 2000, 100);
	visit_all(1);
	assert_true(played.took_s[1] > 0.4 - 1e-9);
	assert_true(played.now < 1 + 1e-9);
}

static void test_one_user_has_all(void **state)
{
	(void)state;
	play(1, 1000, 0.2);
	play(3, 1000, 0.7);
	visit_all(1);
	assert_true(played.took_s[1] > 0.2 - 1e-9 && played.took_s[3] > 0.7 - 1e-9);
}

/* A time that is over is nobody's. */
static void test_no_time(void **state)
{
	(void)state;
	play(0, 1, 1);
	play(1, 2, 1);
	visit_all(-1);
	assert_true(played.took_s[0] + played.took_s[1] < 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_a_stranger_takes_nobodys_share, setup),
		cmocka_unit_test_setup(test_processes_share_their_users_time, setup),
		cmocka_unit_test_setup(test_one_user_has_all, setup),
		cmocka_unit_test_setup(test_no_time, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* Helpers that are slow, that die, or that were taken over: what the one who asks makes of it. */
#include "helper/helper.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "helper/internal.h"

/* A helper has no more descriptors: one of them is its socket. */
#define FDS_MOST      64
#define LONG_ENOUGH_S 5.0

static int serve_echo(void *state, const void *question, size_t question_size, void *answer, size_t *size)
{
	(void)state;
	memcpy(answer, question, question_size);
	*size = question_size;
	return 0;
}

/* Shared with the helpers: slow questions may be answered. */
static atomic_bool *may_answer;

/* Takes until the test lets it go on, however busy the machine is. */
static void take_long(void)
{
	const struct timespec pause = {.tv_nsec = 1000000};

	while (!atomic_load(may_answer))
		nanosleep(&pause, NULL);
}

static int serve_late(void *state, const void *question, size_t question_size, void *answer, size_t *size)
{
	take_long();
	return serve_echo(state, question, question_size, answer, size);
}

static int serve_crash(void *state, const void *question, size_t question_size, void *answer, size_t *size)
{
	(void)state;
	(void)question;
	(void)question_size;
	(void)answer;
	(void)size;
	_exit(1);
}

static int serve_late_crash(void *state, const void *question, size_t question_size, void *answer, size_t *size)
{
	take_long();
	return serve_crash(state, question, question_size, answer, size);
}

static int serve_result(void *state, const void *question, size_t question_size, void *answer, size_t *size)
{
	int result;

	(void)state;
	(void)answer;
	(void)question_size;
	*size = 0;
	memcpy(&result, question, sizeof(result));
	return result;
}

/* Writes answers to questions that were not asked yet, and reads none any more. */
static int serve_in_advance(void *state, const void *question, size_t question_size, void *answer, size_t *size)
{
	static const char nothing[256];
	const struct timespec pause = {.tv_sec = 3};

	(void)state;
	(void)question;
	(void)question_size;
	(void)answer;
	*size = 0;
	for (int fd = 3; fd < FDS_MOST; fd++)
		send(fd, nothing, sizeof(nothing), MSG_DONTWAIT | MSG_NOSIGNAL);
	nanosleep(&pause, NULL);
	return 0;
}

/* Returns how many of the ways to the priority of others are open. */
static int serve_priority(void *state, const void *question, size_t question_size, void *answer, size_t *size)
{
	pid_t pid;

	(void)state;
	(void)answer;
	(void)question_size;
	*size = 0;
	memcpy(&pid, question, sizeof(pid));
	return (setpriority(PRIO_PROCESS, (id_t)pid, 19) == 0) + (setpriority(PRIO_USER, 0, 19) == 0) +
	       (setpriority(PRIO_PROCESS, 0, 19) != 0);
}

/* Adds the question's number to the helper's, and returns the sum. */
static int serve_sum(void *state, const void *question, size_t question_size, void *answer, size_t *size)
{
	int *sum = state, number;

	memcpy(&number, question, question_size);
	*sum += number;
	memcpy(answer, sum, sizeof(*sum));
	*size = sizeof(*sum);
	return 0;
}

static int serve_late_sum(void *state, const void *question, size_t question_size, void *answer, size_t *size)
{
	take_long();
	return serve_sum(state, question, question_size, answer, size);
}

/* Not in the table. */
#define INTRUDED 77

static int intrude(void *state, const void *question, size_t question_size, void *answer, size_t *size)
{
	(void)state;
	(void)question;
	(void)question_size;
	(void)answer;
	*size = 0;
	return INTRUDED;
}

static helper_service *const items[] = {serve_echo,       serve_late,     serve_crash, serve_late_crash, serve_result,
					serve_in_advance, serve_priority, serve_sum,   serve_late_sum};
static const struct helper_services services = {items, sizeof(items) / sizeof(*items)};

#define SUM_AT_START 40

static int sum;

static int start(void **state)
{
	int err;

	(void)state;
	if (!may_answer)
		may_answer = mmap(NULL, sizeof(*may_answer), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true((void *)may_answer != MAP_FAILED);
	atomic_store(may_answer, false);
	sum = SUM_AT_START;
	err = helper_start(&services, &sum);
	sum = 0;
	return err;
}

static int stop(void **state)
{
	(void)state;
	helper_stop();
	return 0;
}

static int call(helper_service *service, pid_t pid, int number, int *out)
{
	size_t size;

	return helper_call(service, (struct helper_subject){.pid = pid}, &number, sizeof(number), out, sizeof(*out),
			   &size, LONG_ENOUGH_S);
}

static int ask(helper_service *service, pid_t pid, uint64_t life, int number, int *out)
{
	size_t size;

	return helper_ask(service, (struct helper_subject){pid, life}, &number, sizeof(number), out, sizeof(*out),
			  &size, 0.01);
}

static void expect_echo(int number)
{
	int got = 0;

	assert_int_equal(call(serve_echo, getpid(), number, &got), 0);
	assert_int_equal(got, number);
}

static void wait_for_answer(struct helper_subject *subject)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	double end = clock_s(CLOCK_MONOTONIC) + LONG_ENOUGH_S;

	while (!helper_has_answer(subject)) {
		assert_true(clock_s(CLOCK_MONOTONIC) < end);
		nanosleep(&pause, NULL);
	}
}

/* An answer about the program that the process ran before. */
static void test_answer_of_another_life(void **state)
{
	int got = 0;

	(void)state;
	assert_int_equal(ask(serve_late, getpid(), 1, 11, &got), -EINPROGRESS);
	atomic_store(may_answer, true);
	while (ask(serve_late, getpid(), 2, 22, &got) == -EINPROGRESS)
		;
	assert_int_equal(got, 22);
	/* Also where it was complete. */
	atomic_store(may_answer, false);
	assert_int_equal(ask(serve_late, getpid(), 3, 33, &got), -EINPROGRESS);
	atomic_store(may_answer, true);
	wait_for_answer(&(struct helper_subject){0});
	while (ask(serve_late, getpid(), 4, 44, &got) == -EINPROGRESS)
		;
	assert_int_equal(got, 44);
}

static void test_answer_that_waits(void **state)
{
	struct helper_subject subject = {0};
	int got = 0;

	(void)state;
	assert_int_equal(ask(serve_late, getpid(), 7, 5, &got), -EINPROGRESS);
	/* Others ask meanwhile, in vain or by the other worker. */
	assert_int_equal(ask(serve_echo, getppid(), 8, 6, &got), -EINPROGRESS);
	expect_echo(9);
	atomic_store(may_answer, true);
	wait_for_answer(&subject);
	assert_true(subject.pid == getpid() && subject.life == 7);
	assert_int_equal(ask(serve_late, getpid(), 7, 5, &got), 0);
	assert_int_equal(got, 5);
	assert_false(helper_has_answer(&subject));
	atomic_store(may_answer, false);
	assert_int_equal(ask(serve_late, getpid(), 7, 5, &got), -EINPROGRESS);
	atomic_store(may_answer, true);
	wait_for_answer(&subject);
	helper_discard(subject);
	assert_false(helper_has_answer(&subject));
	expect_echo(10);
}

/* A process that has cost a helper its life is left alone; others get a new one. */
static void test_crash(void **state)
{
	unsigned long failed = helper_failed_calls();
	int got;

	(void)state;
	assert_int_equal(call(serve_crash, getppid(), 0, &got), -ECONNRESET);
	assert_int_equal(helper_unanswered(), 1);
	assert_int_equal(call(serve_echo, getppid(), 1, &got), -EBUSY);
	assert_int_equal(helper_failed_calls(), failed + 2);
	expect_echo(2);
}

/* Nobody comes for what the helper was at when it crashed. */
static void test_crash_for_nobody(void **state)
{
	double end = clock_s(CLOCK_MONOTONIC) + LONG_ENOUGH_S;
	struct helper_subject subject = {0};
	int got = 0, ret;

	(void)state;
	assert_int_equal(ask(serve_late_crash, getppid(), 1, 0, &got), -EINPROGRESS);
	atomic_store(may_answer, true);
	do
		ret = ask(serve_echo, getpid(), 2, 5, &got);
	while (ret == -EINPROGRESS && clock_s(CLOCK_MONOTONIC) < end);
	assert_int_equal(ret, 0);
	assert_int_equal(got, 5);
	/* helper_has_answer() names the process whose helper crashed, so that its own question fails. */
	atomic_store(may_answer, false);
	assert_int_equal(ask(serve_late_crash, getppid(), 3, 0, &got), -EINPROGRESS);
	atomic_store(may_answer, true);
	wait_for_answer(&subject);
	assert_int_equal(subject.life, 3);
	assert_int_equal(ask(serve_late_crash, getppid(), 3, 0, &got), -ECONNRESET);
	assert_int_equal(ask(serve_echo, getppid(), 4, 0, &got), -EBUSY);
	expect_echo(3);
}

static pid_t helper(void)
{
	pid_t found = 0;
	char command[128];
	FILE *list;

	/* The forkserver's child: this process has one, the forkserver. */
	snprintf(command, sizeof(command),
		 "for m in $(cat /proc/%d/task/*/children); do cat /proc/$m/task/*/children; done", getpid());
	list = popen(command, "r");
	assert_non_null(list);
	if (fscanf(list, "%d", &found) != 1)
		found = 0;
	pclose(list);
	return found;
}

/* Whoever is asked about next is not to blame. */
static void test_death_between_questions(void **state)
{
	unsigned long before = helper_unanswered();
	pid_t pid;

	(void)state;
	expect_echo(1);
	pid = helper();
	assert_true(pid > 1);
	assert_int_equal(kill(pid, SIGKILL), 0);
	while (kill(pid, 0) == 0)
		;
	expect_echo(2);
	assert_int_equal(helper_unanswered(), before);
}

static void test_answers_in_advance(void **state)
{
	double begin = clock_s(CLOCK_MONOTONIC);
	int got;

	(void)state;
	call(serve_in_advance, getppid(), 0, &got);
	for (int i = 0; i < 2000; i++)
		expect_echo(i);
	assert_true(clock_s(CLOCK_MONOTONIC) - begin < 20);
}

/* What only the side that asks can say. */
static void test_results(void **state)
{
	static const int lies[] = {-EINPROGRESS, -EINTR, -ETIMEDOUT, -EBUSY, -ENOTCONN, -ECONNRESET, -EPROTO};
	unsigned long before = helper_failed_calls();
	int got;

	(void)state;
	for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++)
		assert_int_equal(call(serve_result, getpid(), lies[i], &got), -EPROTO);
	assert_int_equal(helper_failed_calls(), before + sizeof(lies) / sizeof(*lies));
	assert_int_equal(call(serve_result, getpid(), -ENOENT, &got), -ENOENT);
	assert_int_equal(helper_failed_calls(), before + sizeof(lies) / sizeof(*lies));
}

/* What is said of an error is either a fact, of the service, or that there was no answer. */
static void test_errors(void **state)
{
	static const int none[] = {-ETIMEDOUT, -ECONNRESET, -EPROTO, -EBUSY, -EINTR, -ENOTCONN};
	static const int facts[] = {0, -ENOENT, -ESRCH, -EFAULT, -EPERM, -EACCES, -ENOMEM, -EINVAL, -ENOSYS, -ESTALE};

	(void)state;
	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
		assert_true(helper_has_no_answer(none[i]));
		assert_string_not_equal(helper_describe_error(none[i]), strerror(-none[i]));
	}
	for (size_t i = 0; i < sizeof(facts) / sizeof(*facts); i++) {
		assert_false(helper_has_no_answer(facts[i]));
		assert_string_equal(helper_describe_error(facts[i]), strerror(-facts[i]));
	}
}

/* This process has one child. */
static pid_t forkserver(void)
{
	char path[64];
	pid_t found = 0;
	FILE *list;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", getpid(), getpid());
	list = fopen(path, "re");
	assert_non_null(list);
	if (fscanf(list, "%d", &found) != 1)
		found = 0;
	fclose(list);
	return found;
}

/* No helper can be made: nothing is known, whatever the error of the forkserver's socket is. */
static void test_dead_maker(void **state)
{
	siginfo_t info;
	pid_t pid = forkserver();
	int got;

	(void)state;
	assert_true(pid > 1);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_true(helper_has_no_answer(call(serve_crash, getppid(), 0, &got)));
	assert_int_equal(call(serve_echo, getpid(), 1, &got), -ENOTCONN);
}

/* A helper begins with the state that helper_start() was given, and keeps what its services make of it. */
static void test_state_of_a_helper(void **state)
{
	int got = 0;

	(void)state;
	assert_int_equal(call(serve_sum, getpid(), 1, &got), 0);
	assert_int_equal(got, SUM_AT_START + 1);
	assert_int_equal(call(serve_sum, getpid(), 2, &got), 0);
	assert_int_equal(got, SUM_AT_START + 3);
	assert_int_equal(sum, 0);
	call(serve_crash, getppid(), 0, &got);
	assert_int_equal(call(serve_sum, getpid(), 4, &got), 0);
	assert_int_equal(got, SUM_AT_START + 4);
}

/* What took a helper long is not done again for the rest of the answer, though others were answered by another one. */
static void test_state_of_a_slow_helper(void **state)
{
	int got = 0;

	(void)state;
	assert_int_equal(ask(serve_late_sum, getpid(), 7, 1, &got), -EINPROGRESS);
	while (ask(serve_sum, getppid(), 8, 100, &got) == -EINPROGRESS)
		;
	assert_int_equal(got, SUM_AT_START + 100);
	atomic_store(may_answer, true);
	while (ask(serve_late_sum, getpid(), 7, 1, &got) == -EINPROGRESS)
		;
	assert_int_equal(got, SUM_AT_START + 1);
	while (ask(serve_late_sum, getpid(), 7, 2, &got) == -EINPROGRESS)
		;
	assert_int_equal(got, SUM_AT_START + 3);
	/* Not of another life, nor of another kind. */
	while (ask(serve_late_sum, getpid(), 9, 4, &got) == -EINPROGRESS)
		;
	assert_int_equal(got, SUM_AT_START + 104);
}

/* Sends a question of that head to a helper, past the side that asks. Returns what the helper answers. */
static int send_raw(int fd, const struct helper_head *question)
{
	struct helper_head answer;
	size_t done = 0;

	assert_int_equal(send(fd, question, sizeof(*question), MSG_NOSIGNAL), sizeof(*question));
	while (done < sizeof(answer)) {
		ssize_t n = recv(fd, (char *)&answer + done, sizeof(answer) - done, 0);

		assert_true(n > 0);
		done += (size_t)n;
	}
	assert_int_equal(answer.size, 0);
	return answer.result;
}

/* Whoever has the other end of a helper's socket chooses among the questions of the table, and nothing else. */
static void test_question_that_is_none(void **state)
{
	helper_service *address = intrude;
	struct helper_head head = {.size = 0};
	const uint32_t beyond[] = {services.count, services.count + 1, INT32_MAX, UINT32_MAX};
	int fds[2], got = 0;
	unsigned slot;

	(void)state;
	assert_int_equal(call(intrude, getpid(), 0, &got), -ENOSYS);
	assert_int_equal(helper_forkserver_get_process(fds, &slot), 0);
	/* An address in place of the index, as the head begins with it. */
	memcpy(&head, &address, sizeof(address));
	head.size = 0;
	assert_int_equal(send_raw(fds[0], &head), -ENOSYS);
	for (size_t i = 0; i < sizeof(beyond) / sizeof(*beyond); i++) {
		memset(&head, 0, sizeof(head));
		memcpy(&head, &beyond[i], sizeof(beyond[i]));
		assert_int_equal(send_raw(fds[0], &head), -ENOSYS);
	}
	/* The helper goes on. */
	memset(&head, 0, sizeof(head));
	assert_int_equal(send_raw(fds[0], &head), 0);
	close(fds[0]);
	close(fds[1]);
	helper_forkserver_free_slot(slot);
	expect_echo(1);
}

static void test_priority_of_others(void **state)
{
	pid_t other = fork();
	int got;

	(void)state;
	if (other == 0) {
		pause();
		_exit(0);
	}
	assert_int_equal(call(serve_priority, getpid(), other, &got), 0);
	assert_int_equal(getpriority(PRIO_PROCESS, (id_t)other), getpriority(PRIO_PROCESS, 0));
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
}

/* An answer that a worker of no helper has received, ten minutes after the question. */
static struct helper_worker answered(uint64_t cpu_ns, uint64_t queued_ns)
{
	return (struct helper_worker){.fd = -1,
				      .pidfd = -1,
				      .busy = true,
				      .subject = {.pid = getpid()},
				      .begin = 1000,
				      .known = 1000,
				      .answered = 1600,
				      .head = {.cpu_ns = cpu_ns, .queued_ns = queued_ns}};
}

/* A helper ends between two answers, and not in the middle of one by its limit of CPU time. */
static void test_a_helper_has_its_time(void **state)
{
	struct helper_worker young = answered((HELPER_CPU_S - 1) * 1000000000ull, 0),
			     old = answered(HELPER_CPU_S * 1000000000ull, 0);

	(void)state;
	helper_worker_clear(&young);
	assert_int_equal(young.subject.pid, getpid());
	assert_false(young.busy);
	helper_worker_clear(&old);
	assert_int_equal(old.subject.pid, 0);
}

/* What the machine was busy with is not the process's fault. */
static void test_a_process_pays_for_its_own_time(void **state)
{
	struct helper_worker waited = answered(0, 600 * 1000000000ull), worked = answered(0, 0);
	size_t size;

	(void)state;
	assert_int_equal(helper_worker_take(&waited, NULL, 0, &size), 0);
	assert_true(helper_user_cost_s(getuid()) == 0);
	assert_int_equal(helper_worker_take(&worked, NULL, 0, &size), 0);
	assert_true(helper_user_cost_s(getuid()) > 500);
	helper_accounts_free();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_helper_has_its_time),
		cmocka_unit_test(test_a_process_pays_for_its_own_time),
		cmocka_unit_test_setup_teardown(test_answer_of_another_life, start, stop),
		cmocka_unit_test_setup_teardown(test_answer_that_waits, start, stop),
		cmocka_unit_test_setup_teardown(test_crash, start, stop),
		cmocka_unit_test_setup_teardown(test_crash_for_nobody, start, stop),
		cmocka_unit_test_setup_teardown(test_death_between_questions, start, stop),
		cmocka_unit_test_setup_teardown(test_answers_in_advance, start, stop),
		cmocka_unit_test_setup_teardown(test_results, start, stop),
		cmocka_unit_test(test_errors),
		cmocka_unit_test_setup_teardown(test_dead_maker, start, stop),
		cmocka_unit_test_setup_teardown(test_state_of_a_helper, start, stop),
		cmocka_unit_test_setup_teardown(test_state_of_a_slow_helper, start, stop),
		cmocka_unit_test_setup_teardown(test_question_that_is_none, start, stop),
		cmocka_unit_test_setup_teardown(test_priority_of_others, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

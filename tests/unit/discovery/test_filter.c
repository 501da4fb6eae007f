// SPDX-License-Identifier: Apache-2.0
/* Which processes are wanted; and the list of the machine's processes that the filter works on. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "discovery/ask.h"
#include "discovery/discovery.h"
#include "discovery/filter.h"
#include "helper/helper.h"

static const struct scan_process worker = {.pid = 2000000001, .ppid = 1, .comm = "gunicorn: worke", .uid = 33};
static const struct container web = {.id = "4f797c539e6c", .name = "web", .runtime = "docker"};

static bool wanted(const struct discovery_filter *filter)
{
	return discovery_filter_matches(filter, &worker, &web);
}

static void nothing_selected_is_nothing_wanted(void **state)
{
	struct discovery_filter filter = {.all = false};

	(void)state;
	assert_false(wanted(&filter));
	filter.all = true;
	assert_true(wanted(&filter));
	assert_true(discovery_filter_matches(&filter, &worker, NULL));
	discovery_filter_free(&filter);
	discovery_filter_free(&filter);
}

static void selects_by_pid(void **state)
{
	struct discovery_filter filter = {.all = false};

	(void)state;
	assert_int_equal(discovery_numbers_add(&filter.pids, 7), 0);
	assert_false(wanted(&filter));
	assert_int_equal(discovery_numbers_add(&filter.pids, (uint32_t)worker.pid), 0);
	assert_int_equal(discovery_numbers_add(&filter.pids, (uint32_t)worker.pid), 0);
	assert_int_equal(filter.pids.count, 2);
	assert_true(wanted(&filter));
	discovery_filter_free(&filter);
}

static void narrows_by_comm_and_user(void **state)
{
	struct discovery_filter filter = {.all = true};

	(void)state;
	assert_int_equal(discovery_texts_add(&filter.comms, "celery*"), 0);
	assert_false(wanted(&filter));
	assert_int_equal(discovery_texts_add(&filter.comms, "gunicorn*"), 0);
	assert_true(wanted(&filter));
	assert_int_equal(discovery_numbers_add(&filter.users, 0), 0);
	assert_false(wanted(&filter));
	assert_int_equal(discovery_numbers_add(&filter.users, 33), 0);
	assert_true(wanted(&filter));
	/* Narrowing selects nothing. */
	filter.all = false;
	assert_false(wanted(&filter));
	discovery_filter_free(&filter);
}

static void excludes(void **state)
{
	struct discovery_filter filter = {.all = true};

	(void)state;
	assert_int_equal(discovery_texts_add(&filter.not_comms, "celery*"), 0);
	assert_int_equal(discovery_numbers_add(&filter.not_users, 0), 0);
	assert_int_equal(discovery_numbers_add(&filter.not_pids, 1), 0);
	assert_int_equal(discovery_texts_add(&filter.not_containers, "db"), 0);
	assert_true(wanted(&filter));
	discovery_filter_free(&filter);

	filter.all = true;
	assert_int_equal(discovery_texts_add(&filter.not_comms, "gunicorn: [a-w]*"), 0);
	assert_false(wanted(&filter));
	discovery_filter_free(&filter);

	filter.all = true;
	assert_int_equal(discovery_numbers_add(&filter.not_users, 33), 0);
	assert_false(wanted(&filter));
	discovery_filter_free(&filter);

	/* What is excluded is so also when it is selected by its number. */
	assert_int_equal(discovery_numbers_add(&filter.pids, (uint32_t)worker.pid), 0);
	assert_int_equal(discovery_numbers_add(&filter.not_pids, (uint32_t)worker.pid), 0);
	assert_false(wanted(&filter));
	discovery_filter_free(&filter);

	filter.all = true;
	assert_int_equal(discovery_texts_add(&filter.not_containers, "web"), 0);
	assert_false(wanted(&filter));
	assert_true(discovery_filter_matches(&filter, &worker, NULL));
	discovery_filter_free(&filter);
	filter.all = true;
	assert_int_equal(discovery_texts_add(&filter.not_containers, "4f79"), 0);
	assert_false(wanted(&filter));
	discovery_filter_free(&filter);
}

static void says_what_cannot_be_resolved(void **state)
{
	static helper_service *const items[] = {discovery_serve_container_find};
	static const struct helper_services services = {items, 1};
	struct discovery_filter filter = {.all = false};
	struct discovery *known = discovery_new();
	struct error error;

	(void)state;
	assert_non_null(known);
	assert_int_equal(helper_start(&services, known), 0);
	discovery_free(known);
	assert_int_equal(discovery_filter_resolve(&filter, &error), 0);
	assert_int_equal(discovery_texts_add(&filter.cgroups, "/no/such/group"), 0);
	assert_int_not_equal(discovery_filter_resolve(&filter, &error), 0);
	assert_non_null(strstr(error.text, "/no/such/group"));
	discovery_filter_free(&filter);
	assert_int_equal(discovery_texts_add(&filter.containers, "no-such-container"), 0);
	assert_int_equal(discovery_filter_resolve(&filter, &error), -ENOENT);
	assert_non_null(strstr(error.text, "no-such-container"));
	discovery_filter_free(&filter);
	helper_stop();
}

/* This program has started a child, and that one another. */
struct family {
	pid_t child, grandchild;
};

static int start_family(void **state)
{
	struct family *family = calloc(1, sizeof(*family));
	int ends[2];

	assert_non_null(family);
	assert_int_equal(pipe(ends), 0);
	family->child = fork();
	if (!family->child) {
		pid_t pid = fork();

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(60);
		if (!pid)
			prctl(PR_SET_NAME, "a name) R 1");
		else if (write(ends[1], &pid, sizeof(pid)) != sizeof(pid))
			_exit(1);
		for (;;)
			pause();
	}
	assert_true(family->child > 0);
	assert_int_equal(read(ends[0], &family->grandchild, sizeof(pid_t)), sizeof(pid_t));
	close(ends[0]);
	close(ends[1]);
	*state = family;
	return 0;
}

static int end_family(void **state)
{
	struct family *family = *state;

	kill(family->child, SIGKILL);
	waitpid(family->child, NULL, 0);
	free(family);
	return 0;
}

static void follows_children(void **state)
{
	const struct family *family = *state;
	struct discovery_filter filter = {.all = false};
	struct scan_process process;

	assert_int_equal(discovery_numbers_add(&filter.pids, (uint32_t)family->child), 0);
	assert_int_equal(scan_read_process(family->grandchild, &process), 0);
	assert_false(discovery_filter_matches(&filter, &process, NULL));
	filter.children = true;
	assert_true(discovery_filter_matches(&filter, &process, NULL));
	assert_int_equal(scan_read_process(family->child, &process), 0);
	assert_true(discovery_filter_matches(&filter, &process, NULL));
	assert_int_equal(scan_read_process(getpid(), &process), 0);
	assert_false(discovery_filter_matches(&filter, &process, NULL));
	discovery_filter_free(&filter);
}

struct found {
	const struct family *family;
	size_t own, child, grandchild;
	pid_t last;
	bool ordered;
};

static int find(const struct scan_process *process, void *arg)
{
	struct found *found = arg;

	found->ordered &= process->pid > found->last;
	found->last = process->pid;
	found->own += process->pid == getpid();
	found->child += process->pid == found->family->child && process->ppid == getpid();
	if (process->pid != found->family->grandchild)
		return 0;
	found->grandchild++;
	assert_int_equal(process->ppid, found->family->child);
	assert_int_equal(process->inside, process->pid);
	assert_int_equal(process->uid, geteuid());
	assert_int_equal(process->threads, 1);
	assert_true(process->start_time > 0);
	assert_false(process->kernel_thread || process->ended);
	return 0;
}

static int stop_at_once(const struct scan_process *process, void *arg)
{
	*(size_t *)arg += process->pid > 0;
	return 42;
}

static void scans_processes(void **state)
{
	struct found found = {.family = *state, .ordered = true};
	struct scan_process process;
	struct scan_count count;
	size_t visits = 0;

	assert_int_equal(scan_each_process(find, &found, &count), 0);
	assert_int_equal(found.own, 1);
	assert_int_equal(found.child, 1);
	assert_int_equal(found.grandchild, 1);
	assert_true(found.ordered);
	assert_true(count.seen >= 3);
	assert_int_equal(scan_each_process(stop_at_once, &visits, NULL), 42);
	assert_int_equal(visits, 1);
	kill(found.family->child, SIGKILL);
	/* Not collected yet. */
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(scan_read_process(found.family->child, &process), 0);
		if (process.ended)
			break;
		usleep(10000);
	}
	assert_true(process.ended);
	waitpid(found.family->child, NULL, 0);
	assert_int_equal(scan_read_process(found.family->child, &process), -ESRCH);
}

static void reads_command_lines(void **state)
{
	char text[64], kernel[64];
	int ends[2];
	pid_t child;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (!child) {
		dup2(ends[0], 0);
		close(ends[1]);
		execl("/bin/cat", "cat", "-", "-", (char *)NULL);
		_exit(1);
	}
	close(ends[0]);
	for (int i = 0; i < 1000; i++) {
		scan_read_cmdline(child, text, sizeof(text));
		if (!strcmp(text, "cat - -"))
			break;
		usleep(10000);
	}
	assert_string_equal(text, "cat - -");
	scan_read_cmdline(child, text, 4);
	assert_string_equal(text, "cat");
	close(ends[1]);
	waitpid(child, NULL, 0);
	scan_read_cmdline(child, kernel, sizeof(kernel));
	assert_string_equal(kernel, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_selected_is_nothing_wanted),
		cmocka_unit_test(selects_by_pid),
		cmocka_unit_test(narrows_by_comm_and_user),
		cmocka_unit_test(excludes),
		cmocka_unit_test(says_what_cannot_be_resolved),
		cmocka_unit_test_setup_teardown(follows_children, start_family, end_family),
		cmocka_unit_test_setup_teardown(scans_processes, start_family, end_family),
		cmocka_unit_test(reads_command_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

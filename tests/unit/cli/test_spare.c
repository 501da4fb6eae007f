// SPDX-License-Identifier: Apache-2.0
/* The place for what the disk has no room for: another disk. */
#include "cli/spare.h"

#include <errno.h>
#include <pty.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/error.h"
#include "base/signals.h"

static char folder[] = "/tmp/pybpf-spare-XXXXXX";

static int make_folder(void **unused)
{
	(void)unused;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **unused)
{
	(void)unused;
	return rmdir(folder);
}

/* The folder is on the file's own disk, whose quota may be used up while it has room. */
static void test_not_on_the_same_disk(void **unused)
{
	struct output_file file;
	static struct cli_spare spare;
	struct error error;
	char path[sizeof(folder) + 16];

	(void)unused;
	snprintf(path, sizeof(path), "%s/x.folded", folder);
	assert_int_equal(setenv("TMPDIR", folder, 1), 0);
	error_clear(&error);
	assert_int_equal(output_file_open(&file, path, &error), 0);
	cli_spare_open(&spare, &file, path);
	if (spare.file.stream) {
		assert_int_not_equal(spare.file.folder_status.st_dev, file.folder_status.st_dev);
		assert_true(strncmp(spare.path, folder, strlen(folder)) != 0);
		output_file_discard(&spare.file);
	}
	output_file_discard(&file);
}

/* The result of the question to the terminal, to which the signal came before Enter. */
static int ask_signalled(int signo)
{
	char text[4096];
	size_t size = 0;
	int terminal, status = 0;
	pid_t child = forkpty(&terminal, NULL, NULL, NULL);
	sigset_t signals;

	if (!child) {
		signals_of_run(&signals);
		sigprocmask(SIG_BLOCK, &signals, NULL);
		raise(signo);
		_exit(cli_spare_wait_for_room(tmpfile(), "x.folded", -ENOSPC));
	}
	assert_true(child > 0);
	text[0] = '\0';
	while (!strstr(text, "to lose it")) {
		ssize_t n = read(terminal, text + size, sizeof(text) - 1 - size);

		assert_true(n > 0);
		size += (size_t)n;
		text[size] = '\0';
	}
	/* It may have ended. */
	if (write(terminal, "\n", 1) != 1)
		assert_int_equal(errno, EIO);
	assert_int_equal(waitpid(child, &status, 0), child);
	close(terminal);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_signals_that_end_a_run_end_the_wait(void **unused)
{
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGALRM};

	(void)unused;
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		assert_int_equal(ask_signalled(ends[i]), 0);
	assert_int_equal(ask_signalled(SIGUSR1), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_not_on_the_same_disk),
		cmocka_unit_test(test_signals_that_end_a_run_end_the_wait),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

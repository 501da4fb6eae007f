// SPDX-License-Identifier: Apache-2.0
/* Runs the pager: the choice of the program, its process, and the pipe into it. */
#include "cli/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rights/caller.h"
#include "cli/cli.h"
#include "base/log.h"
#include "rights/rights.h"

/* -R passes colours, -F quits if the text fits on the screen, -X leaves the text on the screen. */
#define PAGER "less -FRX"
/* The shell's exit status if a command is not found, or cannot be executed. */
#define NOT_FOUND 127
#define NOT_RUN   126

/* Is there a program of that name in PATH? */
static bool is_installed(const char *name)
{
	const char *path = getenv("PATH");
	char file[4096];

	while (path && *path) {
		size_t size = strcspn(path, ":");

		if (snprintf(file, sizeof(file), "%.*s/%s", (int)size, path, name) < (int)sizeof(file) &&
		    access(file, X_OK) == 0)
			return true;
		path += size + (path[size] == ':');
	}
	return false;
}

static const char *command(void)
{
	const char *names[] = {"PYBPF_PAGER", "PAGER"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *value = getenv(names[i]);

		if (value)
			return *value && strcmp(value, "cat") != 0 ? value : NULL;
	}
	return is_installed("less") ? PAGER : NULL;
}

/* Ignores signals while the pager runs: Ctrl-C is meant for it, and quitting it early must not end pybpf (SIGPIPE). */
static void ignore_signals(bool ignore)
{
	static struct sigaction before[3];
	static const int signals[] = {SIGINT, SIGQUIT, SIGPIPE};
	const struct sigaction ignored = {.sa_handler = SIG_IGN};

	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		sigaction(signals[i], ignore ? &ignored : &before[i], ignore ? &before[i] : NULL);
}

/*
 * Runs in the child: waits for the first text, then executes the pager's command, with the pipe as stdin and without
 * pybpf's other descriptors. The pager gains no rights from file capabilities, even as root.
 */
static void run_child(const char *text, int in, const struct caller *caller)
{
	static const int signals[] = {SIGINT, SIGQUIT, SIGPIPE, SIGXFSZ};
	struct pollfd data = {.fd = STDIN_FILENO, .events = POLLIN};

	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		signal(signals[i], SIG_DFL);
	if (dup2(in, STDIN_FILENO) < 0 || close_range(STDERR_FILENO + 1, ~0U, 0) || caller_become(caller) ||
	    rights_empty() || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || setenv("LESSSECURE", "1", 1))
		_exit(NOT_RUN);
	while (poll(&data, 1, -1) < 0 && errno == EINTR)
		;
	/* The pipe was closed without any text: nothing to show. */
	if (!(data.revents & POLLIN))
		_exit(0);
	execl("/bin/sh", "sh", "-c", text, (char *)NULL);
	_exit(NOT_RUN);
}

static int spawn(const char *text, int in, pid_t *pid)
{
	struct caller caller;
	int err;

	caller_find(&caller);
	err = caller_look_up(&caller);
	if (err)
		return err;
	*pid = fork();
	if (*pid == 0)
		run_child(text, in, &caller);
	err = *pid < 0 ? -errno : 0;
	if (err)
		*pid = 0;
	caller_free(&caller);
	return err;
}

void cli_pager_prepare(struct cli_pager *pager, bool wanted)
{
	const char *text = wanted && isatty(STDOUT_FILENO) ? command() : NULL;
	int ends[2];

	*pager = (struct cli_pager){.stream = stdout};
	if (!text || pipe2(ends, O_CLOEXEC))
		return;
	fflush(stdout);
	if (spawn(text, ends[0], &pager->pid) == 0)
		pager->stream = fdopen(ends[1], "w");
	close(ends[0]);
	if (pager->pid && pager->stream) {
		pager->command = text;
		return;
	}
	close(ends[1]);
	if (pager->pid)
		waitpid(pager->pid, NULL, 0);
	*pager = (struct cli_pager){.stream = stdout};
}

void cli_pager_start(const struct cli_pager *pager)
{
	if (pager->command)
		ignore_signals(true);
}

static int close_pipe(FILE *pipe)
{
	int err = 0;

	errno = 0;
	if (fflush(pipe) || ferror(pipe))
		err = errno ? -errno : -EIO;
	fclose(pipe);
	return err;
}

bool cli_pager_finish(struct cli_pager *pager, int *err)
{
	int status = 0, written = pager->command ? close_pipe(pager->stream) : cli_finish_stdout();
	bool gave_up;

	if (!pager->command) {
		*err = *err ?: written;
		return false;
	}
	while (waitpid(pager->pid, &status, 0) < 0 && errno == EINTR)
		;
	ignore_signals(false);
	gave_up = WIFEXITED(status) && (WEXITSTATUS(status) == NOT_FOUND || WEXITSTATUS(status) == NOT_RUN);
	if (gave_up)
		log_warn("the pager %s cannot be run; set PYBPF_PAGER to one that can", pager->command);
	/* The user quit the pager before it read all text: not an error. */
	if (*err == -EPIPE || gave_up)
		*err = 0;
	*pager = (struct cli_pager){.stream = stdout};
	return gave_up;
}

void cli_pager_discard(struct cli_pager *pager)
{
	if (!pager->command)
		return;
	fclose(pager->stream);
	while (waitpid(pager->pid, NULL, 0) < 0 && errno == EINTR)
		;
	*pager = (struct cli_pager){.stream = stdout};
}

// SPDX-License-Identifier: Apache-2.0
#include "cli_pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "log.h"

/* Colours pass, what fits on the screen is only printed, and it stays there. */
#define PAGER "less -FRX"
/* The shell's status for a command that is not there, or that cannot be executed. */
#define NOT_FOUND 127
#define NOT_RUN   126

static bool gave_up;

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

/* Ctrl-C is for the pager while there is one; a pager that is left early is no reason to end. */
static void ignore_signals(bool ignore)
{
	static struct sigaction before[3];
	static const int signals[] = {SIGINT, SIGQUIT, SIGPIPE};
	const struct sigaction ignored = {.sa_handler = SIG_IGN};

	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		sigaction(signals[i], ignore ? &ignored : &before[i], ignore ? &before[i] : NULL);
}

/* Its stdin is the pipe's end. */
static int spawn(const char *text, int in, pid_t *pid)
{
	char *const argv[] = {"sh", "-c", (char *)text, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t defaults;
	int err;

	sigemptyset(&defaults);
	sigaddset(&defaults, SIGINT);
	sigaddset(&defaults, SIGQUIT);
	sigaddset(&defaults, SIGPIPE);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigdefault(&attributes, &defaults);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
	err = posix_spawn(pid, "/bin/sh", &actions, &attributes, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return -err;
}

void cli_pager_start(struct cli_pager *pager, bool wanted)
{
	int ends[2];

	wanted = wanted && !gave_up && isatty(STDOUT_FILENO);

	*pager = (struct cli_pager){.stream = stdout, .command = wanted ? command() : NULL};
	if (!pager->command || pipe2(ends, O_CLOEXEC)) {
		pager->command = NULL;
		return;
	}
	fflush(stdout);
	ignore_signals(true);
	if (spawn(pager->command, ends[0], &pager->pid) == 0)
		pager->stream = fdopen(ends[1], "w");
	close(ends[0]);
	if (pager->stream && pager->stream != stdout)
		return;
	close(ends[1]);
	if (pager->pid)
		waitpid(pager->pid, NULL, 0);
	ignore_signals(false);
	*pager = (struct cli_pager){.stream = stdout};
}

static int finish_stream(FILE *stream, bool close_it)
{
	int err = 0;

	errno = 0;
	if (fflush(stream) || ferror(stream))
		err = errno ? -errno : -EIO;
	if (close_it)
		fclose(stream);
	return err;
}

bool cli_pager_finish(struct cli_pager *pager, int *err)
{
	int status = 0, written = finish_stream(pager->stream, pager->command != NULL);

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
	/* What was not taken by a pager that was left is not missed. */
	if (*err == -EPIPE || gave_up)
		*err = 0;
	return gave_up;
}

// SPDX-License-Identifier: Apache-2.0
#include "cli_pager.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "caller.h"
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

/* What is executed after it has no capability, and gets none by a file's, also as root. */
static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) ||
	    syscall(SYS_capset, &header, none))
		return -errno;
	return 0;
}

/* In the child: the command's program takes its place, with the pipe's end as stdin and no other descriptor of ours. */
static void run_child(const char *text, int in, const struct caller *caller)
{
	static const int signals[] = {SIGINT, SIGQUIT, SIGPIPE, SIGXFSZ};

	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		signal(signals[i], SIG_DFL);
	if (dup2(in, STDIN_FILENO) < 0 || close_range(STDERR_FILENO + 1, ~0U, 0) || caller_become(caller) ||
	    drop_capabilities() || setenv("LESSSECURE", "1", 1))
		_exit(NOT_RUN);
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

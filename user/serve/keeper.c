// SPDX-License-Identifier: Apache-2.0
/* Becomes a process without rights, and forks the one that serves: once more if that one crashes. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "rights/rights.h"
#include "serve/internal.h"

/* Between a crash and the next beginning, so that one that crashes at once takes no CPU. */
#define PAUSE_S 1
/* Clients, their answers' bodies, and a few of its own. */
#define FILES_MAX (2 * SERVE_CLIENTS_MAX + 32)

/* Signals that a terminal or a service manager sends to all processes: the one that samples ends this one. */
static void ignore_signals(void)
{
	static const int signals[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE, SIGTSTP, SIGXFSZ};

	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		signal(signals[i], SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
}

/* Keeps stderr, for messages, and the two sockets. Returns 0 or negative errno. */
static int keep_descriptors(const struct serve_process *process)
{
	/* A core file would hold the token. */
	const struct rlimit no_core = {0, 0}, files = {FILES_MAX, FILES_MAX};
	int kept[] = {process->socket, process->listener.fd}, none = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (none < 0 || dup2(none, STDIN_FILENO) < 0 || dup2(none, STDOUT_FILENO) < 0 || chdir("/"))
		return -errno;
	setrlimit(RLIMIT_CORE, &no_core);
	setrlimit(RLIMIT_NOFILE, &files);
	return rights_keep_descriptors(kept, sizeof(kept) / sizeof(*kept));
}

static int begin(struct serve_process *process, struct error *error)
{
	int err = keep_descriptors(process);

	if (err)
		return error_set(error, err, "cannot prepare the process that serves: %s", strerror(-err));
	/* gmtime_r(), for the header Date, reads the time zone once, where it is asked for or not. */
	tzset();
	err = rights_become_nobody(error);
	err = err ?: serve_microhttpd_load(&process->mhd, error);
	return err ?: rights_drop(&(struct rights_wanted){.level = RIGHTS_SERVE_KEEPER}, error);
}

/* Tells the process that samples. Returns whether that one is there. */
static bool tell(int socket, const void *message, size_t size)
{
	return send(socket, message, size, MSG_NOSIGNAL) == (ssize_t)size;
}

static void __attribute__((noreturn)) become_server(struct serve_process *process, pid_t keeper, uint32_t generation)
{
	struct error error;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != keeper)
		_exit(0);
	prctl(PR_SET_NAME, "pybpf-serve");
	if (serve_server_prepare(process, generation, &error) ||
	    rights_drop(&(struct rights_wanted){.level = RIGHTS_SERVE}, &error)) {
		log_error("%s", error.text);
		_exit(1);
	}
	serve_server_run();
}

void serve_keep(struct serve_process *process)
{
	const struct serve_message crash = {.kind = SERVE_MESSAGE_CRASH};
	const pid_t self = getpid();
	struct error error = {.code = 0};
	int status = 0;

	prctl(PR_SET_NAME, "pybpf-server");
	ignore_signals();
	begin(process, &error);
	if (!tell(process->socket, &error, sizeof(error)) || error.code)
		_exit(1);
	for (uint32_t generation = 0;; generation++) {
		pid_t child = fork();

		if (child == 0)
			become_server(process, self, generation);
		if (child < 0 || waitpid(child, &status, 0) != child || !WIFSIGNALED(status))
			_exit(0);
		process->shared->restarts++;
		if (!tell(process->socket, &crash, sizeof(crash)))
			_exit(0);
		sleep(PAUSE_S);
	}
}

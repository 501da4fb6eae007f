// SPDX-License-Identifier: Apache-2.0
/* Becomes a process without rights, and forks the one that sends: once more if that one crashes. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "push/internal.h"
#include "rights/rights.h"

/* Between a crash and the next beginning, so that one that crashes at once takes no CPU. */
#define PAUSE_S 1

/* Signals that a terminal or a service manager sends to all processes: the one that pushes ends this one. */
static void ignore_signals(void)
{
	static const int signals[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE, SIGTSTP, SIGXFSZ};

	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		signal(signals[i], SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
}

/* Keeps stderr, for messages, the socket and the spool's files. Returns 0 or negative errno. */
static int keep_descriptors(const struct push_process *process)
{
	const struct rlimit no_core = {0, 0};
	int kept[PUSH_SPOOL_SEGMENTS + 1] = {process->socket}, none = open("/dev/null", O_RDWR | O_CLOEXEC);
	size_t count = 1;

	if (none < 0 || dup2(none, STDIN_FILENO) < 0 || dup2(none, STDOUT_FILENO) < 0 || chdir("/"))
		return -errno;
	for (size_t i = 0; i < PUSH_SPOOL_SEGMENTS; i++) {
		if (process->spool.files[i] >= 0)
			kept[count++] = process->spool.files[i];
	}
	/* A core file would hold the token. */
	setrlimit(RLIMIT_CORE, &no_core);
	return rights_keep_descriptors(kept, count);
}

static int begin(struct push_process *process, struct error *error)
{
	int err = keep_descriptors(process);

	if (err)
		return error_set(error, err, "cannot prepare the process that sends: %s", strerror(-err));
	err = rights_become_nobody(error);
	err = err ?: push_curl_load(&process->curl, error);
	if (!err && process->curl.global_init(CURL_GLOBAL_DEFAULT))
		err = error_set(error, -EIO, "cannot prepare libcurl: curl_global_init() failed");
	return err ?: rights_drop(&(struct rights_wanted){.level = RIGHTS_NETWORK_KEEPER}, error);
}

/* Tells who pushes. Returns whether that one is there. */
static bool tell(int socket, const struct error *error)
{
	return send(socket, error, sizeof(*error), MSG_NOSIGNAL) == sizeof(*error);
}

static void __attribute__((noreturn)) become_worker(struct push_process *process, pid_t keeper)
{
	struct error error;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != keeper)
		_exit(0);
	prctl(PR_SET_NAME, "pybpf-push");
	if (rights_drop(&(struct rights_wanted){.level = RIGHTS_NETWORK}, &error))
		_exit(1);
	push_work(process);
}

/* Counts what a process had in memory that ended by a signal. */
static void count_crash(struct push_shared *shared)
{
	shared->dropped[PUSH_CRASHED] += shared->in_memory;
	shared->in_memory = shared->in_memory_bytes = 0;
	shared->ended_cpu_ns += shared->cpu_ns;
	shared->cpu_ns = 0;
	shared->restarts++;
}

void push_keep(struct push_process *process)
{
	const pid_t self = getpid();
	struct error error = {.code = 0};
	int status = 0;

	prctl(PR_SET_NAME, "pybpf-pusher");
	ignore_signals();
	begin(process, &error);
	if (!tell(process->socket, &error) || error.code)
		_exit(1);
	while (true) {
		pid_t child = fork();

		if (child == 0)
			become_worker(process, self);
		if (child < 0 || waitpid(child, &status, 0) != child || !WIFSIGNALED(status))
			_exit(0);
		count_crash(process->shared);
		sleep(PAUSE_S);
	}
}

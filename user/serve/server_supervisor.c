// SPDX-License-Identifier: Apache-2.0
/* Becomes a process without rights, and forks the one that serves: once more if that one crashes. */
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "child/child.h"
#include "child/message.h"
#include "rights/rights.h"
#include "serve/internal.h"

/* Clients, their answers' bodies, and a few of its own. */
#define FILES_MAX (2 * SERVE_CLIENTS_MAX + 32)

/* Keeps stderr, for messages, and the two sockets. Returns 0 or negative errno. */
static int keep_descriptors(const struct serve_process *process)
{
	int kept[] = {process->socket, process->listener.fd};

	return child_let_go(STDOUT_FILENO, kept, sizeof(kept) / sizeof(*kept));
}

static int begin(struct serve_process *process, struct error *error)
{
	int err = keep_descriptors(process);

	if (err)
		return error_set(error, err, "cannot prepare the process that serves: %s", strerror(-err));
	/* A core file would hold the token. */
	child_limit(RLIMIT_CORE, 0);
	child_limit(RLIMIT_NOFILE, FILES_MAX);
	/* gmtime_r(), for the header Date, reads the time zone once, where it is asked for or not. */
	tzset();
	err = rights_become_nobody(error);
	err = err ?: serve_microhttpd_load(&process->mhd, error);
	return err ?: rights_drop(&(struct rights_wanted){.level = RIGHTS_SERVE_KEEPER}, error);
}

static void __attribute__((noreturn)) work(void *process)
{
	struct error error;

	if (serve_server_prepare(process, &error) ||
	    rights_drop(&(struct rights_wanted){.level = RIGHTS_SERVE}, &error)) {
		log_error("%s", error.text);
		_exit(1);
	}
	serve_server_run();
}

/* Tells the process that samples, which may be gone. */
static bool count_crash(void *state)
{
	const struct serve_message crash = {.kind = SERVE_MESSAGE_CRASH};
	struct serve_process *process = state;

	process->shared->ended_cpu_ns += process->shared->cpu_ns;
	process->shared->cpu_ns = 0;
	process->shared->restarts++;
	process->generation++;
	return !child_send(process->socket, &crash, sizeof(crash), NULL, 0, 0);
}

void serve_keep(int socket, void *state)
{
	static const struct child_worker worker = {"pybpf-serve", work, count_crash};
	struct serve_process *process = state;
	struct error error = {.code = 0};

	process->socket = socket;
	prctl(PR_SET_NAME, "pybpf-server");
	child_block_signals();
	begin(process, &error);
	if (child_say_begun(socket, &error))
		child_keep(&worker, process);
}

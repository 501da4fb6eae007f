// SPDX-License-Identifier: Apache-2.0
/* Drops its rights and forks the process that sends; starts that again if it crashes. */
#include <sys/prctl.h>
#include <unistd.h>

#include "base/log.h"
#include "child/child.h"
#include "network/network.h"
#include "push/internal.h"
#include "rights/rights.h"

/* Keeps the socket and the spool's files. Returns 0, or negative errno with a sentence in *error. */
static int begin(struct push_process *process, struct error *error)
{
	int kept[PUSH_SPOOL_SEGMENTS + 1] = {process->socket}, err;
	size_t count = 1;

	for (size_t i = 0; i < PUSH_SPOOL_SEGMENTS; i++) {
		if (process->spool.files[i] >= 0)
			kept[count++] = process->spool.files[i];
	}
	err = network_begin(kept, count, &process->curl, error);
	return err ?: rights_drop(&(struct rights_wanted){.level = RIGHTS_NETWORK_KEEPER}, error);
}

static void __attribute__((noreturn)) work(void *process)
{
	struct error error;

	if (rights_drop(&(struct rights_wanted){.level = RIGHTS_NETWORK}, &error)) {
		log_error("%s", error.text);
		_exit(1);
	}
	push_work(process);
}

/* Counts what a process had in memory that ended by a signal. */
static bool count_crash(void *state)
{
	struct push_shared *shared = ((struct push_process *)state)->shared;

	shared->dropped[PUSH_CRASHED] += shared->in_memory;
	shared->in_memory = shared->in_memory_bytes = 0;
	shared->ended_cpu_ns += shared->cpu_ns;
	shared->cpu_ns = 0;
	shared->restarts++;
	return true;
}

void push_keep(int socket, void *state)
{
	static const struct child_worker worker = {"pybpf-push", work, count_crash};
	struct push_process *process = state;
	struct error error = {.code = 0};

	process->socket = socket;
	prctl(PR_SET_NAME, "pybpf-pusher");
	begin(process, &error);
	if (child_say_begun(socket, &error))
		child_keep(&worker, process);
}

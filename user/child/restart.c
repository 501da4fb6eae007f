// SPDX-License-Identifier: Apache-2.0
/* Forks the process that works, and forks it once more when it crashes. */
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child/child.h"

/* Between a crash and the next beginning, so that a process that crashes at once takes no CPU. */
#define PAUSE_S 1

void child_keep(const struct child_worker *worker, void *state)
{
	const pid_t self = getpid();
	int status;

	while (true) {
		pid_t pid = fork();

		if (pid == 0) {
			child_tie(self);
			prctl(PR_SET_NAME, worker->name);
			worker->run(state);
			_exit(0);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status) || !worker->count_crash(state))
			return;
		sleep(PAUSE_S);
	}
}

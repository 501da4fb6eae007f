// SPDX-License-Identifier: Apache-2.0
#include "session/waits/comm.h"

#include <string.h>

#include "base/procfs.h"
#include "kernel/counts.h"
#include "session/cpu_time.h"
#include "session/internal.h"

void session_note_comm(struct session *s, const struct pybpf_thread *thread)
{
	const struct processes_record *process = processes_find_record(s->processes, thread->id.proc_id);
	const struct pybpf_thread_key key = thread->id;
	struct pybpf_thread_name name;
	struct procfs_stat stat;

	kernel_get_thread_name(s->kernel, &key, &name);
	if ((!s->options.threads && thread->stack_id != PYBPF_STACK_ID_NO_THREAD) || name.comm[0] || !process)
		return;
	if (session_used_s() > s->thread_names.until_s) {
		s->thread_names.unread++;
		return;
	}
	if (procfs_read_task_stat(process->pid, (pid_t)thread->id.tid, &stat))
		return;
	memcpy(name.comm, stat.comm, strnlen(stat.comm, sizeof(name.comm)));
	kernel_put_thread_name(s->kernel, &key, &name);
}

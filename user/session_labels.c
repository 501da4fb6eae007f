// SPDX-License-Identifier: Apache-2.0
/* What a process is called in the profile. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "discovery_ask.h"
#include "discovery_program.h"
#include "procfs.h"
#include "session_internal.h"

/* As much of a command line as a root frame shows. */
#define CMDLINE_MAX 512

static void set(char **text, const char *value)
{
	free(*text);
	*text = value ? strdup(value) : NULL;
}

void session_label_process(struct session *s, struct session_process *process, const struct session_process *before)
{
	const struct session_options *options = &s->options;
	struct discovery_container container;
	char cmdline[CMDLINE_MAX], program[sizeof(process->comm) + CMDLINE_MAX];

	if (options->cmdline || options->merge) {
		discovery_ask_cmdline(process->pid, cmdline, sizeof(cmdline));
		set(&process->cmdline, cmdline[0] ? cmdline : NULL);
		discovery_program_name(process->comm, cmdline, program, sizeof(program));
		set(&process->program,
		    before && before->program && discovery_program_is_worker(cmdline) ? before->program : program);
	}
	if (!options->containers)
		return;
	if (!discovery_ask_container_of(process->pid, &container))
		set(&process->container, container.name);
	else if (before)
		set(&process->container, before->container);
}

void session_label_again(const struct session *s, struct session_process *process)
{
	struct discovery_container container;

	if (s->options.containers && !process->container && !discovery_ask_container_of(process->pid, &container))
		set(&process->container, container.name);
}

void session_label_copy(struct session_process *process, const struct session_process *parent)
{
	set(&process->cmdline, parent->cmdline);
	set(&process->program, parent->program);
	set(&process->container, parent->container);
}

uint32_t session_add_to_profile(struct session *s, struct session_process *process)
{
	struct profile_process_info info = {.container = process->container};
	struct procfs_stat stat;

	/* A process can have given itself another name. */
	if (!process->ended && !procfs_stat(process->pid, &stat) && stat.start_time == process->start)
		snprintf(process->comm, sizeof(process->comm), "%.15s", stat.comm);
	info.name = process->comm;
	if (s->options.cmdline && process->cmdline)
		info.name = process->cmdline;
	if (s->options.merge) {
		info.name = process->program ?: process->comm;
	} else {
		info.pid = process->pid;
		info.inner_pid = process->inner_pid == process->pid ? 0 : process->inner_pid;
	}
	return profile_add_process(s->profile, &info);
}

// SPDX-License-Identifier: Apache-2.0
/* Names of a process in the profile: program, command line and container. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "discovery/ask.h"
#include "discovery/program.h"
#include "base/procfs.h"
#include "processes/internal.h"
#include "profile/profile.h"

/* Bytes of a command line that a root frame shows. */
#define CMDLINE_MAX 512

/* Name of a container whose look-up got no answer in time; such a process is not attributed to the host. */
#define UNKNOWN "[unknown]"

/* Without memory for a part of its name the process stays nameless: it must not be merged with another one. */
static void set_text(struct processes_record *process, char **text, const char *value)
{
	free(*text);
	*text = value ? strdup(value) : NULL;
	if (value && !*text)
		process->nameless = true;
}

/* Sets the name of its container or, where it is in no container, the given name. */
static void set_container(struct processes_record *process, const char *otherwise)
{
	struct container container;
	int err = discovery_ask_container_of(process->pid, &container);

	if (err == -ENOMEM)
		process->nameless = true;
	else if (err && err != -ENOENT && err != -ESRCH)
		set_text(process, &process->container, UNKNOWN);
	else if (err != -ESRCH || otherwise)
		set_text(process, &process->container, err ? otherwise : container.name);
}

void processes_label_record(const struct processes *p, struct processes_record *process,
			    const struct processes_record *before)
{
	const struct processes_options *options = &p->options;
	char cmdline[CMDLINE_MAX], program[sizeof(process->comm) + CMDLINE_MAX];

	if (options->cmdline || options->merge) {
		discovery_ask_cmdline(process->pid, cmdline, sizeof(cmdline));
		set_text(process, &process->cmdline, cmdline[0] ? cmdline : NULL);
		discovery_program_name(process->comm, cmdline, program, sizeof(program));
		set_text(process, &process->program,
			 before && before->program && discovery_program_is_worker(cmdline) ? before->program : program);
	}
	if (options->containers)
		set_container(process, before ? before->container : NULL);
}

void processes_label_again(const struct processes *p, struct processes_record *process)
{
	if (p->options.containers && (!process->container || strcmp(process->container, UNKNOWN) == 0))
		set_container(process, NULL);
}

void processes_label_copy(struct processes_record *process, const struct processes_record *parent)
{
	set_text(process, &process->cmdline, parent->cmdline);
	set_text(process, &process->program, parent->program);
	set_text(process, &process->container, parent->container);
}

uint32_t processes_add_to_profile(const struct processes *p, struct processes_record *process, struct profile *profile)
{
	struct profile_process_info info = {.container = process->container};
	struct procfs_stat stat;

	if (process->nameless)
		return PROFILE_NONE;
	/* The process may have renamed itself. */
	if (!process->ended && !procfs_read_stat(process->pid, &stat) && stat.start_time == process->start)
		snprintf(process->comm, sizeof(process->comm), "%.15s", stat.comm);
	info.name = process->comm;
	if (p->options.cmdline && process->cmdline)
		info.name = process->cmdline;
	if (p->options.merge) {
		info.name = process->program ?: process->comm;
	} else {
		info.pid = process->pid;
		info.inner_pid = process->inner_pid == process->pid ? 0 : process->inner_pid;
	}
	return profile_add_process(profile, &info);
}

// SPDX-License-Identifier: Apache-2.0
/* Names of a process in the profile: program, command line and container. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "discovery/ask.h"
#include "discovery/program.h"
#include "discovery/service.h"
#include "helper/helper.h"
#include "base/clock.h"
#include "base/procfs.h"
#include "processes/internal.h"
#include "profile/attributes.h"
#include "profile/profile.h"

/* Name of a container whose look-up got no answer in time; such a process is not attributed to the host. */
#define UNKNOWN "[unknown]"

/* Most processes from a worker of multiprocessing up to its program. */
#define WORKER_DEPTH 8

/* Seconds for which a process's name is taken to be the same. */
#define NAME_FRESH_S 0.05

/* Without memory for a part of its name the process stays nameless: it must not be merged with another one. */
static void set_text(struct processes_record *process, char **text, const char *value)
{
	free(*text);
	*text = value ? strdup(value) : NULL;
	if (value && !*text)
		process->nameless = true;
}

/* Forgets the labels of processes that are gone: a run without end meets new ones for months. */
static void forget_labels(const struct processes *p)
{
	struct container_labels *fresh = container_labels_new();
	uint32_t *numbers = calloc(p->records.count + 1, sizeof(*numbers));
	bool enough = fresh && numbers;

	for (uint32_t i = 0; i < p->records.count && enough; i++) {
		const struct processes_record *process = processes_record_at(p, i);

		if (!process->label)
			continue;
		numbers[i] = container_labels_copy(fresh, p->labels, process->label);
		enough = numbers[i];
	}
	for (uint32_t i = 0; i < p->records.count && enough; i++)
		processes_record_at(p, i)->label = numbers[i];
	if (enough)
		container_labels_replace(p->labels, fresh);
	else
		container_labels_free(fresh);
	free(numbers);
}

/* Returns the number of the container's label, from 1 on; 0 without memory. */
static uint32_t number_label(const struct processes *p, const struct container *container)
{
	if (container_labels_are_many(p->labels))
		forget_labels(p);
	return container_labels_add(p->labels, container);
}

/* Returns what the process's container is called in the profile: NAME, or RUNTIME:NAME; NULL for none. */
static const char *label_container(struct container_labels *labels, const struct processes_record *process,
				   char out[CONTAINER_LABEL_MAX])
{
	if (!process->container || !process->label)
		return process->container;
	return container_labels_with_runtime(labels, process->label, out) ?: process->container;
}

/* Sets what its container tells of it, beside its name. */
static void set_attributes(struct processes_record *process, const struct container *container)
{
	char text[PROFILE_ATTRIBUTES_MAX] = "", tag[DISCOVERY_SERVICE_MAX];

	profile_attribute_add(text, PROFILE_CONTAINER_ID, container->id);
	profile_attribute_add(text, PROFILE_CONTAINER_IMAGE, container->image);
	profile_attribute_add(text, PROFILE_K8S_NAMESPACE, container->space);
	profile_attribute_add(text, PROFILE_K8S_POD_UID, container->pod_uid);
	set_text(process, &process->attributes, text);
	set_text(process, &process->version, discovery_service_read_tag(container->image, tag) ? tag : NULL);
}

/* Sets the container's name. Another one may be what its service is called by. */
static void name_container(struct processes_record *process, const char *name)
{
	if (name && process->container ? !strcmp(name, process->container) : name == process->container)
		return;
	set_text(process, &process->container, name);
	set_text(process, &process->service, NULL);
}

/* Sets the name of its container or, where it is in no container, the given name. */
static void set_container(const struct processes *p, struct processes_record *process, const char *otherwise)
{
	struct container container;
	int err = processes_find_container(p->groups, process->pid, &container, &process->is_placed);

	if (err == -ENOMEM)
		process->nameless = true;
	else if (err && err != -ENOENT && err != -ESRCH)
		name_container(process, UNKNOWN);
	else if (err != -ESRCH || otherwise)
		name_container(process, err ? otherwise : container.name);
	process->is_unnamed = !err && container_is_nameless(&container);
	if (!err) {
		process->label = number_label(p, &container);
		process->nameless |= !process->label;
		set_attributes(process, &container);
	}
}

/*
 * Names the program that it runs, by its command line. The program of multiprocessing's workers is that of the Python
 * which started them, above a server that forks them, and above workers that have workers. One whose parent has ended
 * has been adopted by another program, and keeps its own name.
 */
static void name_program(const struct processes_record *process, const char *cmdline, char *out, size_t size)
{
	char above[PROCESSES_CMDLINE_MAX];
	pid_t pid = process->pid;
	struct procfs_stat stat;

	discovery_program_name(process->comm, cmdline, out, size);
	for (int i = 0; i < WORKER_DEPTH && discovery_program_is_worker(cmdline); i++) {
		if (procfs_read_stat(pid, &stat))
			return;
		pid = stat.ppid;
		if (!pid || procfs_read_stat(pid, &stat) || discovery_ask_cmdline(pid, above, sizeof(above)) ||
		    !discovery_program_is_python(above))
			return;
		cmdline = above;
		discovery_program_name(stat.comm, cmdline, out, size);
	}
}

/* Sets what it runs. Without its arguments that is its own name, until they can be read. */
static void set_command(struct processes_record *process, const struct processes_record *before)
{
	char cmdline[PROCESSES_CMDLINE_MAX], program[sizeof(process->comm) + PROCESSES_CMDLINE_MAX];
	int err = discovery_ask_cmdline(process->pid, cmdline, sizeof(cmdline));

	process->command_unread = helper_has_no_answer(err);
	set_text(process, &process->cmdline, cmdline[0] ? cmdline : NULL);
	if (!before || !before->program || !discovery_program_is_worker(cmdline)) {
		name_program(process, cmdline, program, sizeof(program));
		set_text(process, &process->program, program);
	} else {
		set_text(process, &process->program, before->program);
	}
}

void processes_label_record(const struct processes *p, struct processes_record *process,
			    const struct processes_record *before)
{
	const struct processes_options *options = &p->options;

	if (options->cmdline || options->merge)
		set_command(process, before);
	if (options->containers) {
		process->label = before ? before->label : 0;
		set_container(p, process, before ? before->container : NULL);
	}
}

void processes_label_again(const struct processes *p, struct processes_record *process)
{
	if (process->command_unread)
		set_command(process, NULL);
	if (p->options.containers && !process->is_placed &&
	    (!process->container || process->is_unnamed || strcmp(process->container, UNKNOWN) == 0))
		set_container(p, process, NULL);
}

void processes_label_copy(struct processes_record *process, const struct processes_record *parent)
{
	set_text(process, &process->cmdline, parent->cmdline);
	set_text(process, &process->program, parent->program);
	set_text(process, &process->container, parent->container);
	set_text(process, &process->service, parent->service);
	process->own = parent->own ? malloc(sizeof(*process->own)) : NULL;
	if (process->own)
		*process->own = *parent->own;
	set_text(process, &process->attributes, parent->attributes);
	set_text(process, &process->version, parent->version);
	process->label = parent->label;
	process->is_unnamed = parent->is_unnamed;
}

void processes_ask_service(const struct processes *p, struct processes_record *process)
{
	char cmdline[PROCESSES_CMDLINE_MAX], program[sizeof(process->comm) + PROCESSES_CMDLINE_MAX];

	if (!p->options.services || process->ended || (process->own && !process->service_unread))
		return;
	process->own = process->own ?: malloc(sizeof(*process->own));
	if (!process->own) {
		process->nameless = true;
		return;
	}
	process->service_unread = helper_has_no_answer(discovery_ask_service(process->pid, process->own));
	if (process->program)
		return;
	discovery_ask_cmdline(process->pid, cmdline, sizeof(cmdline));
	name_program(process, cmdline, program, sizeof(program));
	set_text(process, &process->program, program);
}

/* Sets the service, once: by the rules, else as the process itself, its container, its unit or its program tell. */
static void set_service(const struct processes *p, struct processes_record *process, const char *container)
{
	static const struct discovery_service_own nothing;
	struct discovery_service_facts facts;

	if (process->service || !p->options.services)
		return;
	processes_ask_service(p, process);
	facts = (struct discovery_service_facts){
		.own = process->own ?: &nothing,
		.container = container && strcmp(container, UNKNOWN) != 0 ? container : NULL,
		.program = process->program ?: process->comm,
	};
	set_text(process, &process->service, discovery_find_service(p->options.services, &facts));
	/* What it says itself counts more than what its image is called. */
	if (*facts.own->version)
		set_text(process, &process->version, facts.own->version);
}

void processes_label_service(const struct processes *p, struct processes_record *process)
{
	char container[CONTAINER_LABEL_MAX];

	set_service(p, process, label_container(p->labels, process, container));
}

/* Adds the versions of the Pythons that the process ran; of those that it could have run, if none was seen running. */
static int add_versions(const struct processes *p, const struct processes_record *process, struct profile *profile)
{
	char version[16];
	int err = 0;

	for (uint32_t i = 0; i < process->nr_runtimes && !err; i++) {
		const struct pybpf_layout *layout = kernel_get_layout(p->kernel, process->layouts[i]);

		if (process->nr_runtimes > 1 && process->running && !(process->running & 1u << i))
			continue;
		snprintf(version, sizeof(version), "%u.%u", layout->major, layout->minor);
		err = profile_join_fact(profile, PROFILE_FACT_PYTHON, version);
	}
	return err;
}

/* The process may have renamed itself. It may be asked for once for each of thousands of threads. */
static void rename_process(struct processes_record *process)
{
	double now = clock_s(CLOCK_MONOTONIC);
	struct procfs_stat stat;

	if (process->ended || now < process->named_at + NAME_FRESH_S)
		return;
	process->named_at = now;
	if (!procfs_read_stat(process->pid, &stat) && stat.start_time == process->start)
		snprintf(process->comm, sizeof(process->comm), "%.15s", stat.comm);
}

uint32_t processes_add_to_profile(const struct processes *p, struct processes_record *process, struct profile *profile)
{
	char container[CONTAINER_LABEL_MAX];
	char attributes[PROFILE_ATTRIBUTES_MAX] = "";
	struct profile_process_info info = {0};
	uint32_t at;

	rename_process(process);
	info.container = label_container(p->labels, process, container);
	set_service(p, process, info.container);
	info.service = process->service;
	info.name = process->comm;
	if (process->nameless || add_versions(p, process, profile))
		return PROFILE_NONE;
	if (p->options.cmdline && process->cmdline) {
		info.name = process->cmdline;
		if (profile_join_fact(profile, PROFILE_FACT_COMMAND, process->cmdline))
			return PROFILE_NONE;
	}
	if (p->options.merge) {
		info.name = process->program ?: process->comm;
	} else {
		info.pid = process->pid;
		info.inner_pid = process->inner_pid == process->pid ? 0 : process->inner_pid;
		snprintf(attributes, sizeof(attributes), "%s", process->attributes ?: "");
		profile_attribute_add(attributes, PROFILE_SERVICE_VERSION, process->version ?: "");
		info.attributes = attributes;
	}
	at = profile_add_process(profile, &info);
	return at == PROFILE_NONE || processes_tell_place(p, process, at) ? PROFILE_NONE : at;
}

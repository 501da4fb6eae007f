// SPDX-License-Identifier: Apache-2.0
/* From the options that select processes to what a session is to sample. */
#include "cli/targets.h"

#include <errno.h>
#include <stdlib.h>

#include "base/host.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/cli.h"
#include "container/cgroup.h"
#include "discovery/discovery.h"
#include "kernel/features.h"
#include "session/run/find_pythons.h"
#include "session/waits/gil.h"

int cli_targets_check_host(void)
{
	struct error error;

	if (host_check_proc(&error) || host_check_privilege(&error) || host_check_btf(&error) ||
	    host_check_bpf(&error)) {
		log_error("%s", error.text);
		return CLI_FAILED;
	}
	return 0;
}

static void tell_python(const struct discovery_python *python)
{
	log_info("process %d (%s): Python %s%s%s, %s", python->pid, python->comm, python->version,
		 python->free_threaded ? ", free-threaded" : "", python->debug_build ? ", debug build" : "",
		 python->is_static ? "static" : "shared library");
	log_info("runtime: %s in %s (load bias 0x%llx), at 0x%llx", python->runtime_source, python->path,
		 (unsigned long long)python->load_bias, (unsigned long long)python->runtime_addr);
	log_info("version from %s; offsets from %s", python->version_source, python->build.origin);
	log_info("thread states: by thread, from %s%s", python->tstate_current_addr ? "the GIL's owner, then " : "",
		 "the interpreters' lists, matched by pthread_self()");
}

static int check_tasks(const struct discovery_python *python)
{
	struct error error;
	int err = discovery_check_tasks(python, &error);

	if (err)
		log_error("%s", error.text);
	return err;
}

/*
 * With --mode=gil: checks that waits for the GIL can be recognized in one of a process's Pythons. Returns 0, or
 * CLI_FAILED after one sentence on stderr.
 */
static int check_gil(const struct discovery_python *pythons, size_t count)
{
	struct error error = {0};

	for (size_t i = 0; i < count; i++) {
		if (session_gil_is_known(&pythons[i], &error))
			return CLI_OK;
	}
	if (count)
		log_error("%s", error.text);
	return count ? CLI_FAILED : CLI_OK;
}

int cli_targets_check(const struct discovery_numbers *pids, const struct session_options *options, bool children)
{
	struct discovery_python *pythons = calloc(PYBPF_MAX_RUNTIMES, sizeof(*pythons));
	int err = pythons ? 0 : -ENOMEM;

	if (err)
		log_error("out of memory while starting");
	for (size_t i = 0; i < pids->count && !err; i++) {
		size_t count = 0;

		err = session_find_pythons((pid_t)pids->items[i], children, pythons, PYBPF_MAX_RUNTIMES, &count);
		for (size_t k = 0; k < count && !err; k++)
			tell_python(&pythons[k]);
		if (options->tasks && !children && count && !err)
			err = check_tasks(&pythons[0]);
		/* Of several processes, some may have a GIL: the account counts the others. */
		if (!err && options->mode == SESSION_GIL && pids->count == 1 && !children)
			err = check_gil(pythons, count);
	}
	free(pythons);
	return err;
}

/* Copies numbers to 64 bits for the session's filters, which hold cgroup IDs or UIDs. Returns NULL without memory. */
static uint64_t *wide_numbers(const struct discovery_numbers *numbers)
{
	uint64_t *wide = calloc(numbers->count + 1, sizeof(*wide));

	for (size_t i = 0; wide && i < numbers->count; i++)
		wide[i] = numbers->items[i];
	return wide;
}

int cli_targets_choose(struct cli_targets *t, struct discovery_filter *filter, struct session_options *options,
		       bool of_command)
{
	struct error error;

	if (discovery_filter_resolve(filter, &error) ||
	    cgroup_check_hierarchy(filter->groups, filter->group_count, &error)) {
		log_error("%s", error.text);
		return CLI_FAILED;
	}
	options->all = filter->all || filter->group_count;
	if ((options->all || filter->children || filter->pids.count > 1) && options->roots & PROFILE_ROOT_BY_COUNT)
		options->roots = (options->roots & ~(unsigned)PROFILE_ROOT_BY_COUNT) | PROFILE_ROOT_PROCESS;
	options->filter = of_command ? NULL : filter;
	if (discovery_filter_has_names(filter))
		options->names = filter;
	t->groups = calloc(filter->group_count + 1, sizeof(*t->groups));
	t->users = wide_numbers(&filter->users);
	t->not_users = wide_numbers(&filter->not_users);
	if (!t->groups || !t->users || !t->not_users) {
		log_error("out of memory while starting");
		return CLI_FAILED;
	}
	for (size_t i = 0; i < filter->group_count; i++)
		t->groups[i] = filter->groups[i].id;
	options->cgroups = (struct kernel_filter){.included = t->groups, .nr_included = filter->group_count};
	options->users = (struct kernel_filter){
		.included = t->users,
		.nr_included = filter->users.count,
		.excluded = t->not_users,
		.nr_excluded = filter->not_users.count,
	};
	if (!filter->group_count || !filter->groups[0].v1)
		return 0;
	options->cgroup_subsystem = kernel_get_cgroup_subsystem(filter->groups[0].controller);
	if (options->cgroup_subsystem >= 0)
		return 0;
	log_error("cgroup %s is in the v1 hierarchy of %s, which this kernel's BTF does not list",
		  filter->groups[0].path, filter->groups[0].controller);
	return CLI_FAILED;
}

void cli_targets_free(struct cli_targets *t)
{
	free(t->groups);
	free(t->users);
	free(t->not_users);
	*t = (struct cli_targets){0};
}

void cli_targets_warn(const struct session_options *options)
{
	if (options->all && host_pid_namespace())
		log_warn(
			"pybpf runs in a PID namespace of its own and sees only the processes there; to see the host's "
			"processes, start its container with the host's PIDs (docker run --pid=host, hostPID: true)");
}

bool cli_targets_tell_undecided(const struct session *session)
{
	size_t count = session_count_undecided(session);

	if (!count || session_python_found(session))
		return false;
	log_error(
		"whether Python runs in %zu process%s is not known: no helper process answered in time, or it crashed",
		count, text_es(count));
	return true;
}

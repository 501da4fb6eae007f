// SPDX-License-Identifier: Apache-2.0
#include "cli/select.h"

#include <errno.h>
#include <pwd.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "base/log.h"

const char cli_select_help[] =
	"Which processes:\n"
	"  -p, --pid PID[,PID...]  these; may be repeated\n"
	"      --children          with -p: and all that they have started and start (also --subprocesses); PID may\n"
	"                          then be any program: a shell, timeout, tini\n"
	"  -a, --all               every Python process of the machine\n"
	"      --container NAME|ID those in a container of docker, containerd, CRI-O, podman, Kubernetes (POD/NAME), "
	"LXC,\n"
	"                          systemd-nspawn, crun or runc; an ID's first characters are enough; may be\n"
	"                          repeated\n"
	"      --cgroup PATH       those in a control group and below it, in v2 or v1; may be repeated\n"
	"Of those only, or of all (may be repeated):\n"
	"      --comm GLOB         whose name, as in /proc/PID/comm, fits: 'gunicorn*'\n"
	"      --user NAME|UID     that run as this user\n"
	"      --exclude-pid PID[,PID...]  --exclude-comm GLOB  --exclude-user NAME|UID  --exclude-container NAME|ID\n"
	"                          but not these\n";

static int no_memory(void)
{
	log_error("cannot keep the options: %s", strerror(ENOMEM));
	return CLI_FAILED;
}

static int add_pids(struct discovery_numbers *pids, const char *option, const char *text)
{
	const char *p = text;

	for (;;) {
		unsigned long pid = 0;
		char *end = (char *)p;

		/* strtoul alone would take blanks and signs. */
		if (*p >= '0' && *p <= '9')
			pid = strtoul(p, &end, 10);
		if (pid < 1 || pid > INT32_MAX || (*end && *end != ','))
			return cli_usage(
				"%s %s: not a process ID; it takes a number such as 1234, or several with commas",
				option, text);
		if (discovery_numbers_add(pids, (uint32_t)pid))
			return no_memory();
		if (!*end)
			return 0;
		p = end + 1;
	}
}

static int add_user(struct discovery_numbers *users, const char *option, const char *text)
{
	const struct passwd *user = getpwnam(text);
	double uid;

	if (!user &&
	    (text[0] < '0' || text[0] > '9' || cli_number(text, 0, UINT32_MAX - 1, &uid) || uid != (uint32_t)uid))
		return cli_usage("%s %s: this machine has no such user; it takes a name or a number", option, text);
	return discovery_numbers_add(users, user ? user->pw_uid : (uint32_t)uid) ? no_memory() : 0;
}

static int add_text(struct discovery_texts *texts, const char *option, const char *text)
{
	if (!text[0])
		return cli_usage("%s: it takes a name, and found nothing", option);
	return discovery_texts_add(texts, text) ? no_memory() : 0;
}

int cli_select_option(struct discovery_filter *filter, int option, const char *arg, bool *taken)
{
	*taken = true;
	switch (option) {
	case 'p':
		return add_pids(&filter->pids, "-p", arg);
	case 'a':
		filter->all = true;
		return 0;
	case CLI_SELECT_CHILDREN:
		filter->children = true;
		return 0;
	case CLI_SELECT_CONTAINER:
		return add_text(&filter->containers, "--container", arg);
	case CLI_SELECT_CGROUP:
		return add_text(&filter->cgroups, "--cgroup", arg);
	case CLI_SELECT_COMM:
		return add_text(&filter->comms, "--comm", arg);
	case CLI_SELECT_USER:
		return add_user(&filter->users, "--user", arg);
	case CLI_SELECT_NOT_PID:
		return add_pids(&filter->not_pids, "--exclude-pid", arg);
	case CLI_SELECT_NOT_COMM:
		return add_text(&filter->not_comms, "--exclude-comm", arg);
	case CLI_SELECT_NOT_USER:
		return add_user(&filter->not_users, "--exclude-user", arg);
	case CLI_SELECT_NOT_CONTAINER:
		return add_text(&filter->not_containers, "--exclude-container", arg);
	default:
		*taken = false;
		return 0;
	}
}

int cli_select_check(struct discovery_filter *filter, bool command)
{
	bool group = filter->containers.count || filter->cgroups.count;

	if (!command && !group && !filter->pids.count &&
	    (discovery_filter_has_names(filter) || filter->users.count || filter->not_users.count))
		filter->all = true;
	if (filter->all && filter->pids.count)
		return cli_usage("--all and -p contradict each other: every process, or those that are listed");
	if (filter->all && group)
		return cli_usage("--all and %s contradict each other: every process, or those of the %s",
				 filter->containers.count ? "--container" : "--cgroup",
				 filter->containers.count ? "container" : "group");
	if (command && (filter->all || filter->pids.count || group))
		return cli_usage("two targets, a command and %s: give one of them", filter->all          ? "--all"
										    : filter->pids.count ? "-p"
										    : filter->containers.count
											    ? "--container"
											    : "--cgroup");
	if (filter->children && !command && !filter->pids.count)
		return cli_usage("--children follows what -p PID or a command starts, and neither is given");
	if (!command && !filter->all && !filter->pids.count && !group)
		return cli_usage("nothing to sample: give -p PID, --all, --container NAME, --cgroup PATH, or a command "
				 "after `--`; "
				 "see `pybpf --help`");
	return 0;
}

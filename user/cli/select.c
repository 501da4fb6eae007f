// SPDX-License-Identifier: Apache-2.0
/* The options of record and ps that select processes, and the checks for contradictions. */
#include "cli/select.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/rules.h"
#include "base/log.h"
#include "base/users.h"

static int no_memory(void)
{
	log_error("cannot keep the options: %s", strerror(ENOMEM));
	return CLI_FAILED;
}

/* Returns the list in the filter that the option appends to. */
static void *list(const struct cli_option *option, void *filter)
{
	return (char *)filter + option->offset;
}

static int refuse_pid(const struct cli_option *option, const char *text)
{
	bool name = (text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z');

	if (!name || strchr(text, ','))
		return cli_usage("%s %s: not a process ID; it takes a number such as 1234, or several with commas",
				 cli_option_spelling(option), text);
	return cli_usage("%s %s: not a process ID, which is a number; --%s %s takes the processes of that name",
			 cli_option_spelling(option), text,
			 option->offset == offsetof(struct discovery_filter, not_pids) ? "exclude-comm" : "comm", text);
}

static int take_pids(const struct cli_option *option, const char *text, void *filter)
{
	const char *p = text;

	for (;;) {
		unsigned long pid = 0;
		char *end = (char *)p;

		/* strtoul alone would take blanks and signs. */
		if (*p >= '0' && *p <= '9')
			pid = strtoul(p, &end, 10);
		if (pid < 1 || pid > INT32_MAX || (*end && *end != ','))
			return refuse_pid(option, text);
		if (discovery_numbers_add(list(option, filter), (uint32_t)pid))
			return no_memory();
		if (!*end)
			return 0;
		p = end + 1;
	}
}

static bool trusts_users;

void cli_select_trust_users(void)
{
	trusts_users = true;
}

static int take_user(const struct cli_option *option, const char *text, void *filter)
{
	const struct passwd *user = trusts_users ? NULL : users_find_name(text);
	double uid;

	if (trusts_users)
		return 0;
	if (!user &&
	    (text[0] < '0' || text[0] > '9' || cli_number(text, 0, UINT32_MAX - 1, &uid) || uid != (uint32_t)uid))
		return cli_usage("%s %s: there is no such user; it takes a name or a number",
				 cli_option_spelling(option), text);
	return discovery_numbers_add(list(option, filter), user ? user->pw_uid : (uint32_t)uid) ? no_memory() : 0;
}

static int take_name(const struct cli_option *option, const char *text, void *filter)
{
	if (!text[0])
		return cli_usage("%s needs a name; the one given is empty", cli_option_spelling(option));
	return discovery_texts_add(list(option, filter), text) ? no_memory() : 0;
}

const struct cli_option cli_select_options[] = {
	{"pid", 'p', "PID[,PID...]", "these processes; may be repeated", .take = take_pids,
	 .offset = offsetof(struct discovery_filter, pids)},
	{"children", 0, NULL,
	 "with -p: also all descendants of these processes, those that exist and those that start during the run; PID "
	 "may then be any program: a shell, timeout, tini",
	 .take = cli_take_flag, .offset = offsetof(struct discovery_filter, children)},
	{"subprocesses", 's', .take = cli_take_flag, .offset = offsetof(struct discovery_filter, children)},
	{"all", 'a', NULL, "every Python process of the machine", .take = cli_take_flag,
	 .offset = offsetof(struct discovery_filter, all)},
	{"container", 0, "NAME|ID",
	 "the processes in a container of docker, containerd, CRI-O, podman, Kubernetes (POD/NAME), LXC, "
	 "systemd-nspawn, crun or runc; the first characters of an ID are enough, and a pattern ('shop*') means all "
	 "that match; a prefix, RUNTIME:, names the runtime; may be repeated",
	 .take = take_name, .offset = offsetof(struct discovery_filter, containers)},
	{"cgroup", 0, "PATH", "the processes in a control group and below it, of cgroup v2 or v1; may be repeated",
	 .take = take_name, .offset = offsetof(struct discovery_filter, cgroups)},
	{0},
};

const struct cli_option cli_select_among_options[] = {
	{"comm", 0, "GLOB", "only processes whose name in /proc/PID/comm matches: 'gunicorn*'", .take = take_name,
	 .offset = offsetof(struct discovery_filter, comms)},
	{"user", 0, "NAME|UID", "only processes that run as this user", .take = take_user,
	 .offset = offsetof(struct discovery_filter, users)},
	{"exclude-pid", 0, "PID[,PID...]", "not these processes", .take = take_pids,
	 .offset = offsetof(struct discovery_filter, not_pids)},
	{"exclude-comm", 0, "GLOB", "no process whose name matches", .take = take_name,
	 .offset = offsetof(struct discovery_filter, not_comms)},
	{"exclude-user", 0, "NAME|UID", "no process that runs as this user", .take = take_user,
	 .offset = offsetof(struct discovery_filter, not_users)},
	{"exclude-container", 0, "NAME|ID", "no process in this container", .take = take_name,
	 .offset = offsetof(struct discovery_filter, not_containers)},
	{0},
};

/* What a command line chooses to sample. */
struct target {
	struct discovery_filter filter;
	const char *command;
};

#define CHOSEN(field) CLI_CHOSEN(struct target, field)

static const struct cli_choice choices[] = {
	{"command", CHOSEN(command)},
	{"--all", CHOSEN(filter.all)},
	{"-p", CHOSEN(filter.pids.count)},
	{"--container", CHOSEN(filter.containers.count)},
	{"--cgroup", CHOSEN(filter.cgroups.count)},
	{"--children", CHOSEN(filter.children)},
	{0},
};

static const struct cli_rule rules[] = {
	{"--all", .excludes = "-p",
	 .sentence = "--all and -p contradict each other: every process, or those that are listed"},
	{"--all", .excludes = "--container",
	 .sentence = "--all and --container contradict each other: every process, or those of the container"},
	{"--all", .excludes = "--cgroup",
	 .sentence = "--all and --cgroup contradict each other: every process, or those of the group"},
	{"--children", .needs = "-p, command",
	 .sentence = "--children follows what -p PID or a command starts, and neither is given"},
	{0},
};

const struct cli_rules cli_select_rules = {"all that choose processes", sizeof(struct target), choices, rules};

int cli_select_check(struct discovery_filter *filter, const char *command)
{
	struct target target = {.command = command};
	bool group = filter->containers.count || filter->cgroups.count;
	int code;

	if (!command && !group && !filter->pids.count &&
	    (discovery_filter_has_names(filter) || filter->users.count || filter->not_users.count))
		filter->all = true;
	target.filter = *filter;
	code = cli_rules_check(&cli_select_rules, &target);
	if (code)
		return code;
	if (command && (filter->all || filter->pids.count || group))
		return cli_usage("two targets, a command and %s: give one of them%s",
				 filter->all                ? "--all"
				 : filter->pids.count       ? "-p"
				 : filter->containers.count ? "--container"
							    : "--cgroup",
				 strcmp(command, "sleep") ? "" : "; -d SECONDS limits the time");
	if (!command && !filter->all && !filter->pids.count && !group)
		return cli_usage("nothing to sample: give -p PID, --all, --container NAME, --cgroup PATH, or a command "
				 "after `--`; "
				 "see `pybpf --help`");
	return 0;
}

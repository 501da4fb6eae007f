// SPDX-License-Identifier: Apache-2.0
/* pybpf ps: lists the Python processes that would be sampled. */
#include "cli/cli.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/options.h"
#include "cli/select.h"
#include "cli/other_tools.h"
#include "helper/helper.h"
#include "base/host.h"
#include "base/log.h"
#include "discovery/list.h"

struct ps {
	struct discovery_filter filter;
	bool json;
	int verbose;
};

static const struct cli_example examples[] = {
	{"sudo pybpf ps", "the whole machine, including containers"},
	{"sudo pybpf ps --container web", "one container, by its name or the beginning of its ID"},
	{"sudo pybpf ps --user www-data --json", "one user's processes, for another program"},
	{0},
};

static const struct cli_option options[] = {
	{"json", 0, NULL, "print an array of objects instead of the table", .take = cli_take_flag,
	 .offset = offsetof(struct ps, json)},
	{"verbose", 'v', NULL, "print how each process was found; given twice: everything", .take = cli_take_count,
	 .offset = offsetof(struct ps, verbose)},
	CLI_OPTION_HELP,
	{0},
};

static int parse(struct ps *ps, int argc, char **argv, bool *helped)
{
	struct discovery_filter *filter = &ps->filter;
	const struct cli_option_group groups[] = {
		{"Which processes", cli_select_options, filter},
		{"Filters on processes (may be repeated)", cli_select_among_options, filter},
		{"What to print", options, ps},
		{0},
	};
	const struct cli_options command = {
		.command = "pybpf ps",
		.about = "pybpf ps lists the Python processes that would be sampled, and says why a process cannot be "
			 "sampled.",
		.examples = examples,
		.usage = "  pybpf ps [options]\n",
		.groups = groups,
		.notes = "INSIDE is the PID in the process's own PID namespace, where it differs. VERSION ends in t "
			 "for a free-threaded build, in d for a debug build; a process with several Pythons has one of "
			 "each, separated by commas.\nWithout a selection, all processes are examined.\nExit status: 0 "
			 "done, also when there is no such process; 1 it failed, nothing could be read, or something "
			 "that the list says could not (the list says what); 2 wrong command line.",
		.command_follows = true,
	};
	int code = cli_options_parse(&command, argc, argv, helped);

	if (code || *helped)
		return code;
	if (optind < argc)
		return cli_refuse_argument("ps", argv[optind]);
	if (!filter->pids.count && !filter->containers.count && !filter->cgroups.count)
		filter->all = true;
	return cli_select_check(filter, NULL);
}

/* Names the processes that may be Python, and says why the first of them cannot be read. */
static void tell_denied(const struct ps_list *list)
{
	const char *es = list->looked_at == 1 ? "" : "es";

	if (list->denied == 1)
		log_warn("1 of %zu process%s may be Python: %s", list->looked_at, es, list->denial.text);
	else
		log_warn("%zu of %zu process%s cannot be read and may be Python: %s%s; of the first: %s", list->denied,
			 list->looked_at, es, list->denied_names,
			 list->denied > PS_DENIED_NAMED ? " and more (-v names them)" : "", list->denial.text);
}

static int tell(const struct ps *ps, const struct ps_list *list)
{
	int err = 0;

	if (ps->json)
		ps_json(list, stdout);
	else if (list->count)
		err = ps_table(list, cli_terminal_width(), stdout);
	/* A process that -p names has had a warning of its own. */
	if (list->denied && !ps->filter.pids.count)
		tell_denied(list);
	else if (list->hidden && !ps->filter.pids.count)
		log_warn("/proc hides processes of other users (it is mounted with hidepid), and %zu were looked at; "
			 "run as "
			 "root, or with CAP_SYS_PTRACE",
			 list->looked_at);
	else if (!list->count && !ps->filter.pids.count)
		log_warn("no Python process was found among the %zu that were looked at", list->looked_at);
	if (err)
		log_error("cannot write the list: %s", strerror(-err));
	return err || list->missing || list->unread || (!list->count && (list->denied || list->hidden)) ? CLI_FAILED
													: CLI_OK;
}

int cli_ps(int argc, char **argv)
{
	const struct rights_wanted rights = {.level = RIGHTS_LIST};
	struct ps_list list = {0};
	struct ps ps = {.json = false};
	struct error error;
	bool helped;
	int code = parse(&ps, argc, argv, &helped), err;

	if (code || helped)
		goto done;
	cli_set_verbosity(ps.verbose);
	code = CLI_FAILED;
	if (cli_start_helpers() || cli_drop_rights(&rights))
		goto done;
	if (host_check_proc(&error) || discovery_filter_resolve(&ps.filter, &error)) {
		log_error("%s", error.text);
		goto done;
	}
	err = ps_collect(&ps.filter, &list);
	if (err)
		log_error("cannot list the processes: %s", strerror(-err));
	else
		code = tell(&ps, &list);
done:
	ps_free(&list);
	discovery_filter_free(&ps.filter);
	helper_stop();
	return code;
}

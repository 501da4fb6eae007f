// SPDX-License-Identifier: Apache-2.0
/* pybpf dump: prints what every thread of Python processes does now. */
#include "cli/cli.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "cli/options.h"
#include "cli/select.h"
#include "discovery/list.h"
#include "dump/dump.h"
#include "foreign/foreign.h"

struct dump_command {
	struct discovery_filter filter;
	bool json, reverse, no_source, freeze;
	int verbose;
};

static const struct cli_example examples[] = {
	{"sudo pybpf dump -p PID", "every thread: what it waits for, and its stack as a traceback"},
	{"sudo pybpf dump -p PID --freeze", "all threads at one moment: the process stands still for it"},
	{"sudo pybpf dump --container web", "every Python process in a container"},
	{"pybpf dump -p PID --json", "a process of one's own, for another program"},
	{0},
};

static const struct cli_option options[] = {
	{"json", 0, NULL, "print a line of JSON for each process", .take = cli_take_flag,
	 .offset = offsetof(struct dump_command, json)},
	{"reverse", 0, NULL, "print the most recent call first", .take = cli_take_flag,
	 .offset = offsetof(struct dump_command, reverse)},
	{"freeze", 0, NULL, "stop the process while it is read (milliseconds), so that all threads show one moment",
	 .take = cli_take_flag, .offset = offsetof(struct dump_command, freeze)},
	{"no-source", 0, NULL, "do not read source files, and print no lines of them", .take = cli_take_flag,
	 .offset = offsetof(struct dump_command, no_source)},
	{"verbose", 'v', NULL, "print how each process was found; given twice: everything", .take = cli_take_count,
	 .offset = offsetof(struct dump_command, verbose)},
	CLI_OPTION_HELP,
	{0},
};

static bool is_anything_chosen(const struct discovery_filter *filter)
{
	return filter->all || filter->pids.count || filter->containers.count || filter->cgroups.count ||
	       filter->users.count || filter->not_users.count || discovery_filter_has_names(filter);
}

static int parse(struct dump_command *dump, int argc, char **argv, bool *helped)
{
	struct discovery_filter *filter = &dump->filter;
	const struct cli_option_group groups[] = {
		{"Which processes", cli_select_options, filter},
		{"Only some of those, or of all (may be repeated)", cli_select_among_options, filter},
		{"What to print", options, dump},
		{0},
	};
	const struct cli_options command = {
		.command = "pybpf dump",
		.about = "pybpf dump prints what every thread of a Python process does now, and its stack. The process "
			 "is not stopped, unless --freeze is given.",
		.examples = examples,
		.usage = "  pybpf dump -p PID | --all | --container C [options]\n",
		.groups = groups,
		.notes = "A stack is read until it is certain that the thread had it: because it slept meanwhile, or "
			 "because two reads agree. Where that fails, the thread is marked as moving.\n"
			 "Exit status: 0 done; 1 there was no such process, or one could not be read; 2 wrong command "
			 "line.",
		.command_follows = true,
	};
	int code = cli_options_parse(&command, argc, argv, helped);

	if (code || *helped)
		return code;
	if (optind < argc)
		return cli_usage("dump takes no argument, and found %s; see `pybpf dump --help`", argv[optind]);
	if (!is_anything_chosen(filter))
		return cli_usage("which process: -p PID, --all, --container NAME, --cgroup PATH? See `pybpf dump "
				 "--help`");
	return cli_select_check(filter, NULL);
}

static int print_one(const struct dump_command *dump, const struct ps_row *row, bool first)
{
	const struct dump_wanted wanted = {.sources = !dump->no_source, .freeze = dump->freeze};
	struct json json = {.out = stdout};
	struct dump_process process;
	struct error error;
	int err;

	if (!row->supported) {
		log_error("%s", row->refusal);
		return -ENOTSUP;
	}
	err = dump_collect(row, &wanted, &process, &error);
	if (err) {
		log_error("%s", error.text);
	} else if (dump->json) {
		dump_json(&process, &json);
	} else {
		fputs(first ? "" : "\n", stdout);
		dump_text(&process, dump->reverse, stdout);
	}
	dump_free(&process);
	return err;
}

static int print_all(const struct dump_command *dump, const struct ps_list *list)
{
	bool missed = list->missing, first = true;

	for (size_t i = 0; i < list->count && !foreign_is_interrupted(); i++) {
		if (print_one(dump, &list->rows[i], first))
			missed = true;
		else
			first = false;
	}
	/* A process that -p names has had a sentence of its own. */
	if (!list->count && !dump->filter.pids.count)
		log_error("no Python process was found among the %zu that were looked at%s", list->looked_at,
			  list->denied ? ", of which some cannot be read: run as root, or as their user" : "");
	return missed || !list->count ? CLI_FAILED : CLI_OK;
}

int cli_dump(int argc, char **argv)
{
	struct rights_wanted rights = {.level = RIGHTS_LIST};
	struct ps_list list = {0};
	struct dump_command dump = {.json = false};
	struct error error;
	bool helped;
	int code = parse(&dump, argc, argv, &helped), err;

	if (code || helped)
		goto done;
	cli_set_verbosity(dump.verbose);
	code = CLI_FAILED;
	if (dump.freeze)
		rights.level = RIGHTS_FREEZE;
	if (cli_start_helpers() || cli_drop_rights(&rights))
		goto done;
	if (discovery_filter_resolve(&dump.filter, &error)) {
		log_error("%s", error.text);
		goto done;
	}
	err = ps_collect(&dump.filter, &list);
	if (err)
		log_error("cannot list the processes: %s", strerror(-err));
	else
		code = print_all(&dump, &list);
done:
	ps_free(&list);
	discovery_filter_free(&dump.filter);
	foreign_stop();
	return code;
}

// SPDX-License-Identifier: Apache-2.0
/* pybpf ps: the Python processes that would be sampled. */
#include "cli/cli.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/select.h"
#include "foreign/foreign.h"
#include "base/log.h"
#include "discovery/list.h"

static const char help_head[] =
	"pybpf ps lists the Python processes that would be sampled, and says of those that cannot be, why.\n"
	"\n"
	"Examples:\n"
	"  sudo pybpf ps                          of the whole machine, in containers, too\n"
	"  sudo pybpf ps --container web          of one container, by its name or the beginning of its ID\n"
	"  sudo pybpf ps --user www-data --json   of one user, for another program\n"
	"\n"
	"Usage: pybpf ps [options]\n"
	"\n";

static const char help_tail[] =
	"      --json              an array of objects in place of the table\n"
	"  -v, --verbose           how each was found; twice: everything\n"
	"  -h, --help              this text\n"
	"\n"
	"INSIDE is the PID in the process's own PID namespace, where it differs. VERSION ends in t for a "
	"free-threaded\n"
	"build, in d for a debug build; a process with several Pythons has one of each, separated by commas.\n"
	"Without a selection all processes are looked at.\n"
	"Exit status: 0 done, also when there is none; 1 it failed, or nothing could be read; 2 wrong command line.\n";

enum {
	OPT_JSON = 256,
};

static const struct option long_options[] = {
	CLI_SELECT_OPTIONS,
	{"json", no_argument, NULL, OPT_JSON},
	{"verbose", no_argument, NULL, 'v'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

struct ps {
	struct discovery_filter filter;
	bool json, help;
	int verbose;
};

static int parse(struct ps *ps, int argc, char **argv)
{
	struct discovery_filter *filter = &ps->filter;
	int option, code;
	bool taken;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "+:" CLI_SELECT_SHORT "vh", long_options, NULL)) != -1) {
		if (option == ':' || option == '?') {
			log_error(option == ':' ? "%s needs a value; see `pybpf ps --help`"
						: "unknown option %s; see `pybpf ps --help`",
				  argv[optind - 1]);
			return CLI_USAGE;
		}
		code = cli_select_option(&ps->filter, option, optarg, &taken);
		if (code)
			return code;
		ps->json |= option == OPT_JSON;
		ps->help |= option == 'h';
		ps->verbose += option == 'v';
	}
	if (ps->help)
		return 0;
	if (optind < argc) {
		log_error("ps takes no argument, and found %s; see `pybpf ps --help`", argv[optind]);
		return CLI_USAGE;
	}
	if (!filter->pids.count && !filter->containers.count && !filter->cgroups.count)
		filter->all = true;
	return cli_select_check(filter, false);
}

static size_t terminal_width(void)
{
	struct winsize size;

	return isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) ? size.ws_col : 0;
}

static int tell(const struct ps *ps, const struct ps_list *list)
{
	int err = 0;

	if (ps->json)
		ps_json(list, stdout);
	else if (list->count)
		err = ps_table(list, terminal_width(), stdout);
	if (list->denied)
		log_warn("%zu of %zu processes cannot be read and may be Python (-v names them); %s", list->denied,
			 list->looked_at,
			 geteuid()
				 ? "run as root, or with CAP_SYS_PTRACE and CAP_CHECKPOINT_RESTORE"
				 : "they have capabilities or namespaces that pybpf, though it runs as root, has not");
	else if (list->hidden && !ps->filter.pids.count)
		log_warn("/proc hides processes of other users (it is mounted with hidepid), and %zu were looked at; "
			 "run as "
			 "root, or with CAP_SYS_PTRACE",
			 list->looked_at);
	else if (!list->count && !ps->filter.pids.count)
		log_warn("no Python process was found among the %zu that were looked at", list->looked_at);
	if (err)
		log_error("cannot write the list: %s", strerror(-err));
	return err || list->missing || (!list->count && (list->denied || list->hidden)) ? CLI_FAILED : CLI_OK;
}

int cli_ps(int argc, char **argv)
{
	const struct rights_wanted rights = {.level = RIGHTS_LIST};
	struct ps_list list = {0};
	struct ps ps = {.json = false};
	int code = parse(&ps, argc, argv), err;
	struct error error;

	if (code)
		goto done;
	if (ps.help) {
		fputs(help_head, stdout);
		fputs(cli_select_help, stdout);
		fputs(help_tail, stdout);
		goto done;
	}
	log_set_level(ps.verbose > 1 ? LOG_DEBUG : ps.verbose ? LOG_INFO : LOG_WARN);
	code = CLI_FAILED;
	if (cli_start_helpers() || cli_drop_rights(&rights))
		goto done;
	if (discovery_filter_resolve(&ps.filter, &error)) {
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
	foreign_stop();
	return code;
}

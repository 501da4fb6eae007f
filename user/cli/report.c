// SPDX-License-Identifier: Apache-2.0
/* pybpf report: any format of saved profiles, merged and filtered, without sampling again. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/filter.h"
#include "cli/destination.h"
#include "base/log.h"

static const char help_head[] =
	"pybpf report makes any format of saved profiles, which `pybpf record -o NAME.pybpf` writes, without sampling "
	"again.\n"
	"Several are added up. It needs no rights beyond reading the files.\n"
	"\n"
	"Examples:\n"
	"  pybpf report app.pybpf                       a table of the hottest functions\n"
	"  pybpf report app.pybpf -o app.html           in a browser\n"
	"  pybpf report app.pybpf --under Server.run    what happens in and above one function\n"
	"  pybpf report mon.pybpf tue.pybpf -o two.pybpf  two runs as one\n"
	"  pybpf report app.pybpf --anonymize -o share.pybpf  to be shown to others\n"
	"\n"
	"Usage: pybpf report [options] FILE.pybpf...\n"
	"\n"
	"How:\n"
	"  -o, --output FILE       write there; the suffix chooses the format. Without it, stdout\n"
	"  -f, --format FORMAT     the format, whatever the suffix; without both, text:\n";

static const char help_middle[] =
	"      --by WHAT           process: its name and PID at the root of each stack; container: the container's "
	"name\n"
	"                          before that; line: text and svg by lines, not functions; may be repeated\n"
	"      --threads           put each thread's name and TID under the root\n"
	"  -q, --quiet             no account of the run at the end\n"
	"  -h, --help              this text\n"
	"\n";

static const char help_tail[] =
	"\n"
	"Text goes to a terminal through $PYBPF_PAGER, $PAGER, or `less -FRX`; an empty one, or cat, stands for none.\n"
	"With sudo, that program runs as the user who called it.\n"
	"Exit status: 0 done, also when nothing passes the filters; 1 it failed; 2 wrong command line.\n";

enum {
	OPT_BY = 256,
	OPT_THREADS,
};

static const struct option long_options[] = {
	CLI_FILTER_OPTIONS,
	{"output", required_argument, NULL, 'o'},
	{"format", required_argument, NULL, 'f'},
	{"by", required_argument, NULL, OPT_BY},
	{"threads", no_argument, NULL, OPT_THREADS},
	{"quiet", no_argument, NULL, 'q'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

struct report {
	struct profile_edit edit;
	struct cli_output output;
	unsigned roots; /* 0: as the profiles say */
	bool threads, quiet, help;
};

static int parse_by(struct report *r, const char *text)
{
	if (strcmp(text, "process") == 0)
		r->roots |= PROFILE_ROOT_PROCESS;
	else if (strcmp(text, "container") == 0)
		r->roots |= PROFILE_ROOT_CONTAINER | PROFILE_ROOT_PROCESS;
	else if (strcmp(text, "line") == 0)
		r->output.options.by_line = true;
	else
		return cli_usage("--by %s: it takes process, container or line", text);
	return 0;
}

static int parse_option(struct report *r, int option, const char *arg)
{
	switch (option) {
	case 'o':
		r->output.path = arg;
		return 0;
	case 'f':
		return cli_output_format(&r->output, arg);
	case OPT_BY:
		return parse_by(r, arg);
	case OPT_THREADS:
		r->threads = true;
		return 0;
	case 'q':
		r->quiet = true;
		return 0;
	default:
		r->help = true;
		return 0;
	}
}

static int parse(struct report *r, int argc, char **argv)
{
	int option, err;
	bool taken;

	opterr = 0;
	while ((option = getopt_long(argc, argv, ":" CLI_FILTER_SHORT "o:f:qh", long_options, NULL)) != -1) {
		if (option == ':' || option == '?')
			return cli_usage(option == ':' ? "%s needs a value; see `pybpf report --help`"
						       : "unknown option %s; see `pybpf report --help`",
					 argv[optind - 1]);
		err = cli_filter_option(&r->edit, option, optarg, &taken);
		if (!err && !taken)
			err = parse_option(r, option, optarg);
		if (err || r->help)
			return err;
	}
	if (optind == argc)
		return cli_usage("nothing to report: give a saved profile, FILE.pybpf; see `pybpf report --help`");
	err = cli_output_choose(&r->output, "text") ?: cli_filter_check(&r->edit);
	return err;
}

static void print_help(void)
{
	fputs(help_head, stdout);
	cli_output_help();
	fputs(help_middle, stdout);
	fputs(cli_filter_help, stdout);
	fputs(help_tail, stdout);
}

static void set_roots(const struct report *r, struct profile *p)
{
	unsigned roots = r->roots ?: profile_wanted_roots(p);

	if (r->threads)
		roots |= PROFILE_ROOT_THREAD;
	profile_set_roots(p, roots);
}

/* What the user may miss in the result. */
static void warn(const struct report *r, const struct profile *p)
{
	size_t events;

	profile_events(p, &events);
	if (!profile_total(p))
		log_warn("no sample is left: the profile is empty, or nothing in it passes the filters");
	else if (r->output.format->needs & OUTPUT_TIMES && !events && !r->quiet)
		log_warn("the profile does not say when its samples were taken, so %s has no course of time; `pybpf "
			 "record --timestamps` keeps it",
			 r->output.format->name);
}

int cli_report(int argc, char **argv)
{
	struct report r = {.output = {.paged = true}};
	const struct rights_wanted rights = {.level = RIGHTS_REPORT};
	struct profile *profile = NULL;
	FILE **files = NULL;
	size_t count = 0;
	int code = parse(&r, argc, argv);

	if (!code && r.help)
		print_help();
	if (code || r.help)
		goto done;
	code = CLI_FAILED;
	count = (size_t)(argc - optind);
	files = cli_filter_open(argv + optind, count);
	if (!files || cli_output_open(&r.output) || cli_output_entrust(&r.output, NULL) || cli_drop_rights(&rights))
		goto done;
	profile = cli_filter_load(&r.edit, argv + optind, files, count);
	if (!profile)
		goto done;
	set_roots(&r, profile);
	code = cli_output_write(&r.output, profile);
	if (code)
		goto done;
	warn(&r, profile);
	if (!r.quiet)
		output_account(profile, "pybpf: ", stderr);
done:
	cli_output_discard(&r.output);
	cli_filter_close(files, count);
	profile_free(profile);
	profile_edit_free(&r.edit);
	return code;
}

// SPDX-License-Identifier: Apache-2.0
/* pybpf diff: what grew and what shrank from one saved profile to another. */
#include "cli/cli.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/filter.h"
#include "cli/destination.h"
#include "base/log.h"
#include "output/diff.h"

#define ROWS_DEFAULT       40
#define CONFIDENCE_DEFAULT 95
/* Less than even odds tells nothing; more nines than that are beyond what score intervals keep. */
#define CONFIDENCE_LEAST 50
#define CONFIDENCE_MOST  99.9999
/* The same program's functions differ by a few per cent from run to run: memory lies elsewhere, the machine does more.
 */
#define TOLERANCE_DEFAULT 2
#define TOLERANCE_MOST    1000

static const char help_head[] =
	"pybpf diff compares two saved profiles, and says which functions grew or shrank beyond the noise.\n"
	"\n"
	"Examples:\n"
	"  pybpf diff before.pybpf after.pybpf                  a table of what changed\n"
	"  pybpf diff before.pybpf after.pybpf -o change.html   a differential flame graph\n"
	"  pybpf diff before.pybpf after.pybpf --compare=time   of two runs that do the same work to its end\n"
	"\n"
	"Usage: pybpf diff [options] BEFORE.pybpf AFTER.pybpf\n"
	"\n"
	"How:\n"
	"  -o, --output FILE       write there; the suffix chooses the format. Without it, stdout\n"
	"  -f, --format FORMAT     the format, whatever the suffix; without both, text:\n";

static const char help_middle[] =
	"      --by WHAT           function (default) or line\n"
	"      --compare WHAT      share: of all samples of the profile (default); rate: CPU time per second of the\n"
	"                          run, under an equal load; time: CPU time of the whole run, for the same work\n"
	"      --confidence PERCENT\n"
	"                          (default 95) the rest to 100 is how much of what is called a change may be chance\n"
	"      --tolerance PERCENT (default 2) by how much of itself a function may differ from run to run\n"
	"      --all-rows          what is within the noise, too\n"
	"      --limit N           rows of each table (default 40)\n"
	"  -q, --quiet             no warnings\n"
	"  -h, --help              this text\n"
	"\n";

static const char help_tail[] =
	"\n"
	"A share also shrinks when another one grows; rate and time do not. Shares are those of what passes the\n"
	"filters. Folded stacks have two numbers, before (scaled to after) and after, for flamegraph.pl; those within\n"
	"the noise have the same number twice, without --all-rows.\n"
	"Text goes to a terminal through $PYBPF_PAGER, $PAGER, or `less -FRX`; an empty one, or cat, stands for none.\n"
	"With sudo, that program runs as the user who called it.\n"
	"Exit status: 0 done, whether there is a change or not; 1 it failed; 2 wrong command line.\n";

enum {
	OPT_BY = 256,
	OPT_COMPARE,
	OPT_CONFIDENCE,
	OPT_TOLERANCE,
	OPT_ALL_ROWS,
	OPT_LIMIT,
};

static const struct option long_options[] = {
	CLI_FILTER_OPTIONS,
	{"output", required_argument, NULL, 'o'},
	{"format", required_argument, NULL, 'f'},
	{"by", required_argument, NULL, OPT_BY},
	{"compare", required_argument, NULL, OPT_COMPARE},
	{"confidence", required_argument, NULL, OPT_CONFIDENCE},
	{"tolerance", required_argument, NULL, OPT_TOLERANCE},
	{"all-rows", no_argument, NULL, OPT_ALL_ROWS},
	{"limit", required_argument, NULL, OPT_LIMIT},
	{"quiet", no_argument, NULL, 'q'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

struct diff {
	struct profile_diff_options options;
	struct output_diff_options output;
	struct profile_edit edit;
	const struct output_format *format;
	struct cli_output to; /* its format is not used */
	bool quiet, help;
};

static const char *format_names(void)
{
	static char names[128];
	size_t at = 0;

	for (const struct output_format *f = output_formats(); f->name && at < sizeof(names); f++) {
		if (f->diff)
			at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s (%.*s)", at ? ", " : "", f->name,
					       (int)strcspn(f->suffixes, " "), f->suffixes);
	}
	return names;
}

static int parse_by(struct diff *diff, const char *text)
{
	diff->options.by_line = strcmp(text, "line") == 0;
	if (diff->options.by_line || strcmp(text, "function") == 0)
		return 0;
	return cli_usage("--by %s: it takes function or line", text);
}

static int parse_compare(struct diff *diff, const char *text)
{
	if (strcmp(text, "share") == 0)
		diff->options.basis = PROFILE_DIFF_SHARE;
	else if (strcmp(text, "rate") == 0)
		diff->options.basis = PROFILE_DIFF_RATE;
	else if (strcmp(text, "time") == 0)
		diff->options.basis = PROFILE_DIFF_TIME;
	else
		return cli_usage("--compare %s: it takes share, rate or time", text);
	return 0;
}

static int parse_option(struct diff *diff, int option, const char *arg)
{
	double number;

	switch (option) {
	case 'o':
		diff->to.path = arg;
		return 0;
	case 'f':
		diff->format = output_diff_by_name(arg);
		return diff->format
			       ? 0
			       : cli_usage("-f %s: no such format of a comparison; there are %s", arg, format_names());
	case OPT_BY:
		return parse_by(diff, arg);
	case OPT_COMPARE:
		return parse_compare(diff, arg);
	case OPT_CONFIDENCE:
		if (cli_number(arg, CONFIDENCE_LEAST, CONFIDENCE_MOST, &number))
			return cli_usage("--confidence %s: it takes percent from %d to %g, such as 95", arg,
					 CONFIDENCE_LEAST, CONFIDENCE_MOST);
		diff->options.confidence = number / 100;
		return 0;
	case OPT_TOLERANCE:
		if (cli_number(arg, 0, TOLERANCE_MOST, &number))
			return cli_usage("--tolerance %s: it takes percent from 0 to %d, such as 2", arg,
					 TOLERANCE_MOST);
		diff->options.tolerance = number / 100;
		return 0;
	case OPT_ALL_ROWS:
		diff->output.all = true;
		return 0;
	case OPT_LIMIT:
		if (cli_number(arg, 1, UINT32_MAX, &number) || number != (uint32_t)number)
			return cli_usage("--limit %s: it takes a whole number from 1 up", arg);
		diff->output.rows = (uint32_t)number;
		return 0;
	case 'q':
		diff->quiet = true;
		return 0;
	default:
		diff->help = true;
		return 0;
	}
}

/* The format, which must be able to show what is wanted. */
static int choose_format(struct diff *diff)
{
	if (!diff->format)
		diff->format = diff->to.path ? output_diff_by_path(diff->to.path) : output_diff_by_name("text");
	if (!diff->format)
		return cli_usage("-o %s: no format of a comparison has that suffix; choose one with -f: %s",
				 diff->to.path, format_names());
	if (diff->options.by_line && !diff->format->diff->by_line)
		return cli_usage("--by=line: %s compares functions only", diff->format->name);
	if (diff->options.basis != PROFILE_DIFF_SHARE && diff->format->diff->shares_only)
		return cli_usage("--compare: %s compares shares only", diff->format->name);
	return 0;
}

static int parse(struct diff *diff, int argc, char **argv)
{
	int option, err;
	bool taken;

	opterr = 0;
	while ((option = getopt_long(argc, argv, ":" CLI_FILTER_SHORT "o:f:qh", long_options, NULL)) != -1) {
		if (option == ':' || option == '?')
			return cli_usage(option == ':' ? "%s needs a value; see `pybpf diff --help`"
						       : "unknown option %s; see `pybpf diff --help`",
					 argv[optind - 1]);
		err = cli_filter_option(&diff->edit, option, optarg, &taken);
		if (!err && !taken)
			err = parse_option(diff, option, optarg);
		if (err || diff->help)
			return err;
	}
	if (argc - optind != PROFILE_DIFF_SIDES)
		return cli_usage(
			"diff takes two saved profiles, before and after, and found %d; see `pybpf diff --help`",
			argc - optind);
	for (int i = 0; i < PROFILE_DIFF_SIDES; i++)
		diff->options.names[i] = argv[optind + i];
	return choose_format(diff) ?: cli_filter_check(&diff->edit);
}

static void print_help(void)
{
	fputs(help_head, stdout);
	for (const struct output_format *f = output_formats(); f->name; f++) {
		if (f->diff)
			printf("                            %-8s %s\n", f->name, f->diff->help);
	}
	fputs(help_middle, stdout);
	fputs(cli_filter_help, stdout);
	fputs(help_tail, stdout);
}

struct formatted {
	const struct diff *diff;
	const struct profile_diff *found;
};

static int write_formatted(const void *what, FILE *out)
{
	const struct formatted *f = what;

	return f->diff->format->diff->write(f->found, &f->diff->output, out);
}

static int compare(struct diff *diff, struct profile *const profiles[])
{
	struct profile_diff *d = NULL;
	struct error error;
	int code;

	if (profile_diff(profiles[PROFILE_DIFF_BEFORE], profiles[PROFILE_DIFF_AFTER], &diff->options, &d, &error)) {
		log_error("%s", error.text);
		return CLI_FAILED;
	}
	for (int i = 0; i < PROFILE_DIFF_SIDES && !diff->quiet; i++) {
		if (!d->whole[i].total)
			log_warn("%s has no sample with frames, or none that passes the filters: there is nothing to "
				 "compare with",
				 diff->options.names[i]);
	}
	code = cli_output_through(&diff->to, write_formatted, &(struct formatted){diff, d});
	profile_diff_free(d);
	return code;
}

int cli_diff(int argc, char **argv)
{
	struct diff diff = {
		.options = {.confidence = CONFIDENCE_DEFAULT / 100.0, .tolerance = TOLERANCE_DEFAULT / 100.0},
		.output = {.rows = ROWS_DEFAULT},
		.to = {.paged = true}};
	const struct rights_wanted rights = {.level = RIGHTS_REPORT};
	struct profile *profiles[PROFILE_DIFF_SIDES] = {NULL};
	FILE **files = NULL;
	int code = parse(&diff, argc, argv);

	if (!code && diff.help)
		print_help();
	if (code || diff.help)
		goto done;
	files = cli_filter_open(argv + optind, PROFILE_DIFF_SIDES);
	code = files ? CLI_OK : CLI_FAILED;
	code = code ?: cli_output_open(&diff.to);
	code = code ?: cli_output_entrust(&diff.to, NULL);
	code = code ?: cli_drop_rights(&rights);
	for (int i = 0; i < PROFILE_DIFF_SIDES && !code; i++) {
		profiles[i] = cli_filter_load(&diff.edit, argv + optind + i, files + i, 1);
		code = profiles[i] ? CLI_OK : CLI_FAILED;
	}
	code = code ?: compare(&diff, profiles);
done:
	cli_output_discard(&diff.to);
	cli_filter_close(files, PROFILE_DIFF_SIDES);
	for (int i = 0; i < PROFILE_DIFF_SIDES; i++)
		profile_free(profiles[i]);
	profile_edit_free(&diff.edit);
	return code;
}

// SPDX-License-Identifier: Apache-2.0
/* pybpf diff: what grew and what shrank from one saved profile to another. */
#include "cli.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "output.h"
#include "output_diff.h"
#include "profile_edit.h"
#include "profile_saved.h"

#define ROWS_DEFAULT 40
/* Less than even odds tells nothing; more nines than that are beyond what score intervals keep. */
#define CONFIDENCE_LEAST 50
#define CONFIDENCE_MOST  99.9999

static const char help_head[] =
	"pybpf diff compares two saved profiles and says which functions grew or shrank beyond the noise.\n"
	"\n"
	"Examples:\n"
	"  pybpf diff before.pybpf after.pybpf                  a table of what changed\n"
	"  pybpf diff before.pybpf after.pybpf -o change.html   a differential flame graph\n"
	"  pybpf diff before.pybpf after.pybpf --compare=time   of two runs that do the same work to its end\n"
	"\n"
	"Usage: pybpf diff [options] BEFORE AFTER\n"
	"\n"
	"  -o, --output FILE       write there, when all is done; the suffix chooses the format\n"
	"  -f, --format FORMAT     the format, whatever the suffix:\n";

static const char help_tail[] =
	"      --by WHAT           function (default) or line\n"
	"      --compare WHAT      share: of all samples of each profile (default); rate: CPU time per second of the\n"
	"                          run, for an equal load; time: CPU time of the whole run, for the same work\n"
	"      --confidence PERCENT\n"
	"                          of the intervals (default 95); of what is called a change, at most the rest to 100 "
	"%\n"
	"                          is expected to be chance\n"
	"      --all-rows          what is within the noise, too; folded: counts before as they were, but for their "
	"scale\n"
	"      --limit N           rows of each table (default 40)\n"
	"      --under GLOB        only stacks with that function, from it on\n"
	"      --focus REGEX       only stacks with a frame that fits; may be repeated: each must\n"
	"      --ignore REGEX      no stacks with a frame that fits; may be repeated\n"
	"  -q, --quiet             no warnings\n"
	"  -h, --help              this text\n"
	"\n"
	"Shares are normalised by each profile's total, after --under, --focus and --ignore. A share also shrinks "
	"when\n"
	"another grows; rate and time do not. Profiles are saved with `pybpf -o FILE.pybpf`; no root is needed here.\n"
	"Exit status: 0 done, whether there is a change or not; 1 it failed; 2 wrong command line.\n";

enum {
	OPT_BY = 256,
	OPT_COMPARE,
	OPT_CONFIDENCE,
	OPT_ALL_ROWS,
	OPT_LIMIT,
	OPT_UNDER,
	OPT_FOCUS,
	OPT_IGNORE,
};

static const struct option long_options[] = {
	{"output", required_argument, NULL, 'o'},
	{"format", required_argument, NULL, 'f'},
	{"by", required_argument, NULL, OPT_BY},
	{"compare", required_argument, NULL, OPT_COMPARE},
	{"confidence", required_argument, NULL, OPT_CONFIDENCE},
	{"all-rows", no_argument, NULL, OPT_ALL_ROWS},
	{"limit", required_argument, NULL, OPT_LIMIT},
	{"under", required_argument, NULL, OPT_UNDER},
	{"focus", required_argument, NULL, OPT_FOCUS},
	{"ignore", required_argument, NULL, OPT_IGNORE},
	{"quiet", no_argument, NULL, 'q'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

struct diff {
	struct profile_diff_options options;
	struct output_diff_options output;
	struct profile_edit edit;
	const struct output_diff_format *format;
	const char *path;
	bool quiet, help;
};

static const char *format_names(void)
{
	static char names[128];
	size_t at = 0;

	for (const struct output_diff_format *f = output_diff_formats(); f->name && at < sizeof(names); f++)
		at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s (%s)", at ? ", " : "", f->name, f->suffix);
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
		diff->path = arg;
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
	case OPT_ALL_ROWS:
		diff->output.all = true;
		return 0;
	case OPT_LIMIT:
		if (cli_number(arg, 1, UINT32_MAX, &number) || number != (uint32_t)number)
			return cli_usage("--limit %s: it takes a whole number from 1 up", arg);
		diff->output.rows = (uint32_t)number;
		return 0;
	case OPT_UNDER:
		diff->edit.under = arg;
		return 0;
	case OPT_FOCUS:
	case OPT_IGNORE:
		if (profile_edit_add_text(option == OPT_FOCUS ? &diff->edit.focus : &diff->edit.ignore, arg) == 0)
			return 0;
		log_error("out of memory while reading options");
		return CLI_FAILED;
	case 'q':
		diff->quiet = true;
		return 0;
	case 'h':
		diff->help = true;
		return 0;
	default:
		return CLI_USAGE;
	}
}

/* The format, which must be able to show what is wanted. */
static int choose_format(struct diff *diff)
{
	if (!diff->format)
		diff->format = diff->path ? output_diff_by_path(diff->path) : output_diff_formats();
	if (!diff->format)
		return cli_usage("-o %s: no format of a comparison has that suffix; choose one with -f: %s", diff->path,
				 format_names());
	if (diff->options.by_line && !diff->format->by_line)
		return cli_usage("--by=line: %s compares functions only", diff->format->name);
	if (diff->options.basis != PROFILE_DIFF_SHARE && diff->format->shares_only)
		return cli_usage("--compare: %s compares shares only", diff->format->name);
	return 0;
}

static int parse(struct diff *diff, int argc, char **argv)
{
	int option, err;

	opterr = 0;
	/* Options may follow the files, as they do in the examples. */
	while ((option = getopt_long(argc, argv, ":o:f:qh", long_options, NULL)) != -1) {
		if (option == ':')
			return cli_usage("%s needs a value; see `pybpf diff --help`", argv[optind - 1]);
		if (option == '?')
			return cli_usage("unknown option %s; see `pybpf diff --help`", argv[optind - 1]);
		err = parse_option(diff, option, optarg);
		if (err)
			return err;
	}
	if (diff->help)
		return 0;
	if (argc - optind != PROFILE_DIFF_SIDES)
		return cli_usage(
			"diff takes two saved profiles, before and after, and found %d; see `pybpf diff --help`",
			argc - optind);
	for (int i = 0; i < PROFILE_DIFF_SIDES; i++)
		diff->options.names[i] = argv[optind + i];
	return choose_format(diff);
}

static void print_help(void)
{
	fputs(help_head, stdout);
	for (const struct output_diff_format *f = output_diff_formats(); f->name; f++)
		printf("                            %-8s %s\n", f->name, f->help);
	fputs(help_tail, stdout);
}

/* A saved profile, of which only what is wanted. NULL after saying why. */
static struct profile *load(const struct diff *diff, const char *path)
{
	struct profile *saved = NULL, *wanted = NULL;
	char why[1024];

	if (profile_load(path, &saved, why, sizeof(why))) {
		log_error("%s", why);
		return NULL;
	}
	wanted = profile_new();
	if (!wanted || profile_edit_add(wanted, saved, &diff->edit, why, sizeof(why))) {
		log_error("out of memory while reading %s", path);
		profile_free(wanted);
		wanted = NULL;
	}
	profile_free(saved);
	return wanted;
}

static int write_diff(const struct diff *diff, const struct profile_diff *d)
{
	struct output_file file = {.stream = NULL};
	int err = diff->path ? output_file_open(&file, diff->path) : 0;

	if (err) {
		log_error("cannot write to %s: %s", diff->path, strerror(-err));
		return CLI_FAILED;
	}
	err = diff->format->write(d, &diff->output, diff->path ? file.stream : stdout);
	errno = 0;
	if (!err && diff->path)
		err = output_file_commit(&file);
	else if (!err && (fflush(stdout) || ferror(stdout)))
		err = errno ? -errno : -EIO;
	output_file_discard(&file);
	if (!err)
		return CLI_OK;
	log_error("cannot write %s: %s%s", diff->path ?: "to stdout", strerror(-err),
		  diff->path ? "; nothing was kept under that name" : "");
	return CLI_FAILED;
}

static int compare(const struct diff *diff, struct profile *const profiles[])
{
	struct profile_diff *d = NULL;
	char why[1024];
	int code;

	if (profile_diff(profiles[PROFILE_DIFF_BEFORE], profiles[PROFILE_DIFF_AFTER], &diff->options, &d, why,
			 sizeof(why))) {
		log_error("%s", why);
		return CLI_FAILED;
	}
	for (int i = 0; i < PROFILE_DIFF_SIDES && !diff->quiet; i++) {
		if (!d->whole[i].total)
			log_warn("%s has no sample with frames%s: there is nothing to compare with",
				 diff->options.names[i],
				 diff->edit.under || diff->edit.focus.count || diff->edit.ignore.count
					 ? " that is wanted"
					 : "");
	}
	code = write_diff(diff, d);
	profile_diff_free(d);
	return code;
}

int cli_diff(int argc, char **argv)
{
	struct diff diff = {.options = {.confidence = 0.95}, .output = {.rows = ROWS_DEFAULT}};
	struct profile *profiles[PROFILE_DIFF_SIDES] = {NULL};
	int code = parse(&diff, argc, argv);
	char why[1024];

	if (code)
		goto done;
	if (diff.help) {
		print_help();
		goto done;
	}
	if (profile_edit_check(&diff.edit, why, sizeof(why))) {
		code = cli_usage("%s", why);
		goto done;
	}
	for (int i = 0; i < PROFILE_DIFF_SIDES && !code; i++) {
		profiles[i] = load(&diff, diff.options.names[i]);
		code = profiles[i] ? CLI_OK : CLI_FAILED;
	}
	code = code ?: compare(&diff, profiles);
done:
	for (int i = 0; i < PROFILE_DIFF_SIDES; i++)
		profile_free(profiles[i]);
	profile_edit_free(&diff.edit);
	return code;
}

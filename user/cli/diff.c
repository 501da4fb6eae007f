// SPDX-License-Identifier: Apache-2.0
/* pybpf diff: compares two saved profiles, and lists the functions that grew or shrank. */
#include "cli/cli.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/filter.h"
#include "cli/destination.h"
#include "cli/options.h"
#include "base/log.h"
#include "output/diff.h"

#define ROWS_DEFAULT       40
#define CONFIDENCE_DEFAULT 95
/* In percent. Below even odds a result has no meaning; above 99.9999 score intervals are no longer accurate. */
#define CONFIDENCE_LEAST 50
#define CONFIDENCE_MOST  99.9999
/*
 * In percent. A function's share varies by a few percent between runs of the same program: its memory has other
 * addresses, and the machine has another load.
 */
#define TOLERANCE_DEFAULT 2
#define TOLERANCE_MOST    1000

struct diff_run {
	struct diff_options options;
	struct output_diff_options output;
	struct profile_edit edit;
	const struct output_format *format;
	struct cli_output to; /* its format is not used */
	bool quiet;
};

static const struct cli_example examples[] = {
	{"pybpf diff before.pybpf after.pybpf", "a table of what changed"},
	{"pybpf diff before.pybpf after.pybpf -o change.html", "a differential flame graph"},
	{"pybpf diff before.pybpf after.pybpf --compare=time", "for two runs that do the same work"},
	{0},
};

static const struct cli_word by_words[] = {
	{"function", false},
	{"line", true},
	{0},
};

static const struct cli_word basis_words[] = {
	{"share", DIFF_SHARE},
	{"rate", DIFF_RATE},
	{"time", DIFF_TIME},
	{0},
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

static void list_formats(void)
{
	for (const struct output_format *f = output_formats(); f->name; f++) {
		if (f->diff)
			cli_print_format(f, f->diff->help);
	}
}

static int take_format(const struct cli_option *option, const char *value, void *target)
{
	struct diff_run *diff = target;

	diff->format = output_diff_by_name(value);
	return diff->format ? 0
			    : cli_usage("%s %s: no such format of a comparison; there are %s",
					cli_option_spelling(option), value, format_names());
}

static int take_by(const struct cli_option *option, const char *value, void *target)
{
	struct diff_run *diff = target;
	int line = 0, code = cli_option_word(option, value, &line);

	diff->options.by_line = line;
	return code;
}

static int take_confidence(const struct cli_option *option, const char *value, void *target)
{
	struct diff_run *diff = target;
	double number;

	if (cli_number(value, CONFIDENCE_LEAST, CONFIDENCE_MOST, &number))
		return cli_usage("%s %s: it takes percent from %d to %g, such as 95", cli_option_spelling(option),
				 value, CONFIDENCE_LEAST, CONFIDENCE_MOST);
	diff->options.confidence = number / 100;
	return 0;
}

static int take_tolerance(const struct cli_option *option, const char *value, void *target)
{
	struct diff_run *diff = target;
	double number;

	if (cli_number(value, 0, TOLERANCE_MOST, &number))
		return cli_usage("%s %s: it takes percent from 0 to %d, such as 2", cli_option_spelling(option), value,
				 TOLERANCE_MOST);
	diff->options.tolerance = number / 100;
	return 0;
}

static int take_limit(const struct cli_option *option, const char *value, void *target)
{
	struct diff_run *diff = target;
	double number;

	if (cli_number(value, 1, UINT32_MAX, &number) || number != (uint32_t)number)
		return cli_usage("%s %s: it takes a whole number from 1 up", cli_option_spelling(option), value);
	diff->output.rows = (uint32_t)number;
	return 0;
}

static const struct cli_option options[] = {
	{"format", 'f', "FORMAT", "the format, whatever the suffix; without both, text:", .list = list_formats,
	 .take = take_format},
	{"by", 0, "WHAT", "function (default) or line", .take = take_by, .words = by_words},
	{"compare", 0, "WHAT",
	 "share: of all samples of the profile (default); rate: CPU time per second of the run, under an equal load; "
	 "time: CPU time of the whole run, for the same work",
	 .take = cli_take_word, .offset = offsetof(struct diff_run, options.basis), .words = basis_words},
	{"confidence", 0, "PERCENT",
	 "the rest to 100 is the share of the named changes that may be chance (default " CLI_NUMBER(
		 CONFIDENCE_DEFAULT) ")",
	 .take = take_confidence},
	{"tolerance", 0, "PERCENT",
	 "how far a function may differ from run to run, in percent of itself (default " CLI_NUMBER(
		 TOLERANCE_DEFAULT) ")",
	 .take = take_tolerance},
	{"all-rows", 0, NULL, "also list what is within the noise", .take = cli_take_flag,
	 .offset = offsetof(struct diff_run, output.all)},
	{"limit", 0, "N", "rows of each table (default " CLI_NUMBER(ROWS_DEFAULT) ")", .take = take_limit},
	{"quiet", 'q', NULL, "no warnings", .take = cli_take_flag, .offset = offsetof(struct diff_run, quiet)},
	CLI_OPTION_HELP,
	{0},
};

/* Chooses the format and checks that it supports the options. Returns 0, or CLI_USAGE after one sentence on stderr. */
static int choose_format(struct diff_run *diff)
{
	if (!diff->format)
		diff->format = diff->to.path ? output_diff_by_path(diff->to.path) : output_diff_by_name("text");
	if (!diff->format)
		return cli_usage("-o %s: no format of a comparison has that suffix; choose one with -f: %s",
				 diff->to.path, format_names());
	if (diff->options.by_line && !diff->format->diff->by_line)
		return cli_usage("--by=line: %s compares functions only", diff->format->name);
	if (diff->options.basis != DIFF_SHARE && diff->format->diff->shares_only)
		return cli_usage("--compare: %s compares shares only", diff->format->name);
	return 0;
}

static int parse(struct diff_run *diff, int argc, char **argv, bool *helped)
{
	const struct cli_option_group groups[] = {
		{"Output", cli_output_path_options, &diff->to},
		{NULL, options, diff},
		{"Filters", cli_filter_options, &diff->edit},
		{0},
	};
	const struct cli_options command = {
		.command = "pybpf diff",
		.about = "pybpf diff compares two saved profiles, and says which functions grew or shrank beyond the "
			 "noise.",
		.examples = examples,
		.usage = "  pybpf diff [options] BEFORE.pybpf AFTER.pybpf\n",
		.groups = groups,
		.notes = "A share also shrinks when another one grows; rate and time do not. Shares are those of what "
			 "passes the filters. Folded stacks have two numbers, before (scaled to after) and after, for "
			 "flamegraph.pl; without --all-rows, those within the noise have the same number "
			 "twice.\n" CLI_PAGER_NOTE "\n"
			 "Exit status: 0 done, whether there is a change or not; 1 it failed; 2 wrong command line.",
	};
	int code = cli_options_parse(&command, argc, argv, helped);

	if (code || *helped)
		return code;
	if (argc - optind != DIFF_SIDES)
		return cli_usage(
			"diff takes two saved profiles, before and after, and found %d; see `pybpf diff --help`",
			argc - optind);
	for (int i = 0; i < DIFF_SIDES; i++)
		diff->options.names[i] = argv[optind + i];
	return choose_format(diff) ?: cli_filter_check(&diff->edit);
}

struct formatted {
	const struct diff_run *diff;
	const struct diff *found;
};

static int write_formatted(const void *what, FILE *out)
{
	const struct formatted *f = what;

	return f->diff->format->diff->write(f->found, &f->diff->output, out);
}

static int compare(struct diff_run *diff, struct profile *const profiles[])
{
	struct diff *d = NULL;
	struct error error;
	int code;

	if (diff_make(profiles[DIFF_BEFORE], profiles[DIFF_AFTER], &diff->options, &d, &error)) {
		log_error("%s", error.text);
		return CLI_FAILED;
	}
	for (int i = 0; i < DIFF_SIDES && !diff->quiet; i++) {
		if (!d->whole[i].total)
			log_warn("%s has no sample with frames, or none that passes the filters: there is nothing to "
				 "compare with",
				 diff->options.names[i]);
	}
	code = cli_output_through(&diff->to, write_formatted, &(struct formatted){diff, d});
	diff_free(d);
	return code;
}

int cli_diff(int argc, char **argv)
{
	struct diff_run diff = {
		.options = {.confidence = CONFIDENCE_DEFAULT / 100.0, .tolerance = TOLERANCE_DEFAULT / 100.0},
		.output = {.rows = ROWS_DEFAULT},
		.to = {.paged = true}};
	const struct rights_wanted rights = {.level = RIGHTS_REPORT};
	struct profile *profiles[DIFF_SIDES] = {NULL};
	FILE **files = NULL;
	bool helped;
	int code = parse(&diff, argc, argv, &helped);

	if (code || helped)
		goto done;
	files = cli_filter_open(argv + optind, DIFF_SIDES);
	code = files ? CLI_OK : CLI_FAILED;
	code = code ?: cli_output_open(&diff.to);
	code = code ?: cli_output_entrust(&diff.to, NULL);
	code = code ?: cli_drop_rights(&rights);
	for (int i = 0; i < DIFF_SIDES && !code; i++) {
		profiles[i] = cli_filter_load(&diff.edit, argv + optind + i, files + i, 1);
		code = profiles[i] ? CLI_OK : CLI_FAILED;
	}
	code = code ?: compare(&diff, profiles);
done:
	cli_output_discard(&diff.to);
	cli_filter_close(files, DIFF_SIDES);
	for (int i = 0; i < DIFF_SIDES; i++)
		profile_free(profiles[i]);
	profile_edit_free(&diff.edit);
	return code;
}

// SPDX-License-Identifier: Apache-2.0
/* pybpf diff: compares saved profiles of two sides, and lists the functions that grew or shrank. */
#include "cli/cli.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/epochs.h"
#include "cli/filter.h"
#include "cli/destination.h"
#include "cli/options.h"
#include "base/log.h"
#include "output/diff/diff.h"

#define ROWS_DEFAULT       40
#define CONFIDENCE_DEFAULT 95
/* In percent. Below even odds a result has no meaning; above 99.9999 score intervals are no longer accurate. */
#define CONFIDENCE_LEAST 50
#define CONFIDENCE_MOST  99.9999
/* In percent. */
#define TOLERANCE_MOST 100

/* Where the next operand belongs. */
enum diff_operand {
	OPERAND_UNNAMED, /* to the side of its place: BEFORE AFTER */
	OPERAND_BEFORE,
	OPERAND_AFTER,
};

/* The saved profiles of one side. */
struct diff_files {
	char **paths; /* as they were given; not owned */
	size_t count;
	struct profile_edit_texts versions; /* globs of --before-version, --after-version */
	struct cli_paths found;             /* those, with epochs in place of folders */
	/* Those that could be read, and have samples of the side's version. */
	struct profile **profiles;
	const char **names; /* not owned */
	size_t nr_profiles;
};

struct diff_run {
	struct diff_options options;
	struct diff_files sides[DIFF_SIDES];
	char **unnamed; /* operands before any --before or --after */
	size_t nr_unnamed;
	enum diff_operand operand;
	struct output_diff_options output;
	struct profile_edit edit;
	const struct output_format *format;
	struct cli_output to; /* its format is not used */
	bool quiet;
	struct cli_span span; /* mode */
};

static const struct cli_example examples[] = {
	{"pybpf diff --before a*.pybpf --after b*.pybpf", "several runs each: what changed, and a table"},
	{"pybpf diff old.pybpf new.pybpf", "one run each: only large changes can be named"},
	{"sudo pybpf diff DIR@10:00..10:30 DIR@11:00..", "two spans of time in an agent's folder, each epoch a run"},
	{"pybpf diff DIR --before-version 1.4 --after-version 1.5", "two versions of a service"},
	{"pybpf diff old.pybpf new.pybpf -o change.html", "a differential flame graph"},
	{"pybpf diff old.pybpf new.pybpf --by=line", "lines in place of functions"},
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

static const char *join_formats(bool with_suffix)
{
	static char names[128];
	size_t at = 0;

	for (const struct output_format *f = output_formats(); f->name && at < sizeof(names); f++) {
		if (!f->diff)
			continue;
		at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s", at ? ", " : "", f->name);
		if (with_suffix && at < sizeof(names))
			at += (size_t)snprintf(names + at, sizeof(names) - at, " (%.*s)",
					       (int)strcspn(f->suffixes, " "), f->suffixes);
	}
	return names;
}

static const char *format_names(void)
{
	return join_formats(false);
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
		return cli_usage("%s %s: it takes percent from 0 to %d, such as 3", cli_option_spelling(option), value,
				 TOLERANCE_MOST);
	diff->options.tolerance = number / 100;
	return 0;
}

static int add_path(char ***paths, size_t *count, const char *path)
{
	char **more = reallocarray(*paths, *count + 1, sizeof(**paths));

	if (!more) {
		log_error("out of memory");
		return CLI_FAILED;
	}
	*paths = more;
	more[(*count)++] = (char *)path;
	return 0;
}

static int take_operand(const char *operand, void *target)
{
	struct diff_run *diff = target;
	struct diff_files *side = &diff->sides[diff->operand == OPERAND_AFTER ? DIFF_AFTER : DIFF_BEFORE];

	if (diff->operand == OPERAND_UNNAMED)
		return add_path(&diff->unnamed, &diff->nr_unnamed, operand);
	return add_path(&side->paths, &side->count, operand);
}

static int take_before(const struct cli_option *option, const char *value, void *target)
{
	(void)option;
	((struct diff_run *)target)->operand = OPERAND_BEFORE;
	return take_operand(value, target);
}

static int take_after(const struct cli_option *option, const char *value, void *target)
{
	(void)option;
	((struct diff_run *)target)->operand = OPERAND_AFTER;
	return take_operand(value, target);
}

static int take_version(const struct cli_option *option, const char *value, void *target)
{
	struct profile_edit_texts *versions = (void *)((char *)target + option->offset);

	if (!*value)
		return cli_usage("--%s needs a version; the one given is empty", option->name);
	if (!profile_edit_add_text(versions, value))
		return 0;
	log_error("out of memory");
	return CLI_FAILED;
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

static const struct cli_option side_options[] = {
	{"before", 0, "FILE...", "the runs before, any number; three or more show how far runs differ",
	 .take = take_before},
	{"after", 0, "FILE...", "the runs after, any number", .take = take_after},
	{"before-version", 0, "GLOB",
	 "before, only the processes of this version of a service, as of --service-version; profiles without samples "
	 "of "
	 "it are no runs of that side. One file or folder is enough then: it is both sides",
	 .take = take_version, .offset = offsetof(struct diff_run, sides[DIFF_BEFORE].versions)},
	{"after-version", 0, "GLOB", "likewise after; both have to be given", .take = take_version,
	 .offset = offsetof(struct diff_run, sides[DIFF_AFTER].versions)},
	{0},
};

static const struct cli_option options[] = {
	{"format", 'f', "FORMAT", "the format; without -f, the suffix of -o decides; without both, text:",
	 .list = list_formats, .values = format_names, .take = take_format},
	{"by", 0, "WHAT", "function (default) or line", .take = take_by, .words = by_words},
	{"compare", 0, "WHAT",
	 "share: of all samples of the side (default); rate: CPU time per second of the run, under an equal load; "
	 "time: CPU time of a run, for the same work",
	 .take = cli_take_word, .offset = offsetof(struct diff_run, options.basis), .words = basis_words},
	{"confidence", 0, "PERCENT",
	 "how sure the named changes are: at 95, 5 % of them may be chance (default " CLI_NUMBER(
		 CONFIDENCE_DEFAULT) ")",
	 .take = take_confidence},
	{"tolerance", 0, "PERCENT",
	 "assume that a function varies between runs of the same program by at least this many percent "
	 "(default: " CLI_NUMBER(DIFF_ASSUMED_PERCENT) " with one run a side, else what the runs show)",
	 .take = take_tolerance},
	{"all-rows", 0, NULL, "also list every function that did not change", .take = cli_take_flag,
	 .offset = offsetof(struct diff_run, output.all)},
	{"explain", 0, NULL, "in text, also say how sure the result is, and why", .take = cli_take_flag,
	 .offset = offsetof(struct diff_run, output.explain)},
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
				 diff->to.path, join_formats(true));
	if (diff->options.by_line && !diff->format->diff->by_line)
		return cli_usage("--by=line: %s compares functions only", diff->format->name);
	return 0;
}

/* Checks the versions of the sides. Returns 0, or CLI_USAGE after one sentence on stderr. */
static int check_versions(const struct diff_run *diff)
{
	const struct profile_edit_texts *before = &diff->sides[DIFF_BEFORE].versions;
	const struct profile_edit_texts *after = &diff->sides[DIFF_AFTER].versions;

	if (!before->count != !after->count)
		return cli_usage("--%s is missing: the versions of both sides have to be given, --before-version GLOB "
				 "--after-version GLOB",
				 before->count ? "after-version" : "before-version");
	if (before->count && diff->edit.versions.count)
		return cli_usage("--service-version %s: the sides have their own by --before-version and "
				 "--after-version; leave one or the other out",
				 diff->edit.versions.items[0]);
	if (before->count == 1 && after->count == 1 && strcmp(before->items[0], after->items[0]) == 0)
		return cli_usage("--before-version and --after-version are both %s; for one version of both sides use "
				 "--service-version",
				 before->items[0]);
	return 0;
}

/* Gives the operands to their sides. Returns 0, or an exit code after one sentence on stderr. */
static int choose_sides(struct diff_run *diff)
{
	if (diff->operand != OPERAND_UNNAMED && diff->nr_unnamed)
		return cli_usage(
			"%s: is it before or after? With --before or --after, give all files behind one of them",
			diff->unnamed[0]);
	/* Two versions in one place. */
	if (diff->operand == OPERAND_UNNAMED && diff->nr_unnamed == 1 && diff->sides[DIFF_BEFORE].versions.count &&
	    add_path(&diff->unnamed, &diff->nr_unnamed, diff->unnamed[0]))
		return CLI_FAILED;
	if (diff->operand == OPERAND_UNNAMED && diff->nr_unnamed != DIFF_SIDES)
		return cli_usage("diff takes two saved profiles, before and after, but was given %zu; several of each: "
				 "--before FILE... --after FILE...",
				 diff->nr_unnamed);
	for (int i = 0; i < DIFF_SIDES; i++) {
		struct diff_files *side = &diff->sides[i];

		if (diff->operand == OPERAND_UNNAMED && add_path(&side->paths, &side->count, diff->unnamed[i]))
			return CLI_FAILED;
		if (!side->count)
			return cli_usage(
				"--%s is missing: name the runs of both sides, --before FILE... --after FILE...",
				i == DIFF_BEFORE ? "before" : "after");
	}
	return 0;
}

static int parse(struct diff_run *diff, int argc, char **argv, bool *helped)
{
	const struct cli_option_group groups[] = {
		{"Profiles", side_options, diff},
		{NULL, cli_mode_options, &diff->span},
		{"Output", cli_output_path_options, &diff->to},
		{NULL, options, diff},
		{"Filters", cli_filter_options, &diff->edit},
		{NULL, cli_focus_options, &diff->edit},
		{NULL, cli_own_options, &diff->edit},
		{0},
	};
	const struct cli_options command = {
		.command = "pybpf diff",
		.about = "pybpf diff compares saved profiles, and says which functions grew or shrank by more than "
			 "runs of the same program vary. DIR, or DIR@FROM..TO for a span of time, stands for the "
			 "epochs of an agent's folder: each is a run.",
		.examples = examples,
		.usage = "  pybpf diff [options] BEFORE.pybpf AFTER.pybpf\n"
			 "  pybpf diff [options] --before FILE.pybpf... --after FILE.pybpf...\n",
		.groups = groups,
		.notes = "The first line says what changed and how sure that is; then come a table and, with "
			 "--explain, the reasons. Record three runs or more of each side, in turns: before, after, "
			 "before, after. "
			 "Functions "
			 "with " CLI_NUMBER(
				 DIFF_LEAST_PERCENT) " % of the samples or more are judged by their own samples, "
						     "against all functions that did not change; values after are "
						     "scaled so that these take as long as before. Folded stacks have "
						     "two numbers, before (scaled to after) and after, for "
						     "flamegraph.pl; without --all-rows, those of functions that did "
						     "not change have the same number twice.\n" CLI_PAGER_NOTE "\n"
						     "Exit status: 0 done, whether there is a change or not; 1 it "
						     "failed, or epochs of a folder could not be read, and the rest "
						     "was compared; 2 wrong command line.",
		.take_operand = take_operand,
		.operand_target = diff,
	};
	int code = cli_options_parse(&command, argc, argv, helped);

	if (code || *helped)
		return code;
	return check_versions(diff) ?: choose_sides(diff) ?: choose_format(diff) ?: cli_filter_check(&diff->edit);
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

static void warn_of_empty(const struct diff_run *diff)
{
	for (int i = 0; i < DIFF_SIDES; i++) {
		const struct diff_files *side = &diff->sides[i];

		for (size_t r = 0; r < side->nr_profiles; r++) {
			if (!profile_total(side->profiles[r]))
				log_warn("%s has no sample with frames, or none that passes the filters, so there is "
					 "nothing to compare",
					 side->names[r]);
		}
	}
}

static int compare(struct diff_run *diff)
{
	struct diff_runs runs[DIFF_SIDES];
	struct diff *d = NULL;
	struct error error;
	int code;

	for (int i = 0; i < DIFF_SIDES; i++)
		runs[i] = (struct diff_runs){
			.profiles = diff->sides[i].profiles,
			.names = diff->sides[i].names,
			.count = diff->sides[i].nr_profiles,
		};
	if (diff_make(runs, &diff->options, &d, &error)) {
		log_error("%s", error.text);
		return CLI_FAILED;
	}
	if (!diff->quiet)
		warn_of_empty(diff);
	code = cli_output_through(&diff->to, write_formatted, &(struct formatted){diff, d});
	diff_free(d);
	return code;
}

/* Finds the epochs of folders: each is a run. */
static int find_epochs(struct diff_run *diff)
{
	int code = 0;

	for (int i = 0; i < DIFF_SIDES && !code; i++) {
		struct diff_files *side = &diff->sides[i];

		code = cli_epochs_find(&side->found, side->paths, side->count, &diff->span);
	}
	return code;
}

static int open_files(struct diff_run *diff)
{
	int code = 0;

	for (int i = 0; i < DIFF_SIDES && !code; i++)
		code = cli_filter_open(&diff->sides[i].found);
	return code;
}

/* Loads a run, and leaves it out if it has none of the side's version. */
static int load_run(const struct profile_edit *edit, struct diff_files *side, size_t r)
{
	struct profile *profile;
	int code = cli_filter_load_one(edit, &side->found, r, &profile);

	if (!code && profile && side->versions.count && !profile_total(profile)) {
		profile_free(profile);
		profile = NULL;
	}
	if (code || !profile)
		return code;
	side->names[side->nr_profiles] = side->found.items[r].name;
	side->profiles[side->nr_profiles++] = profile;
	return 0;
}

static int load_side(const struct diff_run *diff, int which, struct diff_files *side)
{
	struct profile_edit edit = diff->edit;
	int code = 0;

	if (side->versions.count)
		edit.versions = side->versions;
	side->profiles = calloc(side->found.count, sizeof(*side->profiles));
	side->names = calloc(side->found.count, sizeof(*side->names));
	if (!side->profiles || !side->names) {
		log_error("out of memory");
		return CLI_FAILED;
	}
	for (size_t r = 0; r < side->found.count && !code; r++)
		code = load_run(&edit, side, r);
	code = code ?: cli_paths_check_left_out(&side->found);
	if (code || side->nr_profiles || !side->versions.count)
		return code;
	log_error("--%s-version %s: no profile has a sample of that version that passes the other filters",
		  which == DIFF_BEFORE ? "before" : "after", side->versions.items[0]);
	return CLI_FAILED;
}

static int load_files(struct diff_run *diff)
{
	int code = 0;

	for (int i = 0; i < DIFF_SIDES && !code; i++)
		code = load_side(diff, i, &diff->sides[i]);
	return code;
}

static void free_run(struct diff_run *diff)
{
	for (int i = 0; i < DIFF_SIDES; i++) {
		struct diff_files *side = &diff->sides[i];

		for (size_t r = 0; r < side->nr_profiles; r++)
			profile_free(side->profiles[r]);
		free(side->profiles);
		free(side->names);
		cli_paths_free(&side->found);
		free(side->paths);
		free(side->versions.items);
	}
	free(diff->unnamed);
	profile_edit_free(&diff->edit);
}

int cli_diff(int argc, char **argv)
{
	struct diff_run diff = {
		.options = {.confidence = CONFIDENCE_DEFAULT / 100.0, .tolerance = -1},
		.output = {.rows = ROWS_DEFAULT},
		.to = {.paged = true},
	};
	const struct rights_wanted rights = {.level = RIGHTS_REPORT};
	bool helped;
	int code = parse(&diff, argc, argv, &helped);

	if (code || helped)
		goto done;
	code = find_epochs(&diff);
	code = code ?: open_files(&diff);
	code = code ?: cli_output_open(&diff.to);
	code = code ?: cli_output_entrust(&diff.to, NULL);
	code = code ?: cli_drop_rights(&rights);
	code = code ?: load_files(&diff);
	code = code ?: compare(&diff);
	if (!code && (diff.sides[DIFF_BEFORE].found.left_out || diff.sides[DIFF_AFTER].found.left_out))
		code = CLI_FAILED;
done:
	cli_output_discard(&diff.to);
	free_run(&diff);
	return code;
}

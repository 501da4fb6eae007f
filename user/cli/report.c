// SPDX-License-Identifier: Apache-2.0
/* pybpf report: writes saved profiles, merged and filtered, in any format, without new samples. */
#include <getopt.h>
#include <stdio.h>

#include "cli/by_words.h"
#include "cli/cli.h"
#include "cli/epochs.h"
#include "cli/filter.h"
#include "cli/destination.h"
#include "cli/options.h"
#include "cli/rules.h"
#include "base/log.h"
#include "profile/parents.h"
#include "profile/application_frames.h"

struct report {
	struct profile_edit edit;
	struct cli_output output;
	struct cli_span span;
	struct cli_paths paths;
	unsigned roots; /* PROFILE_ROOT_...; 0: those that the profiles were recorded with */
	bool process_tree, threads, quiet, idle, importlib;
};

static const struct cli_example examples[] = {
	{"pybpf report app.pybpf", "a table of the hottest functions"},
	{"pybpf report app.pybpf -o app.html", "in a browser"},
	{"pybpf report app.pybpf --under Server.run", "what happens in and above one function"},
	{"pybpf report app.pybpf --own", "the program's own functions, with the time of libraries that they call"},
	{"pybpf report mon.pybpf tue.pybpf -o two.pybpf", "two runs as one"},
	{"sudo pybpf report /var/lib/pybpf --from 10:00 --to 10:05", "what the agent saw then"},
	{"sudo pybpf report /var/lib/pybpf -o shop.jsonl", "rows of each epoch, for a database"},
	{"pybpf report app.pybpf --anonymize -o share.pybpf", "to show to others"},
	{0},
};

/* Options of record that cannot be chosen for a saved profile. */
static const struct cli_other_tool other_tools[] = {
	{"full-filenames", 0, "a saved profile has its paths as they were recorded; give it to `pybpf record`"},
	{"lines", 0, "a saved profile has the lines that were recorded; give it to `pybpf record`"},
	{"cmdline", 0, "a saved profile has the processes' names that were recorded; give it to `pybpf record`"},
	{"python-only", 0, "--ignore '^\\[threads without Python\\]' leaves out that row"},
	{0},
};

static int take_by(const struct cli_option *option, const char *value, void *target)
{
	struct report *r = target;
	int by, code = cli_option_word(option, value, &by);

	if (code)
		return code;
	if (by == CLI_BY_LINE)
		r->output.options.by_line = true;
	else if (by == CLI_BY_EXPRESSION)
		r->output.options.by_expression = true;
	else if (by == CLI_BY_STATE)
		r->output.options.by_state = true;
	else if (by == CLI_BY_IMPORT)
		r->output.options.by_import = true;
	else
		r->roots |= by == CLI_BY_PROCESS ? PROFILE_ROOT_PROCESS : PROFILE_ROOT_CONTAINER | PROFILE_ROOT_PROCESS;
	return 0;
}

static const struct cli_option options[] = {
	{"by", 0, "WHAT",
	 "process: its name and PID at the root of each stack; container: the container's name before that; line: "
	 "lines in place of functions, in text and svg; expression: also where in its line each function is, if that "
	 "was recorded; state: a column for each state of threads, in text; import: in text, what the import of each "
	 "module cost, below the one that imported it; may be repeated",
	 .take = take_by, .words = cli_by_words},
	{"process-tree", 0, NULL, "before each process, put its ancestors, as far as the profile has them",
	 .take = cli_take_flag, .offset = offsetof(struct report, process_tree)},
	{"threads", 't', NULL, "put each thread's name and TID under the root; in text, a table of threads",
	 .take = cli_take_flag, .offset = offsetof(struct report, threads)},
	{"idle", 0, NULL, "in text, list waits for work (pools, servers, event loops) by function, not as one row",
	 .take = cli_take_flag, .offset = offsetof(struct report, idle)},
	{"importlib", 0, NULL,
	 "in text, html and svg: show every function of Python's import system; without it, only the first of several",
	 .take = cli_take_flag, .offset = offsetof(struct report, importlib)},
	{"quiet", 'q', NULL, "no account of the run at the end", .take = cli_take_flag,
	 .offset = offsetof(struct report, quiet)},
	CLI_OPTION_HELP,
	{0},
};

static const struct cli_choice choices[] = {
	{"--merge", CLI_CHOSEN(struct report, edit.merge_processes)},
	{"--process-tree", CLI_CHOSEN(struct report, process_tree)},
	{0},
};

static const struct cli_rule rules[] = {
	{"--merge", .excludes = "--process-tree",
	 .sentence = "--merge and --process-tree contradict each other: one name for many processes, or who started "
		     "each"},
	{0},
};

const struct cli_rules cli_report_rules = {"report", sizeof(struct report), choices, rules};

static int parse(struct report *r, int argc, char **argv, bool *helped)
{
	const struct cli_option_group groups[] = {
		{"Output", cli_output_url_options, &r->output},
		{NULL, cli_output_format_options, &r->output},
		{NULL, cli_receiver_options, &r->output.receiver},
		{NULL, options, r},
		{"Filters", cli_span_options, &r->span},
		{NULL, cli_mode_options, &r->span},
		{NULL, cli_filter_options, &r->edit},
		{NULL, cli_focus_options, &r->edit},
		{NULL, cli_own_options, &r->edit},
		{0},
	};
	const struct cli_options command = {
		.command = "pybpf report",
		.about = "pybpf report converts saved profiles, which `pybpf record -o NAME.pybpf` and `pybpf agent` "
			 "write, to any format, without sampling again. Several files are added up; in jsonl they "
			 "follow each other. A folder is one that `pybpf agent` wrote. It needs no rights beyond "
			 "reading the files.",
		.examples = examples,
		.usage = "  pybpf report [options] FILE.pybpf...\n",
		.groups = groups,
		.other_tools = other_tools,
		.notes = CLI_PAGER_NOTE "\n"
					"Exit status: 0 done, also when nothing passes the filters; 1 it failed, no "
					"stack has the function of --under, or epochs of a folder could not be read, "
					"and the rest was reported; 2 wrong command line.",
	};
	int code = cli_options_parse(&command, argc, argv, helped);

	if (code || *helped)
		return code;
	if (optind == argc)
		return cli_usage("nothing to report: give a saved profile, FILE.pybpf; see `pybpf report --help`");
	code = cli_rules_check(&cli_report_rules, r) ?: cli_output_choose(&r->output, "text");
	if (code)
		return code;
	/* Its profiles are read while they are written, which is done once. */
	r->output.paged = !r->output.format->separate;
	r->edit.no_columns = !r->output.options.by_expression && !r->output.format->has_columns;
	r->edit.fold_imports = r->output.format->for_people && !r->importlib && !r->output.options.by_import;
	r->edit.fold_idle = r->output.format->rows && !r->idle;
	return cli_filter_check(&r->edit);
}

static void set_roots(const struct report *r, struct profile *p)
{
	unsigned roots = r->roots ?: profile_wanted_roots(p);

	if (r->threads)
		roots |= PROFILE_ROOT_THREAD;
	if (r->process_tree)
		roots |= PROFILE_ROOT_PARENTS | PROFILE_ROOT_PROCESS;
	profile_set_roots(p, roots);
}

/* Warns of paths of --own-path that no function's file is in. */
static void warn_of_paths(const struct profile_edit *edit, const struct profile *p)
{
	for (size_t i = 0; i < edit->own_paths.count; i++) {
		const struct profile_edit_texts one = {.items = edit->own_paths.items + i, .count = 1};
		bool met = false;

		for (uint32_t f = 0; f < profile_frame_count(p) && !met; f++)
			met = profile_is_in(&one, profile_string(p, profile_frame_at(p, f)->file));
		if (!met)
			log_warn("--own-path %s: no file is in it; the profile has files as it shows them, such as "
				 "package/module.py, and whole paths if it was recorded with --full-filenames",
				 one.items[0]);
	}
}

/* Warns if the report is empty, or if its format needs sample times that the profile does not hold. */
static void warn(const struct report *r, const struct profile *p)
{
	size_t events;

	profile_events(p, &events);
	if (!profile_total(p))
		log_warn("no sample is left: the profile is empty, or nothing in it passes the filters");
	else if (r->output.options.by_state && !profile_has_states(p))
		log_warn("the profile does not have the states of threads; `pybpf record --mode=wall` keeps them");
	else if (r->process_tree && !profile_get_parents(p)->list.count)
		log_warn("--process-tree: the profile does not say who started its processes");
	else if (r->output.options.by_expression && !profile_has_columns(p))
		log_warn("the profile does not have the columns of expressions, so lines stand alone; `pybpf record "
			 "--by=expression` keeps them, of Python 3.11 and later");
	else if (r->output.format->needs & OUTPUT_TIMES && !events && !r->quiet)
		log_warn("the profile does not say when its samples were taken, so %s has no time axis; `pybpf "
			 "record -o NAME.pybpf` without --no-timestamps keeps it",
			 r->output.format->name);
}

/* Profiles on their way to a format that has each of them. */
struct separate {
	struct report *report;
	FILE *out;
	uint64_t total; /* of the values that were written */
};

static int write_one(void *arg, const struct profile *p)
{
	struct separate *s = arg;

	s->total += profile_total(p);
	return s->report->output.format->write(p, &s->report->output.options, s->out);
}

static int write_each(const void *what, FILE *out)
{
	struct separate *s = *(struct separate *const *)what;

	s->out = out;
	return cli_filter_each(&s->report->edit, &s->report->paths, write_one, s);
}

/* Reports profiles that are not added up. Returns an exit code. */
static int report_separately(struct report *r)
{
	struct separate s = {.report = r}, *what = &s;
	int code = cli_output_through(&r->output, write_each, &what);

	if (code)
		return code;
	if (!s.total)
		log_warn("no sample is left: the profiles are empty, or nothing in them passes the filters");
	if (!r->quiet)
		cli_epochs_tell(&r->paths);
	return CLI_OK;
}

/* Reports profiles as one. Returns an exit code. */
static int report_sum(struct report *r)
{
	struct profile *profile = cli_filter_load(&r->edit, &r->paths);
	int code = CLI_FAILED;

	if (!profile)
		return code;
	set_roots(r, profile);
	code = cli_output_write(&r->output, profile);
	if (!code)
		warn(r, profile);
	if (!code && profile_total(profile) && !r->edit.anonymize)
		warn_of_paths(&r->edit, profile);
	if (!code && !r->quiet) {
		cli_epochs_tell(&r->paths);
		cli_receiver_tell(&r->output.receiver);
		output_account(profile, "pybpf: ", stderr);
	}
	profile_free(profile);
	return code;
}

int cli_report(int argc, char **argv)
{
	struct report r = {.span = {0}};
	const struct rights_wanted rights = {.level = RIGHTS_REPORT};
	bool helped;
	int code = parse(&r, argc, argv, &helped);

	if (code || helped)
		goto done;
	code = cli_output_connect(&r.output)
		       ?: cli_epochs_find(&r.paths, argv + optind, (size_t)(argc - optind), &r.span);
	if (code)
		goto done;
	code = CLI_FAILED;
	if (cli_filter_open(&r.paths) || cli_output_open(&r.output) || cli_output_entrust(&r.output, NULL) ||
	    cli_drop_rights(&rights))
		goto done;
	code = r.output.format->separate && r.paths.count > 1 ? report_separately(&r) : report_sum(&r);
	if (!code && r.paths.left_out)
		code = CLI_FAILED;
done:
	cli_output_discard(&r.output);
	cli_paths_free(&r.paths);
	profile_edit_free(&r.edit);
	return code;
}

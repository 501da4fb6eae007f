// SPDX-License-Identifier: Apache-2.0
/* pybpf top: a live view of where Python processes spend their time. */
#include "cli/cli.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/signals.h"
#include "cli/filter.h"
#include "cli/options.h"
#include "cli/record_options.h"
#include "cli/select.h"
#include "cli/snapshots.h"
#include "cli/other_tools.h"
#include "cli/targets.h"
#include "helper/helper.h"
#include "rights/priority.h"
#include "session/groups.h"
#include "session/run/run.h"
#include "top/feed.h"
#include "top/jsonl.h"
#include "top/screen.h"

#define INTERVAL_DEFAULT_S 1.0
#define INTERVAL_LEAST_S   0.1
#define INTERVAL_MOST_S    3600
/* Longest time between looks at whether the kernel has room for more stacks. */
#define TICK_MOST_S     1.0
#define DURATION_MOST_S 1e9
#define ROWS_DEFAULT    50
#define ROWS_MOST       TOP_ROWS_MAX
/* Bytes of what the head calls the processes. */
#define TARGET_MAX 128

enum way {
	WAY_SCREEN,
	WAY_JSONL,
};

static const struct cli_word way_words[] = {
	{"screen", WAY_SCREEN},
	{"jsonl", WAY_JSONL},
	{0},
};

enum by {
	BY_FUNCTION,
	BY_EXPRESSION,
};

static const struct cli_word by_words[] = {
	{"function", BY_FUNCTION},
	{"expression", BY_EXPRESSION},
	{0},
};

struct top_command {
	struct discovery_filter filter;
	struct session_options session;
	struct cli_targets targets;
	struct profile_edit edit; /* own_only, own_paths */
	double interval_s, duration_s;
	uint64_t rows;
	unsigned ticks, interval_ticks; /* parts of the interval: that have passed, and all of them */
	int way;                        /* enum way */
	int verbose;
	bool quiet;
	bool no_states;
	int by; /* enum by */
	struct top_model *model;
	struct top_feed feed;
	struct top_screen *screen; /* NULL: lines of JSON */
	const char *path;          /* of profiles; NULL: no -o */
	struct cli_snapshots snapshots;
	char target[TARGET_MAX];
};

static const struct cli_example examples[] = {
	{"sudo pybpf top -p PID", "the hottest functions of a process, each second"},
	{"sudo pybpf top --all", "of every Python process of the machine"},
	{"sudo pybpf top --container web --interval 5", "of a container, each 5 s"},
	{"sudo pybpf top -p PID --output jsonl", "a line of JSON for each interval, for another program"},
	{0},
};

static int take_seconds(const struct cli_option *option, const char *value, double least, double most, double *out)
{
	if (cli_duration(value, out) || *out < least || *out > most)
		return cli_usage("%s %s: not a time from %g to %g s; it takes seconds, such as 5 or 0.5, or 500ms, 2m",
				 cli_option_spelling(option), value, least, most);
	return 0;
}

static int take_interval(const struct cli_option *option, const char *value, void *target)
{
	struct top_command *top = target;

	return take_seconds(option, value, INTERVAL_LEAST_S, INTERVAL_MOST_S, &top->interval_s);
}

static int take_duration(const struct cli_option *option, const char *value, void *target)
{
	struct top_command *top = target;

	return take_seconds(option, value, INTERVAL_LEAST_S, DURATION_MOST_S, &top->duration_s);
}

static int take_freq(const struct cli_option *option, const char *value, void *target)
{
	struct top_command *top = target;

	return cli_option_rate(option, value, &top->session.freq);
}

static int take_native(const struct cli_option *option, const char *value, void *target)
{
	struct top_command *top = target;

	return cli_take_native(option, value, &top->session);
}

static int take_native_lines(const struct cli_option *option, const char *value, void *target)
{
	struct top_command *top = target;

	(void)option;
	(void)value;
	cli_take_native_lines(&top->session);
	return 0;
}

static int take_rows(const struct cli_option *option, const char *value, void *target)
{
	struct top_command *top = target;

	return cli_option_whole(option, value, 1, ROWS_MOST, &top->rows);
}

static const struct cli_option options[] = {
	{"interval", 'i', "TIME", "show the last interval of this length (default 1 s), beside the whole run",
	 .take = take_interval},
	{"freq", 'F', "HZ", "samples per second and CPU (default " CLI_NUMBER(SESSION_FREQ_DEFAULT) ")",
	 .take = take_freq},
	{"rate", 'r', "HZ", .take = take_freq},
	{"duration", 'd', "SECONDS", "stop after this time (default: at q or Ctrl-C, or when the processes end)",
	 .take = take_duration},
	{"output", 0, "WAY", "screen: in the terminal (default); jsonl: a line of JSON on stdout for each interval",
	 .take = cli_take_word, .offset = offsetof(struct top_command, way), .words = way_words},
	{"write", 'o', "FILE",
	 "write the profile to FILE at the key w, or at the end of the run if w was not used; the suffix chooses the "
	 "format (default: w writes pybpf-top-TIME.pybpf)",
	 .take = cli_take_file, .offset = offsetof(struct top_command, path)},
	{"rows", 0, "N",
	 "with --output=jsonl: at most N rows of each table (default " CLI_NUMBER(
		 ROWS_DEFAULT) "), those with the most time "
			       "of their own",
	 .take = take_rows},
	{"by", 0, "WHAT",
	 "function (default); expression: show first which part of its line each function executes, as "
	 "file.py:LINE:COLUMN-END, and write the columns to jsonl and profiles (Python 3.11 and later)",
	 .take = cli_take_word, .offset = offsetof(struct top_command, by), .words = by_words},
	{"native", 'n', "all", "functions of C and other compiled languages, too, as in `pybpf record`",
	 .take = take_native, .optional = true},
	{"native-lines", 0, NULL,
	 "--native with their line numbers, and with functions inlined into them, for files with debug information",
	 .take = take_native_lines},
	{"no-wait-states", 0, NULL, "do not measure what threads wait for: show them as asleep", .take = cli_take_flag,
	 .offset = offsetof(struct top_command, no_states)},
	{"without-kernel-feature", 0, "LIST", "as in `pybpf record`", .take = cli_take_text,
	 .offset = offsetof(struct top_command, session.disabled_features)},
	{"full-filenames", 0, NULL, "whole paths of files", .take = cli_take_flag,
	 .offset = offsetof(struct top_command, session.full_filenames)},
	{"verbose", 'v', NULL, "print what was found: Python, runtime, offsets", .take = cli_take_count,
	 .offset = offsetof(struct top_command, verbose)},
	CLI_OPTION_HELP,
	{0},
};

static int parse(struct top_command *top, int argc, char **argv, bool *helped)
{
	const struct cli_option_group groups[] = {
		{"Which processes", cli_select_options, &top->filter},
		{"Filters on processes (may be repeated)", cli_select_among_options, &top->filter},
		{"What to show", options, top},
		{NULL, cli_own_options, &top->edit},
		{0},
	};
	const struct cli_options command = {
		.command = "pybpf top",
		.about = "pybpf top shows live where Python processes spend their time, without stopping or changing "
			 "them.",
		.examples = examples,
		.usage = "  pybpf top -p PID | --all | --container C [options]\n",
		.groups = groups,
		.notes = "Exit status: 0 done; 1 there was no such process, or it could not be sampled; 2 wrong "
			 "command line.",
		.command_follows = true,
	};
	int code = cli_options_parse(&command, argc, argv, helped);

	if (code || *helped)
		return code;
	if (optind < argc)
		return cli_refuse_argument("top", argv[optind]);
	if (discovery_filter_is_empty(&top->filter))
		return cli_usage("which process: -p PID, --all, --container NAME, --cgroup PATH? See `pybpf top "
				 "--help`");
	return cli_select_check(&top->filter, NULL);
}

static int write_interval(struct top_command *top)
{
	const struct top_jsonl facts = {
		.freq = top->session.freq,
		.rows = (uint32_t)top->rows,
		.uptime_s = clock_s(CLOCK_MONOTONIC) - top->feed.begin,
		.time_ns = clock_ns(CLOCK_REALTIME),
	};

	top_jsonl_write(top->model, &facts, stdout);
	if (!ferror(stdout))
		return 0;
	log_error("cannot write to stdout: %s", strerror(errno));
	cli_finish_stdout(); /* it has been reported */
	return -EIO;
}

static struct top_facts facts_of(struct top_command *top)
{
	return (struct top_facts){
		.target = top->target,
		.one_process = top->filter.pids.count == 1 && !top->filter.children,
		.freq = top->session.freq,
		.uptime_s = clock_s(CLOCK_MONOTONIC) - top->feed.begin,
		.all = top->feed.all,
		.all_s = top->feed.since - top->feed.all_since,
		.source = top_feed_source(&top->feed, top_screen_source(top->screen, top->model)),
	};
}

static int draw(struct top_command *top)
{
	const struct top_facts facts = facts_of(top);
	int err = top_screen_draw(top->screen, top->model, &facts);

	if (err)
		log_error("cannot draw: %s", strerror(-err));
	return err;
}

/* Writes a profile. Returns 0 or negative errno, with one sentence in both cases. */
static int write_profile(struct top_command *top, struct error *outcome)
{
	struct profile *profile = top_feed_profile(&top->feed);
	int err;

	if (!profile)
		return error_set(outcome, -ENOMEM, "out of memory while a profile was made");
	err = cli_snapshots_write(&top->snapshots, profile, outcome);
	profile_free(profile);
	return err;
}

static int on_tick(void *arg)
{
	struct top_command *top = arg;

	/* What is not taken now is part of the next interval. */
	if (++top->ticks < top->interval_ticks || (top->screen && top_screen_is_frozen(top->screen)))
		return top_feed_hold(&top->feed);
	top->ticks = 0;
	return top_feed_interval(&top->feed) ?: top->screen ? draw(top) : write_interval(top);
}

static int on_input(void *arg)
{
	struct top_command *top = arg;

	const struct top_facts facts = facts_of(top);
	enum top_wish wish = top_screen_keys(top->screen, top->model, &facts);
	struct error outcome;

	if (wish == TOP_WISH_END)
		return 1;
	if (wish == TOP_WISH_STOP)
		top_screen_stop();
	if (wish == TOP_WISH_WRITE) {
		write_profile(top, &outcome);
		top_screen_say(top->screen, outcome.text);
	}
	return draw(top);
}

/* What the head of the screen calls the processes: the options that chose them. */
static void name_target(struct top_command *top)
{
	const struct discovery_filter *filter = &top->filter;

	if (filter->pids.count == 1)
		snprintf(top->target, sizeof(top->target), "process %u%s", filter->pids.items[0],
			 filter->children ? " and its children" : "");
	else if (filter->pids.count)
		snprintf(top->target, sizeof(top->target), "%zu processes", filter->pids.count);
	else if (filter->containers.count)
		snprintf(top->target, sizeof(top->target), "container %s", filter->containers.items[0]);
	else
		snprintf(top->target, sizeof(top->target), "all Python processes");
}

static void say_end(const struct top_command *top, enum session_end end)
{
	if (end == SESSION_END_TARGET)
		log_warn("%s ended, or stopped", top->target);
}

/* Writes what -o asks for, unless the key has. */
static int write_at_end(struct top_command *top)
{
	struct error outcome;

	if (!top->path || top->snapshots.written)
		return CLI_OK;
	if (!write_profile(top, &outcome)) {
		log_info("%s", outcome.text);
		return CLI_OK;
	}
	log_error("%s", outcome.text);
	return CLI_FAILED;
}

/* The samples since the last interval; end: CLOCK_MONOTONIC seconds. */
static int finish(struct top_command *top, struct session *session, double end)
{
	const struct profile *profile;
	struct session_account account;

	if (session_collect(session, &profile, &account) || top_feed_finish(&top->feed, profile, &account, end))
		return CLI_FAILED;
	if (top->way == WAY_JSONL && write_interval(top))
		return CLI_FAILED;
	return write_at_end(top) ?: cli_targets_tell_undecided(session) ? CLI_FAILED : CLI_OK;
}

static int open_screen(struct top_command *top)
{
	struct error error;

	if (top->way != WAY_SCREEN)
		return 0;
	top->screen = top_screen_open(&error);
	if (!top->screen)
		log_error("%s", error.text);
	return top->screen ? 0 : CLI_FAILED;
}

static bool groups_go_on(void *groups)
{
	return session_groups_go_on(groups);
}

static int watch(struct top_command *top)
{
	const struct discovery_numbers *pids = &top->filter.pids;
	struct session_run run = {.duration_s = top->duration_s,
				  .interval_s = top->interval_s / top->interval_ticks,
				  .on_interval = on_tick,
				  .watcher = top};
	struct session_groups groups = {.filter = &top->filter, .quiet = true};
	const struct rights_wanted rights = {.level = RIGHTS_SAMPLE,
					     .makes_maps = top->session.native != SESSION_NATIVE_NONE};
	struct session *session = NULL;
	enum session_end end;
	double ended;
	int code = CLI_FAILED;

	if (cli_targets_check(pids, &top->session, top->filter.children))
		return code;
	cli_targets_warn(&top->session);
	session = session_new(&top->session);
	priority_raise();
	if (!session || session_follow(session, pids->items, pids->count) || session_attach(session) ||
	    open_screen(top) || cli_drop_rights(&rights))
		goto done;
	if (top_feed_init(&top->feed, session, top->model, top->edit.own_only)) {
		log_error("out of memory while starting");
		goto done;
	}
	if (top->filter.group_count) {
		run.goes_on = groups_go_on;
		run.goes_on_arg = &groups;
	}
	groups.sessions[0] = run.sessions[0] = session;
	if (top->screen) {
		if (top->by == BY_EXPRESSION)
			top_screen_choose_table(top->screen, TOP_EXPRESSIONS);
		run.on_input = on_input;
		run.input_fd = STDIN_FILENO;
		if (draw(top))
			goto done;
	}
	end = session_run(&run);
	session_detach(session);
	ended = clock_s(CLOCK_MONOTONIC);
	priority_restore();
	top_screen_close(top->screen);
	top->screen = NULL;
	say_end(top, end);
	code = end == SESSION_END_ERROR ? CLI_FAILED : finish(top, session, ended);
done:
	top_screen_close(top->screen);
	top->screen = NULL;
	session_free(session);
	return code;
}

int cli_top(int argc, char **argv)
{
	struct top_command top = {
		.session = SESSION_OPTIONS_DEFAULT, .interval_s = INTERVAL_DEFAULT_S, .rows = ROWS_DEFAULT};
	bool helped = false;
	sigset_t signals;
	int code = parse(&top, argc, argv, &helped);

	if (code || helped)
		goto done;
	top.session.start_ns = cli_start_ns;
	top.session.rolling = true;
	top.session.threads = true;
	top.session.containers = true;
	top.session.states = !top.no_states;
	top.session.own_paths = &top.edit.own_paths;
	if (top.by == BY_EXPRESSION)
		top.session.lines = PYSYM_EXPRESSIONS;
	cli_set_verbosity(top.verbose);
	signal(SIGPIPE, SIG_IGN);
	/* Without its terminal it shows nothing, whoever started it ignores that or not. */
	if (top.way == WAY_SCREEN)
		signal(SIGHUP, SIG_DFL);
	signals_of_run(&signals);
	sigaddset(&signals, SIGWINCH);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	priority_raise(); /* of the helpers, too */
	code = cli_start_helpers();
	priority_restore();
	code = code ?: cli_targets_check_host();
	top.session.follow = top.filter.children;
	code = code ?: cli_targets_choose(&top.targets, &top.filter, &top.session, false);
	if (!code && (top.path || top.way == WAY_SCREEN))
		code = cli_snapshots_open(&top.snapshots, top.path, top.by == BY_EXPRESSION);
	top.session.sources = top.way == WAY_SCREEN || top.path;
	top.interval_ticks = (unsigned)ceil(top.interval_s / TICK_MOST_S);
	name_target(&top);
	top.model = code ? NULL : top_model_new();
	if (top.model && top.by == BY_EXPRESSION)
		top_model_want_expressions(top.model);
	if (top.model)
		code = watch(&top);
	else if (!code)
		code = CLI_FAILED;
done:
	cli_snapshots_close(&top.snapshots);
	top_feed_free(&top.feed);
	top_model_free(top.model);
	cli_targets_free(&top.targets);
	discovery_filter_free(&top.filter);
	profile_edit_free(&top.edit);
	helper_stop();
	return code;
}

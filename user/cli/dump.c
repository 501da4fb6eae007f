// SPDX-License-Identifier: Apache-2.0
/* pybpf dump: prints what every thread of Python processes does now. */
#include "cli/cli.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/host.h"
#include "base/log.h"
#include "base/sudo.h"
#include "base/procfs.h"
#include "cli/options.h"
#include "cli/other_tools.h"
#include "cli/rules.h"
#include "cli/select.h"
#include "discovery/list.h"
#include "dump/core.h"
#include "dump/dump.h"
#include "helper/helper.h"
#include "rights/priority.h"

struct dump_command {
	struct discovery_filter filter;
	bool json, reverse, brief, no_source, freeze, tasks, native, parents;
	double watch_s, diff_after_s; /* 0: not asked for */
	int verbose, locals;
	bool show_secrets;
	struct dump_core_files files;
	struct dump_core *core;   /* NULL: of processes */
	struct dump_peers *peers; /* NULL: of a core file */
};

/* Threads with the stack of another one from which on a terminal is told of --short: more lines than it has. */
#define EQUAL_STACKS 10

#define INTERVAL_LEAST_S 0.01
#define INTERVAL_MOST_S  86400

/* Options of py-spy's dump. */
static const struct cli_other_tool other_tools[] = {
	{"", 'j', "--json prints JSON"},
	{"nonblocking", 0, "dump stops no process, unless --freeze is given"},
	{0},
};

static const struct cli_example examples[] = {
	{"sudo pybpf dump -p PID", "every thread: what it waits for, and its stack as a traceback"},
	{"sudo pybpf dump -p PID --short", "many threads on one screen: equal stacks are shown once"},
	{"sudo pybpf dump -p PID --diff-after 5", "does it hang? Which threads have not run for 5 seconds"},
	{"sudo pybpf dump -p PID --async", "asyncio's tasks as a tree: who awaits whom, and in which line"},
	{"sudo pybpf dump -p PID --freeze", "all threads at one moment: the process stands still for it"},
	{"sudo pybpf dump -p PID --locals", "with arguments and local variables; passwords and the like are hidden"},
	{"pybpf dump --core core.4711", "what every thread did when the process died, or when gcore(1) was called"},
	{"sudo pybpf dump --container web", "every Python process in a container"},
	{"pybpf dump -p PID --json", "one of your own processes, for another program"},
	{0},
};

static int take_interval(const struct cli_option *option, const char *value, void *target)
{
	void *field = (char *)target + option->offset;
	double *seconds = field;

	if (cli_duration(value, seconds) || *seconds < INTERVAL_LEAST_S || *seconds > INTERVAL_MOST_S)
		return cli_usage("%s %s: not a time from 10ms to 1d; it takes seconds, such as 5 or 0.5, or 500ms, 2m",
				 cli_option_spelling(option), value);
	return 0;
}

static const struct cli_option options[] = {
	{"diff-after", 0, "TIME", "look twice, TIME apart, and print which threads have not run or moved meanwhile",
	 .take = take_interval, .offset = offsetof(struct dump_command, diff_after_s)},
	{"watch", 0, "TIME", "look again every TIME, until Ctrl-C, and print what each thread has done since",
	 .take = take_interval, .offset = offsetof(struct dump_command, watch_s)},
	{"async", 0, NULL, "print asyncio's tasks, too: who awaits whom, and where each is suspended",
	 .take = cli_take_flag, .offset = offsetof(struct dump_command, tasks)},
	{"json", 0, NULL, "print a line of JSON for each process", .take = cli_take_flag,
	 .offset = offsetof(struct dump_command, json)},
	{"short", 0, NULL,
	 "a line for each function, the most recent call first; equal stacks once, with the number of their threads",
	 .take = cli_take_flag, .offset = offsetof(struct dump_command, brief)},
	{"reverse", 0, NULL, "print the most recent call first", .take = cli_take_flag,
	 .offset = offsetof(struct dump_command, reverse)},
	{"locals", 'l', NULL, "print arguments and local variables; given twice or three times: longer values",
	 .take = cli_take_count, .offset = offsetof(struct dump_command, locals)},
	{"show-secrets", 0, NULL,
	 "with --locals: also print what looks like a password, a token, a key or another secret",
	 .take = cli_take_flag, .offset = offsetof(struct dump_command, show_secrets)},
	{"native", 0, NULL,
	 "print native frames, too: C code between Python's functions; a thread that runs is stopped for them "
	 "(milliseconds)",
	 .take = cli_take_flag, .offset = offsetof(struct dump_command, native)},
	{"freeze", 0, NULL, "stop the process while it is read (milliseconds), so that all threads show one moment",
	 .take = cli_take_flag, .offset = offsetof(struct dump_command, freeze)},
	{"no-source", 0, NULL, "do not read source files, and print no lines of them", .take = cli_take_flag,
	 .offset = offsetof(struct dump_command, no_source)},
	{"process-tree", 0, NULL, "print the ancestors of each process", .take = cli_take_flag,
	 .offset = offsetof(struct dump_command, parents)},
	{"verbose", 'v', NULL,
	 "print how each process was found, and why source text is left out; given twice: everything",
	 .take = cli_take_count, .offset = offsetof(struct dump_command, verbose)},
	CLI_OPTION_HELP,
	{0},
};

static const struct cli_option core_options[] = {
	{"core", 0, "FILE", "a core file, written by the kernel or by gcore(1), instead of a process",
	 .take = cli_take_text, .offset = offsetof(struct dump_command, files.core)},
	{"executable", 0, "FILE", "the program that the core file is of, if it is no longer where it was",
	 .take = cli_take_text, .offset = offsetof(struct dump_command, files.executable)},
	{"sysroot", 0, "DIR",
	 "the root below which the program and its libraries are, such as that of a container's image",
	 .take = cli_take_text, .offset = offsetof(struct dump_command, files.sysroot)},
	{0},
};

#define CHOSEN(field) CLI_CHOSEN(struct dump_command, field)

static const struct cli_choice choices[] = {
	{"--core", CHOSEN(files.core)},
	{"--executable", CHOSEN(files.executable)},
	{"--sysroot", CHOSEN(files.sysroot)},
	{"--short", CHOSEN(brief)},
	{"--json", CHOSEN(json)},
	{"--locals", CHOSEN(locals)},
	{"--show-secrets", CHOSEN(show_secrets)},
	{"--native", CHOSEN(native)},
	{"--freeze", CHOSEN(freeze)},
	{"--watch", CHOSEN(watch_s)},
	{"--diff-after", CHOSEN(diff_after_s)},
	{"--process-tree", CHOSEN(parents)},
	{0},
};

#define NOT_SHORT(option)                                                                                              \
	{                                                                                                              \
		"--short", .excludes = (option),                                                                       \
			   .sentence = "--short and " option                                                           \
				       " exclude each other: --short prints only what threads do, and a line for "     \
				       "each function"                                                                 \
	}
#define NOT_CORE(option)                                                                                               \
	{                                                                                                              \
		"--core", .excludes = (option),                                                                        \
			  .sentence = "--core and " option " exclude each other: a core file is of one moment"         \
	}

static const struct cli_rule rules[] = {
	{"--show-secrets", .needs = "--locals", .sentence = "--show-secrets goes with --locals"},
	NOT_SHORT("--json"),
	NOT_SHORT("--locals"),
	NOT_SHORT("--native"),
	NOT_CORE("--freeze"),
	NOT_CORE("--watch"),
	NOT_CORE("--diff-after"),
	NOT_CORE("--process-tree"),
	{"--executable", .needs = "--core", .sentence = "--executable goes with --core"},
	{"--sysroot", .needs = "--core", .sentence = "--sysroot goes with --core"},
	{"--watch", .excludes = "--diff-after",
	 .sentence = "--watch and --diff-after exclude each other: --watch goes on, --diff-after looks twice"},
	{0},
};

const struct cli_rules cli_dump_rules = {"dump", sizeof(struct dump_command), choices, rules};

/* Checks what is dumped: processes, or a core file. */
static int check_target(struct dump_command *dump)
{
	const bool chosen = !discovery_filter_is_empty(&dump->filter);

	if (dump->files.core && chosen)
		return cli_usage("--core and an option that chooses processes exclude each other: a core file is of "
				 "one moment");
	if (dump->files.core)
		return 0;
	if (!chosen)
		return cli_usage("which process: -p PID, --all, --container NAME, --cgroup PATH? See `pybpf dump "
				 "--help`");
	return cli_select_check(&dump->filter, NULL);
}

static int parse(struct dump_command *dump, int argc, char **argv, bool *helped)
{
	struct discovery_filter *filter = &dump->filter;
	const struct cli_option_group groups[] = {
		{"Which processes", cli_select_options, filter},
		{"Filters on processes (may be repeated)", cli_select_among_options, filter},
		{"Core files", core_options, dump},
		{"What to print", options, dump},
		{0},
	};
	const struct cli_options command = {
		.command = "pybpf dump",
		.about = "pybpf dump prints what every thread of a Python process does now, and its stack. The process "
			 "is not stopped, unless --freeze is given; --native stops its threads that run, one by one.",
		.examples = examples,
		.usage = "  pybpf dump -p PID | --all | --container C | --core FILE [options]\n",
		.groups = groups,
		.other_tools = other_tools,
		.notes = "A stack is read until it is certain that the thread had it: because it slept meanwhile, or "
			 "because two reads agree. If neither is so, the thread is marked as moving.\nExit status: 0 "
			 "done; 1 there was no such process, or one could not be read, or not all of it; 2 wrong "
			 "command line.",
		.command_follows = true,
	};
	int code = cli_options_parse(&command, argc, argv, helped);

	if (code || *helped)
		return code;
	if (optind < argc)
		return cli_refuse_argument("dump", argv[optind]);
	if (dump->locals > PY_VALUE_LEVELS)
		dump->locals = PY_VALUE_LEVELS;
	return cli_rules_check(&cli_dump_rules, dump) ?: check_target(dump);
}

/* Snapshots of the processes that were chosen, one of each; `read` tells which are there. */
struct snapshots {
	struct dump_process *processes;
	bool *read;
	bool missed; /* one could not be read */
};

static void free_snapshots(struct snapshots *s, size_t count)
{
	for (size_t i = 0; s->read && i < count; i++) {
		if (s->read[i])
			dump_free(&s->processes[i]);
	}
	free(s->processes);
	free(s->read);
	*s = (struct snapshots){0};
}

/* Returns whether -p names the process. */
static bool is_named(const struct dump_command *dump, pid_t pid)
{
	const struct discovery_numbers *pids = &dump->filter.pids;

	for (size_t i = 0; i < pids->count; i++) {
		if ((pid_t)pids->items[i] == pid)
			return true;
	}
	return false;
}

/* Sets whether there is a snapshot of the row, and whether one is missed. */
static void take_snapshot(const struct dump_command *dump, const struct ps_row *row, size_t i, struct snapshots *out)
{
	const struct dump_wanted wanted = {
		.named = is_named(dump, row->process.pid),
		.sources = !dump->no_source && !dump->brief,
		.brief = dump->brief,
		.tasks = dump->tasks,
		.native = dump->native,
		.parents = dump->parents,
		.freeze = dump->freeze,
		.core = dump->core,
		.peers = dump->peers,
		.locals = {.level = (unsigned)dump->locals, .show_secrets = dump->show_secrets}};
	struct error error;

	if (!row->supported) {
		log_error("%s", row->refusal);
		out->missed = true;
		return;
	}
	out->read[i] = !dump_collect(row, &wanted, &out->processes[i], &error);
	if (out->read[i] && !out->processes[i].incomplete)
		return;
	if (out->read[i]) {
		log_error("process %d: not all of it could be read: %s", row->process.pid,
			  helper_describe_error(out->processes[i].incomplete));
		out->missed = true;
		return;
	}
	dump_free(&out->processes[i]);
	/* A watch is ended by a signal, also while it looks. */
	if (error.code == -EINTR && dump->watch_s > 0)
		return;
	/* On a machine where processes come and go some end meanwhile. */
	if (!dump->core && !is_named(dump, row->process.pid) && !procfs_task(row->process.pid, NULL)) {
		log_info("process %d ended before it was read", row->process.pid);
		return;
	}
	/* Or execute a program that is not Python, as children of a Python do right after their fork, or are about to.
	 */
	if (!dump->core && !is_named(dump, row->process.pid) && (error.code == -ENOEXEC || error.code == -EAGAIN)) {
		if (error.code == -EAGAIN)
			log_info("%s", error.text);
		else
			log_info("process %d maps no Python any more: it executed another program, or is ending",
				 row->process.pid);
		return;
	}
	log_error("%s", error.text);
	out->missed = true;
}

static void print_snapshot(const struct dump_command *dump, const struct dump_process *process,
			   const struct dump_process *before)
{
	static bool again;
	struct json json = {.out = stdout};
	enum dump_style style = dump->brief ? DUMP_SHORT : dump->reverse ? DUMP_REVERSED : DUMP_TRACEBACKS;

	if (dump->json) {
		dump_json(process, before, &json);
	} else {
		fputs(again ? "\n" : "", stdout);
		dump_text(process, before, style, stdout);
	}
	again = true;
	fflush(stdout);
}

/*
 * Takes a snapshot of each process, and prints it as soon as it is there, if it is wanted. before: earlier ones, of
 * which those that are missing are not tried again; or NULL. Returns 0 or -ENOMEM.
 */
static int take_snapshots(const struct dump_command *dump, const struct ps_list *list, const struct snapshots *before,
			  bool print, struct snapshots *out)
{
	*out = (struct snapshots){
		.processes = calloc(list->count + 1, sizeof(*out->processes)),
		.read = calloc(list->count + 1, sizeof(*out->read)),
	};
	if (!out->processes || !out->read)
		return -ENOMEM;
	for (size_t i = 0; i < list->count; i++) {
		/* A signal ends a watch, and cuts off everything else. */
		if (helper_is_interrupted()) {
			out->missed = out->missed || dump->watch_s <= 0;
			break;
		}
		if (before && !before->read[i])
			continue;
		take_snapshot(dump, &list->rows[i], i, out);
		if (out->read[i] && print)
			print_snapshot(dump, &out->processes[i], before ? &before->processes[i] : NULL);
	}
	return 0;
}

static bool is_any_read(const struct snapshots *s, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (s->read[i])
			return true;
	}
	return false;
}

/* Says on a terminal that --short is shorter, where it is by much. */
static void suggest_short(const struct dump_command *dump, const struct snapshots *s, size_t count)
{
	size_t threads = 0, stacks = 0;

	if (dump->json || dump->brief || dump->locals || dump->native || !isatty(STDOUT_FILENO))
		return;
	for (size_t i = 0; i < count; i++) {
		threads += s->read[i] ? s->processes[i].count : 0;
		stacks += s->read[i] ? dump_count_stacks(&s->processes[i]) : 0;
	}
	if (threads - stacks >= EQUAL_STACKS)
		printf("\n[--short prints equal stacks once: these %zu threads have %zu]\n", threads, stacks);
}

static void wait_for(double seconds)
{
	struct timespec time = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (time_t)seconds) * 1e9)};

	while (nanosleep(&time, &time) && errno == EINTR && !helper_is_interrupted())
		;
}

/* Returns the exit status. */
static int print_all(const struct dump_command *dump, const struct ps_list *list)
{
	double interval_s = dump->watch_s > 0 ? dump->watch_s : dump->diff_after_s;
	struct snapshots now, before = {0};
	bool missed = list->missing || list->unread;
	int err = take_snapshots(dump, list, NULL, dump->diff_after_s <= 0, &now);

	missed = missed || now.missed;
	while (!err && interval_s > 0 && is_any_read(&now, list->count) && !helper_is_interrupted()) {
		free_snapshots(&before, list->count);
		before = now;
		wait_for(interval_s);
		err = take_snapshots(dump, list, &before, true, &now);
		missed = missed || now.missed;
		if (dump->diff_after_s > 0)
			break;
	}
	if (!err && dump->watch_s <= 0)
		suggest_short(dump, &now, list->count);
	free_snapshots(&before, list->count);
	free_snapshots(&now, list->count);
	if (err)
		log_error("cannot look at the processes: %s", strerror(-err));
	return err || missed ? CLI_FAILED : CLI_OK;
}

static int print_list(const struct dump_command *dump, const struct ps_list *list)
{
	if (list->count)
		return print_all(dump, list);
	/* A process that -p names has had a sentence of its own. */
	if (!dump->filter.pids.count)
		log_error("no Python process was found among the %zu that were looked at%s%s%s", list->looked_at,
			  list->denied ? ", of which some cannot be read: run as their user, or as root: `" : "",
			  list->denied ? sudo_command() : "", list->denied ? "`" : "");
	return CLI_FAILED;
}

static int dump_core(const struct dump_command *dump, struct ps_list *list)
{
	struct error error;
	int code = CLI_FAILED;

	if (dump_core_list(dump->core, list, &error))
		log_error("%s", error.text);
	else
		code = print_list(dump, list);
	if (!dump_core_check(dump->core, &error))
		return code;
	log_error("%s", error.text);
	return CLI_FAILED;
}

static int dump_processes(struct dump_command *dump, struct ps_list *list)
{
	struct error error;
	int err;

	if (host_check_proc(&error) || discovery_filter_resolve(&dump->filter, &error)) {
		log_error("%s", error.text);
		return CLI_FAILED;
	}
	err = ps_collect(&dump->filter, list);
	if (!err)
		return print_list(dump, list);
	log_error("cannot list the processes: %s", strerror(-err));
	return CLI_FAILED;
}

static int open_peers(struct dump_command *dump)
{
	const struct discovery_numbers *pids = &dump->filter.pids;
	int err = dump->core ? 0 : dump_peers_open(pids->items, pids->count, &dump->peers);

	if (err)
		log_error("cannot ask for the peers of sockets: %s", strerror(-err));
	return err;
}

int cli_dump(int argc, char **argv)
{
	struct rights_wanted rights = {.level = RIGHTS_LIST};
	struct ps_list list = {0};
	struct dump_command dump = {.json = false};
	struct error error;
	bool helped;
	int code = parse(&dump, argc, argv, &helped);

	if (code || helped)
		goto done;
	cli_set_verbosity(dump.verbose);
	code = CLI_FAILED;
	if (dump.freeze || dump.native)
		rights.level = RIGHTS_FREEZE;
	if (dump.files.core && dump_core_open(&dump.files, &dump.core, &error)) {
		log_error("%s", error.text);
		goto done;
	}
	priority_raise(); /* of the helpers, too: what is to be seen may be over before a busy machine lets them look */
	/* Helpers are not to have the sockets, and without rights there are none of other networks. */
	if (cli_start_helpers() || open_peers(&dump) || cli_drop_rights(&rights))
		goto done;
	code = dump.core ? dump_core(&dump, &list) : dump_processes(&dump, &list);
done:
	dump_core_close(dump.core);
	dump_peers_close(dump.peers);
	ps_free(&list);
	discovery_filter_free(&dump.filter);
	helper_stop();
	return code;
}

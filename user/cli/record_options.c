// SPDX-License-Identifier: Apache-2.0
/* The options, help and examples of record, and the checks of its command line. */
#include "cli/record_options.h"

#include <getopt.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "cli/by_words.h"
#include "cli/cli.h"
#include "cli/filter.h"
#include "cli/host.h"
#include "cli/options.h"
#include "cli/other_tools.h"
#include "cli/rules.h"
#include "cli/select.h"
#include "base/log.h"

/* More than people notice, and than a loop with work to do should take. */
#define ASYNC_BLOCK_DEFAULT_NS 50000000

static const struct cli_word lines_words[] = {
	{"current", PYSYM_LINES_CURRENT},
	{"first", PYSYM_LINES_FIRST},
	{"none", PYSYM_LINES_NONE},
	{0},
};

static int take_by(const struct cli_option *option, const char *value, void *target)
{
	struct cli_record_options *r = target;
	unsigned kept = r->session.roots & (PROFILE_ROOT_THREAD | PROFILE_ROOT_PARENTS);
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
		r->session.roots =
			PROFILE_ROOT_PROCESS | kept | (by == CLI_BY_CONTAINER ? (unsigned)PROFILE_ROOT_CONTAINER : 0);
	return 0;
}

static int take_threads(const struct cli_option *option, const char *value, void *target)
{
	struct cli_record_options *r = target;

	(void)option;
	(void)value;
	r->session.threads = true;
	r->session.roots |= PROFILE_ROOT_THREAD;
	return 0;
}

static int take_process_tree(const struct cli_option *option, const char *value, void *target)
{
	struct cli_record_options *r = target;

	(void)option;
	(void)value;
	r->session.roots |= PROFILE_ROOT_PARENTS | PROFILE_ROOT_PROCESS;
	return 0;
}

static int take_max_stacks(const struct cli_option *option, const char *value, void *target)
{
	struct cli_record_options *r = target;
	uint64_t number = r->session.max_stacks;
	int code = cli_option_whole(option, value, 1, SESSION_MAX_STACKS_LIMIT, &number);

	r->session.max_stacks = (uint32_t)number;
	return code;
}

static int take_max_processes(const struct cli_option *option, const char *value, void *target)
{
	struct cli_record_options *r = target;
	uint64_t number = r->session.max_processes;
	int code = cli_option_whole(option, value, 1, SESSION_MAX_PROCESSES_LIMIT, &number);

	r->session.max_processes = (uint32_t)number;
	return code;
}

static int take_max_memory(const struct cli_option *option, const char *value, void *target)
{
	struct cli_record_options *r = target;

	return cli_option_mib(option, value, SESSION_MAX_MEMORY_LEAST, SESSION_MAX_MEMORY_MOST, &r->session.max_memory);
}

static const struct cli_option command_options[] = {
	{"no-children", 0, NULL, "do not sample the command's children", .take = cli_take_flag,
	 .offset = offsetof(struct cli_record_options, no_children)},
	{"as", 0, "USER",
	 "run the command as USER, with that user's groups, HOME and PATH, and without capabilities unless USER is "
	 "root; caller: the user who called sudo; without this option the command has pybpf's rights: root's under "
	 "sudo",
	 .take = cli_take_text, .offset = offsetof(struct cli_record_options, as)},
	{0},
};

static const struct cli_option output_options[] = {
	{"by", 0, "WHAT",
	 "process: its name and PID at the root of each stack (default where there can be several); container: the "
	 "container's name before that (default with several --container or a pattern); line: lines in place of "
	 "functions, in text and svg; expression: keep the columns of the expression that each function executes, and "
	 "show them, as file.py:LINE:COLUMN-END (Python 3.11 and later); state: a column for each state of threads, in "
	 "text, with --mode=wall, offcpu or gil; import: in text, what the import of each module cost, below the one "
	 "that imported it",
	 .take = take_by, .words = cli_by_words},
	{"merge", 0, NULL, "put processes of the same program together, without PID", .take = cli_take_flag,
	 .offset = offsetof(struct cli_record_options, session.merge)},
	{"importlib", 0, NULL,
	 "in text, html and svg: show every function of Python's import system; without it, only the first of several",
	 .take = cli_take_flag, .offset = offsetof(struct cli_record_options, importlib)},
	{"process-tree", 0, NULL,
	 "before each process, put its ancestors, up to the process of -p or the command, else up to the first one "
	 "below init",
	 .take = take_process_tree},
	{"cmdline", 0, NULL, "show a process's command line in place of its name", .take = cli_take_flag,
	 .offset = offsetof(struct cli_record_options, session.cmdline)},
	{"threads", 't', NULL,
	 "put each thread's name (Python's, else the kernel's) and its TID under the root; in text, a table of threads",
	 .take = take_threads},
	{"lines", 0, "WHICH", "current: the line being executed (default); first: the function's first line; none",
	 .take = cli_take_word, .offset = offsetof(struct cli_record_options, session.lines), .words = lines_words},
	{"full-filenames", 0, NULL, "show whole paths instead of their importable part", .take = cli_take_flag,
	 .offset = offsetof(struct cli_record_options, session.full_filenames)},
	{"python-only", 0, NULL,
	 "leave out CPU time without Python functions, such as [threads without Python]; the account tells how much it "
	 "was",
	 .take = cli_take_flag, .offset = offsetof(struct cli_record_options, session.python_only)},
	{"timestamps", 0, NULL,
	 "keep the time of each sample, and of waits of 1 ms and longer, as pybpf, html, speedscope and the other "
	 "timelines do by default; 64 bytes of memory per sample, and a quarter of --max-memory at most; not with "
	 "--mode=gil",
	 .take = cli_take_flag, .offset = offsetof(struct cli_record_options, timestamps)},
	{"no-timestamps", 0, NULL, "do not keep the time of each sample, whatever the format", .take = cli_take_flag,
	 .offset = offsetof(struct cli_record_options, no_timestamps)},
	{"no-source", 0, NULL,
	 "leave out source text; html and pybpf files hold that of the files with the most samples, and text with "
	 "--by=expression that of each row",
	 .take = cli_take_flag, .offset = offsetof(struct cli_record_options, no_source)},
	{"anonymize", 0, NULL, "replace names of functions, files, processes and containers by hashes; no source text",
	 .take = cli_take_flag, .offset = offsetof(struct cli_record_options, edit.anonymize)},
	{0},
};

static const struct cli_option message_options[] = {
	{"verbose", 'v', NULL,
	 "print what was found: Python, runtime, offsets; given twice: libbpf's messages and the verifier's log, too",
	 .take = cli_take_count, .offset = offsetof(struct cli_record_options, verbose)},
	{"quiet", 'q', NULL, "no account at the end, no progress line", .take = cli_take_flag,
	 .offset = offsetof(struct cli_record_options, quiet)},
	{"stats", 0, NULL, "add what the run cost to the account", .take = cli_take_flag,
	 .offset = offsetof(struct cli_record_options, stats)},
	{"json-stats", 0, "FILE", "write the account as JSON to FILE, which must differ from that of -o",
	 .take = cli_take_file, .offset = offsetof(struct cli_record_options, json_path)},
	{0},
};

static const struct cli_option limit_options[] = {
	{"max-stacks", 0, "N",
	 "distinct stacks that the kernel has room for (default " CLI_NUMBER(
		 SESSION_MAX_STACKS_DEFAULT) ", some 600 bytes each); samples whose stack finds "
					     "no room are counted and reported",
	 .take = take_max_stacks},
	{"max-processes", 0, "N",
	 "processes, Python or not, that can be followed at the same time (default " CLI_NUMBER(
		 SESSION_MAX_PROCESSES_DEFAULT) ", some 500 bytes each, with --native 600)",
	 .take = take_max_processes},
	{"max-memory", 0, "MIB",
	 "memory of pybpf and its maps in the kernel together (default " CLI_NUMBER(
		 SESSION_MAX_MEMORY_DEFAULT) "); when it is used up, samples with a new "
					     "stack are counted and reported",
	 .take = take_max_memory},
	{"without-kernel-feature", 0, "LIST",
	 "run as on a kernel without bpf_loop (before 5.17), task_regs, ancestor_cgroups or cookies (before 5.15), "
	 "task_storage, direct_reads or checked_reads (before 6.4), separated by commas",
	 .take = cli_take_text, .offset = offsetof(struct cli_record_options, session.disabled_features)},
	{0},
};

static const struct cli_option other_options[] = {
	CLI_OPTION_HELP,
	{"version", 'V', NULL, "print the version; with -v, those of the libraries, too", .take = cli_take_flag,
	 .offset = offsetof(struct cli_record_options, version)},
	{0},
};

static const struct cli_example examples[] = {
	{"sudo pybpf -p 1234 -d 30", "process 1234 for 30 s: a table, or folded stacks for `> FILE` and programs"},
	{"sudo pybpf -p 1234", "until Ctrl-C"},
	{"sudo pybpf -p 1234 -d 30 -o profile.html", "a report to look at in a browser"},
	{"sudo pybpf -p 1234 --children -d 30 -f text", "a service: each worker's share first"},
	{"sudo pybpf -p 1234 -d 30 -f text --by=line", "the hottest lines"},
	{"sudo pybpf -p 1234 -d 30 -f text --by=expression", "which calls within lines are hot"},
	{"sudo pybpf -p 1234 -d 30 --threads", "each thread on its own"},
	{"sudo pybpf -p 1234 -d 1 --mode=wall --idle -t", "what each thread of a hung process does"},
	{"sudo pybpf --all -d 30", "every Python process of the machine, each under its name"},
	{"sudo pybpf --container web -d 30", "every Python process in a container"},
	{"sudo pybpf -o app.folded -- python3 app.py", "start a program, sample it and its children to its end"},
	{"sudo pybpf --as caller -- python3 app.py", "the same, run as you, not as root"},
	{"sudo pybpf --all -d 30 -o monday.pybpf", "everything, saved: `pybpf report` converts it to any format"},
	{0},
};

/* Has each process told with its container where several containers may be meant, unless --merge or --by says other. */
static void name_containers(struct cli_record_options *r)
{
	if (discovery_filter_means_containers(&r->filter) && !r->session.merge &&
	    r->session.roots & PROFILE_ROOT_BY_COUNT)
		r->session.roots |= PROFILE_ROOT_CONTAINER;
}

/* Turns on the data that the output format needs. */
static void follow_needs(struct cli_record_options *r)
{
	unsigned needs = r->output.format->needs;
	bool shows_expressions = r->output.options.by_expression && r->output.format->rows;

	/* Shares of imports are of the threads that import. */
	if (needs & OUTPUT_THREADS || r->output.options.by_import)
		r->session.threads = true;
	r->session.containers = needs & OUTPUT_THREADS || r->session.roots & PROFILE_ROOT_CONTAINER;
	r->session.parents = (needs & OUTPUT_THREADS || r->session.roots & PROFILE_ROOT_PARENTS) && !r->session.merge;
	r->session.times = r->session.mode != SESSION_GIL && !r->event.memory &&
			   (r->timestamps || (needs & (OUTPUT_TIMES | OUTPUT_KEEPS) && !r->no_timestamps));
	r->edit.fold_imports = r->output.format->for_people && !r->importlib && !r->output.options.by_import;
	r->edit.fold_idle = r->output.format->rows && r->session.mode != SESSION_CPU && !r->session.idle_threads;
	if (r->session.mode == SESSION_GIL)
		r->session.idle_threads = true;
	if (r->session.tasks && !r->session.loop_block_ns)
		r->session.loop_block_ns = ASYNC_BLOCK_DEFAULT_NS;
	r->session.sources = (needs & OUTPUT_SOURCES || shows_expressions) && !r->no_source && !r->edit.anonymize;
	r->session.own_paths = &r->edit.own_paths;
	if (r->output.options.by_expression)
		r->session.lines = PYSYM_EXPRESSIONS;
}

static int parse(struct cli_record_options *r, int argc, char **argv, bool *helped)
{
	const struct cli_option_group groups[] = {
		{"Which processes", cli_select_options, &r->filter},
		{"Filters on processes (may be repeated)", cli_select_among_options, &r->filter},
		{"The command", command_options, r},
		{"How to sample", cli_record_sampling_options, r},
		{"Output", cli_output_url_options, &r->output},
		{NULL, cli_output_format_options, &r->output},
		{NULL, cli_receiver_options, &r->output.receiver},
		{NULL, output_options, r},
		{NULL, cli_host_options, &r->session},
		{NULL, cli_focus_options, &r->edit},
		{NULL, cli_own_options, &r->edit},
		{"Messages", message_options, r},
		{"Limits", limit_options, r},
		{"Other", other_options, r},
		{0},
	};
	const struct cli_options command = {
		.command = "pybpf record",
		.about = "pybpf record, or pybpf alone, shows where Python processes spend their time, without "
			 "stopping or "
			 "changing them.",
		.examples = examples,
		.usage = "  pybpf [record] [options] -p PID[,PID...] | --all\n"
			 "  pybpf [record] [options] --container NAME | --cgroup PATH\n"
			 "  pybpf [record] [options] -- COMMAND [ARGUMENT...]\n"
			 "  pybpf --help lists the other commands\n",
		.groups = groups,
		.notes =
			"In folded stacks a frame is `qualname (package/module.py:LINE)`; in names and paths a "
			"backslash is written \\\\, a semicolon \\x3b, and what is not plain text (control characters, "
			"marks that turn the direction of writing, characters without width, bytes that are not "
			"UTF-8) \\xNN.\n"
			"Exit status: 0 done, 1 failed, 2 wrong command line; of `-- COMMAND`, the command's own (127 "
			"not found, 126 not executable, 128 + N ended by signal N).",
		.other_tools = cli_other_tools,
		.command_follows = true,
	};

	return cli_options_parse(&command, argc, argv, helped);
}

#define CHOSEN(field) CLI_CHOSEN(struct cli_record_options, field)
#define MODE(which)   CLI_CHOSEN_AS(struct cli_record_options, session.mode, which)

static const struct cli_choice choices[] = {
	{"command", CHOSEN(command)},
	/* The session has this mode with --mode=exception and --mode=memory, too. */
	{"--mode=cpu", MODE(SESSION_CPU)},
	{"--mode=wall", MODE(SESSION_WALL)},
	{"--mode=offcpu", MODE(SESSION_OFFCPU)},
	{"--mode=gil", MODE(SESSION_GIL)},
	{"--mode=memory", CHOSEN(event.memory)},
	{"-e", CHOSEN(event.name)},
	{"--period", CHOSEN(event.period)},
	{"-F", CHOSEN(freq_given)},
	{"--no-children", CHOSEN(no_children)},
	{"--as", CHOSEN(as)},
	{"--native", CHOSEN(session.native)},
	{"--debuginfod", CHOSEN(debuginfod)},
	{"--kernel", CHOSEN(session.kernel_stacks)},
	{"--merge", CHOSEN(session.merge)},
	{"--cmdline", CHOSEN(session.cmdline)},
	{"--threads", CHOSEN(session.threads)},
	{"--process-tree", CLI_CHOSEN_BITS(struct cli_record_options, session.roots, PROFILE_ROOT_PARENTS)},
	{"--by=state", CHOSEN(output.options.by_state)},
	{"--by=expression", CHOSEN(output.options.by_expression)},
	{"--lines", CHOSEN(session.lines)}, /* another than the current one */
	{"--idle", CHOSEN(session.idle_threads)},
	{"--wait-detail", CHOSEN(session.no_wait_detail)}, /* none */
	{"--min-block", CHOSEN(session.min_block_ns)},
	{"--wakers", CHOSEN(session.wakers)},
	{"--gil", CHOSEN(session.gil)},
	{"--gc", CHOSEN(session.gc)},
	{"--opcodes", CHOSEN(session.opcodes)},
	{"--gil-holders", CHOSEN(session.gil_holders)},
	{"--gil-pairs", CHOSEN(session.gil_pairs)},
	{"--touched", CHOSEN(session.touched)},
	{"--async", CHOSEN(session.tasks)},
	{"--async=all", CHOSEN(session.suspended)},
	{"--async-block", CHOSEN(session.loop_block_ns)},
	{"--timestamps", CHOSEN(timestamps)},
	{"--no-timestamps", CHOSEN(no_timestamps)},
	{0},
};

static const struct cli_rule rules[] = {
	{"--mode=memory", .excludes = "-F, --period",
	 .sentence = "--mode=memory has no rate: -F is about the timer, and --period about events that are counted"},
	{"--period", .needs = "-e",
	 .sentence = "--period is about events that are counted, such as -e page-faults; the timer has a rate (-F)"},
	{"--no-children", .needs = "command",
	 .sentence = "--no-children is about a command's children, and no command is given"},
	{"--as", .needs = "command", .sentence = "--as is about a command, and no command is given"},
	{"--debuginfod", .needs = "--native",
	 .sentence = "--debuginfod is about the symbols of --native, which is missing"},
	{"--merge", .excludes = "--cmdline",
	 .sentence = "--merge and --cmdline contradict each other: one name for many processes, or one for each"},
	{"--merge", .excludes = "--process-tree",
	 .sentence = "--merge and --process-tree contradict each other: one name for many processes, or who started "
		     "each"},
	{"--idle, --wait-detail, --min-block", .needs = "--mode=wall, --mode=offcpu",
	 .sentence = "--idle, --wait-detail and --min-block are about threads that wait: with --mode=wall or "
		     "--mode=offcpu"},
	{"--by=state", .needs = "--mode=wall, --mode=offcpu, --mode=gil",
	 .sentence = "--by=state is about threads that wait: with --mode=wall, offcpu or gil"},
	{"--kernel", .needs = "--mode=cpu, --mode=wall, --mode=offcpu",
	 .sentence = "--kernel is not for waits for the GIL: with --mode=cpu, --mode=wall or --mode=offcpu"},
	{"--wakers", .needs = "--mode=wall, --mode=offcpu, --mode=gil",
	 .sentence = "--wakers is about threads that wait: with --mode=wall, offcpu or gil"},
	{"--wakers", .excludes = "--gil-holders",
	 .sentence = "--wakers and --gil-holders exclude each other: a holder's stack has no wait"},
	{"--gil, --gc, --opcodes", .needs = "--mode=cpu",
	 .sentence = "--gil, --gc and --opcodes are about threads that run on a CPU: with --mode=cpu or "
		     "--mode=exception"},
	{"--gil, --gc", .excludes = "--mode=memory",
	 .sentence = "--gil and --gc are about threads that run on a CPU, and --mode=memory is about memory"},
	{"--touched", .needs = "--mode=memory", .sentence = "--touched is about memory: with --mode=memory"},
	{"--gil-holders, --gil-pairs", .needs = "--mode=gil",
	 .sentence = "--gil-holders and --gil-pairs are about the GIL: with --mode=gil"},
	{"--gil-pairs", .excludes = "--gil-holders, --wakers",
	 .sentence = "--gil-pairs, --gil-holders and --wakers exclude each other: each puts something else at a wait's "
		     "end"},
	{"--gil-holders", .excludes = "--threads",
	 .sentence = "--gil-holders and --threads exclude each other: a holder's stack is read in the thread that "
		     "waits, which does not know the other's TID"},
	{"--async=all", .needs = "--mode=wall, --mode=offcpu",
	 .sentence = "--async=all gives suspended tasks their time, which is no time on a CPU: with --mode=wall or "
		     "--mode=offcpu"},
	{"--async-block", .needs = "--async",
	 .sentence = "--async-block is about callbacks of event loops: with --async"},
	{"--timestamps", .excludes = "--mode=gil, --mode=memory",
	 .sentence = "--timestamps keeps the times of samples and waits: not with --mode=gil or --mode=memory"},
	{"--by=expression", .excludes = "--lines",
	 .sentence = "--by=expression is about the lines being executed: without --lines"},
	{"--timestamps", .excludes = "--no-timestamps",
	 .sentence = "--timestamps and --no-timestamps contradict each other"},
	{0},
};

const struct cli_rules cli_record_rules = {"record", sizeof(struct cli_record_options), choices, rules};

int cli_record_parse(struct cli_record_options *r, int argc, char **argv, bool *done)
{
	int err = parse(r, argc, argv, done);

	if (err || *done)
		return err;
	if (r->version) {
		cli_version(r->verbose);
		*done = true;
		return 0;
	}
	if (optind < argc) {
		if (strcmp(argv[optind - 1], "--") != 0)
			return cli_refuse_operand(argc, argv, optind);
		r->command = argv + optind;
	}
	err = cli_select_check(&r->filter, r->command ? r->command[0] : NULL);
	if (err)
		return err;
	err = cli_rules_check(&cli_record_rules, r);
	if (err)
		return err;
	err = cli_choose_event(&r->session, &r->event, r->freq_given,
			       r->filter.pids.count == 1 ? r->filter.pids.items[0] : 0);
	if (err)
		return err;
	err = cli_output_choose(&r->output, isatty(STDOUT_FILENO) ? "text" : "folded");
	if (err)
		return err;
	name_containers(r);
	follow_needs(r);
	return cli_filter_check(&r->edit);
}

// SPDX-License-Identifier: Apache-2.0
/* The option tables, help and examples of record, and the checks of its command line. */
#include "cli/record_options.h"

#include <getopt.h>
#include <stddef.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/options.h"
#include "cli/select.h"
#include "base/host.h"
#include "base/log.h"

enum by {
	BY_PROCESS,
	BY_CONTAINER,
	BY_LINE,
};

static const struct cli_word by_words[] = {
	{"process", BY_PROCESS},
	{"container", BY_CONTAINER},
	{"line", BY_LINE},
	{0},
};

static const struct cli_word event_words[] = {
	{"auto", KERNEL_SOURCE_AUTO},
	{"cycles", KERNEL_SOURCE_CYCLES},
	{"cpu-clock", KERNEL_SOURCE_CPU_CLOCK},
	{0},
};

static const struct cli_word lines_words[] = {
	{"current", PYSYM_LINES_CURRENT},
	{"first", PYSYM_LINES_FIRST},
	{"none", PYSYM_LINES_NONE},
	{0},
};

static int take_duration(const struct cli_option *option, const char *value, void *target)
{
	struct cli_record_options *r = target;

	if (cli_number(value, 0.001, 1e9, &r->duration_s))
		return cli_usage("%s %s: not a duration; it takes seconds above 0, such as 30 or 0.5",
				 cli_option_spelling(option), value);
	return 0;
}

static int take_freq(const struct cli_option *option, const char *value, void *target)
{
	struct cli_record_options *r = target;
	int64_t limit = host_max_sample_rate();
	double freq;

	if (cli_number(value, 1, UINT32_MAX, &freq) || freq != (unsigned)freq)
		return cli_usage("%s %s: not a sampling rate; it takes a whole number of Hz from 1 up",
				 cli_option_spelling(option), value);
	if ((int64_t)freq > limit)
		return cli_usage("%s %s: above this kernel's limit of %lld Hz; ask for less, or raise it with "
				 "`sysctl " HOST_MAX_RATE_SYSCTL "=%s`",
				 cli_option_spelling(option), value, (long long)limit, value);
	r->session.freq = (unsigned)freq;
	return 0;
}

static int take_by(const struct cli_option *option, const char *value, void *target)
{
	struct cli_record_options *r = target;
	unsigned threads = r->session.roots & PROFILE_ROOT_THREAD;
	int by, code = cli_option_word(option, value, &by);

	if (code)
		return code;
	if (by == BY_LINE)
		r->output.options.by_line = true;
	else
		r->session.roots =
			PROFILE_ROOT_PROCESS | threads | (by == BY_CONTAINER ? (unsigned)PROFILE_ROOT_CONTAINER : 0);
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
	uint64_t mib = 0;
	int code = cli_option_whole(option, value, SESSION_MAX_MEMORY_LEAST, SESSION_MAX_MEMORY_MOST, &mib);

	r->session.max_memory = mib << 20;
	return code;
}

static const struct cli_option command_options[] = {
	{"no-children", 0, NULL, "do not sample the command's children", .take = cli_take_flag,
	 .offset = offsetof(struct cli_record_options, no_children)},
	{"as", 0, "USER",
	 "run the command as USER, with that user's groups, HOME and PATH, and without capabilities unless USER is "
	 "root; caller: the user who called sudo; without this option it has the rights of pybpf: root's under sudo",
	 .take = cli_take_text, .offset = offsetof(struct cli_record_options, as)},
	{0},
};

static const struct cli_option sampling_options[] = {
	{"duration", 'd', "SECONDS", "stop after so many seconds (default: at Ctrl-C, or when the processes end)",
	 .take = take_duration},
	{"freq", 'F', "HZ",
	 "samples per second and CPU, from 1 to the kernel's limit (default " CLI_NUMBER(SESSION_FREQ_DEFAULT) ")",
	 .take = take_freq},
	{"rate", 'r', "HZ", .take = take_freq},
	{"event", 'e', "EVENT", "cycles, cpu-clock, or auto: cycles where the CPU can count them (default)",
	 .take = cli_take_word, .offset = offsetof(struct cli_record_options, session.source), .words = event_words},
	{0},
};

static const struct cli_option output_options[] = {
	{"by", 0, "WHAT",
	 "process: its name and PID at the root of each stack (default where there can be several); container: the "
	 "container's name before that; line: lines in place of functions, in text and svg",
	 .take = take_by, .words = by_words},
	{"merge", 0, NULL, "put processes of the same program together, without PID", .take = cli_take_flag,
	 .offset = offsetof(struct cli_record_options, session.merge)},
	{"cmdline", 0, NULL, "show a process's command line in place of its name", .take = cli_take_flag,
	 .offset = offsetof(struct cli_record_options, session.cmdline)},
	{"threads", 0, NULL, "put each thread's name and TID under the root", .take = take_threads},
	{"lines", 0, "WHICH", "current: the line being executed (default); first: the function's first line; none",
	 .take = cli_take_word, .offset = offsetof(struct cli_record_options, session.lines), .words = lines_words},
	{"full-filenames", 0, NULL, "show whole paths instead of their importable part", .take = cli_take_flag,
	 .offset = offsetof(struct cli_record_options, session.full_filenames)},
	{"timestamps", 0, NULL,
	 "keep the time of each sample, as html, speedscope and the other timelines do by default; it takes a record "
	 "of the kernel and 64 bytes of memory per sample",
	 .take = cli_take_flag, .offset = offsetof(struct cli_record_options, timestamps)},
	{"no-timestamps", 0, NULL, "do not keep the time of each sample, whatever the format", .take = cli_take_flag,
	 .offset = offsetof(struct cli_record_options, no_timestamps)},
	{"no-source", 0, NULL,
	 "leave out source text; html and pybpf files hold that of the files with the most samples",
	 .take = cli_take_flag, .offset = offsetof(struct cli_record_options, no_source)},
	{"anonymize", 0, NULL,
	 "hashes in place of names of functions, files, processes and containers, and no source text",
	 .take = cli_take_flag, .offset = offsetof(struct cli_record_options, anonymize)},
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
	{"json-stats", 0, "FILE", "write the account as JSON to FILE, which is another file than that of -o",
	 .take = cli_take_text, .offset = offsetof(struct cli_record_options, json_path)},
	{0},
};

static const struct cli_option limit_options[] = {
	{"max-stacks", 0, "N",
	 "distinct stacks that the kernel has room for (default " CLI_NUMBER(
		 SESSION_MAX_STACKS_DEFAULT) ", some 600 bytes each); samples whose stack finds "
					     "no room are counted and reported",
	 .take = take_max_stacks},
	{"max-processes", 0, "N",
	 "processes that live at the same time, Python or not, that the kernel has room for (default " CLI_NUMBER(
		 SESSION_MAX_PROCESSES_DEFAULT) ", some 130 "
						"bytes each)",
	 .take = take_max_processes},
	{"max-memory", 0, "MIB",
	 "memory of pybpf and its maps in the kernel together (default " CLI_NUMBER(
		 SESSION_MAX_MEMORY_DEFAULT) "); when it is used up, samples with a new "
					     "stack are counted and reported",
	 .take = take_max_memory},
	{"without-kernel-feature", 0, "LIST",
	 "run as on a kernel without bpf_loop (before 5.17), task_regs (before 5.15), task_storage, direct_reads or "
	 "checked_reads (before 6.4), separated by commas",
	 .take = cli_take_text, .offset = offsetof(struct cli_record_options, session.without)},
	{0},
};

static const struct cli_option other_options[] = {
	CLI_OPTION_HELP,
	{"version", 'V', NULL, "print the version; with -v, those of the libraries, too", .take = cli_take_flag,
	 .offset = offsetof(struct cli_record_options, version)},
	{0},
};

static const struct cli_example examples[] = {
	{"sudo pybpf -p 1234 -d 30", "process 1234 for 30 s, folded stacks on stdout"},
	{"sudo pybpf -p 1234", "until Ctrl-C"},
	{"sudo pybpf -p 1234 -d 30 -o profile.html", "a report to look at in a browser"},
	{"sudo pybpf -p 1234 -d 30 -f text", "a table of the hottest functions"},
	{"sudo pybpf -p 1234 -d 30 --threads", "each thread on its own"},
	{"sudo pybpf --all -d 30", "every Python process of the machine, each under its name"},
	{"sudo pybpf --container web -d 30", "every Python process in a container"},
	{"sudo pybpf -o app.folded -- python3 app.py", "start a program, sample it and its children to its end"},
	{"sudo pybpf --as caller -- python3 app.py", "the same, run as you, not as root"},
	{"sudo pybpf --all -d 30 -o monday.pybpf", "everything, saved"},
	{"pybpf report monday.pybpf -o monday.html", "any format of a saved profile, filtered"},
	{"pybpf diff monday.pybpf tuesday.pybpf", "what grew or shrank beyond the noise"},
	{"sudo pybpf ps", "the Python processes of the machine"},
	{"sudo pybpf doctor", "what this host offers, and what to change"},
	{0},
};

/* Turns on the data that the output format needs. */
static void follow_needs(struct cli_record_options *r)
{
	unsigned needs = r->output.format->needs;

	if (needs & OUTPUT_THREADS)
		r->session.threads = true;
	r->session.containers = needs & OUTPUT_THREADS || r->session.roots & PROFILE_ROOT_CONTAINER;
	r->session.times = r->timestamps || (needs & OUTPUT_TIMES && !r->no_timestamps);
	r->session.sources = needs & OUTPUT_SOURCES && !r->no_source && !r->anonymize;
}

static int parse(struct cli_record_options *r, int argc, char **argv, bool *helped)
{
	const struct cli_option_group groups[] = {
		{"Which processes", cli_select_options, &r->filter},
		{"Only some of those, or of all (may be repeated)", cli_select_among_options, &r->filter},
		{"The command", command_options, r},
		{"How to sample", sampling_options, r},
		{"Output", cli_output_path_options, &r->output},
		{NULL, cli_output_format_options, &r->output},
		{NULL, output_options, r},
		{"Messages", message_options, r},
		{"Limits", limit_options, r},
		{"Other", other_options, r},
		{0},
	};
	const struct cli_options command = {
		.command = "pybpf",
		.about = "pybpf shows where Python processes spend their time, without stopping or changing them.",
		.examples = examples,
		.usage = "  pybpf [record] [options] -p PID[,PID...] | --all\n"
			 "  pybpf [record] [options] --container NAME | --cgroup PATH\n"
			 "  pybpf [record] [options] -- COMMAND [ARGUMENT...]\n"
			 "  pybpf report [options] FILE.pybpf...            see `pybpf report --help`\n"
			 "  pybpf diff [options] BEFORE.pybpf AFTER.pybpf   see `pybpf diff --help`\n"
			 "  pybpf ps [options]                              see `pybpf ps --help`\n"
			 "  pybpf doctor                                    see `pybpf doctor --help`\n",
		.groups = groups,
		.notes =
			"In folded stacks a frame is `qualname (package/module.py:LINE)`; in names and paths a "
			"backslash is written \\\\, a semicolon \\x3b, and what is not plain text (control characters, "
			"marks that turn the direction of writing, characters without width, bytes that are not "
			"UTF-8) \\xNN.\n"
			"Exit status: 0 done, 1 failed, 2 wrong command line; of `-- COMMAND`, the command's own (127 "
			"not found, 126 not executable, 128 + N ended by signal N).",
		.command_follows = true,
	};

	return cli_options_parse(&command, argc, argv, helped);
}

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
			return cli_usage("%s: no such command or option; a program to start comes after `--`, see "
					 "`pybpf --help`",
					 argv[optind]);
		r->command = argv + optind;
	}
	err = cli_select_check(&r->filter, r->command != NULL);
	if (err)
		return err;
	if (r->no_children && !r->command)
		return cli_usage("--no-children is about a command's children, and no command is given");
	if (r->as && !r->command)
		return cli_usage("--as is about a command, and no command is given");
	if (r->session.merge && r->session.cmdline)
		return cli_usage(
			"--merge and --cmdline contradict each other: one name for many processes, or one for each");
	if (r->timestamps && r->no_timestamps)
		return cli_usage("--timestamps and --no-timestamps contradict each other");
	err = cli_output_choose(&r->output, "folded");
	if (err)
		return err;
	follow_needs(r);
	return 0;
}

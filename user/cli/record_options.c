// SPDX-License-Identifier: Apache-2.0
#include "cli/record_options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/select.h"
#include "base/host.h"
#include "base/log.h"

static const char help_head[] =
	"pybpf shows where Python processes spend their time, without stopping or changing them.\n"
	"\n"
	"Examples:\n"
	"  sudo pybpf -p 1234 -d 30                    process 1234 for 30 s, folded stacks on stdout\n"
	"  sudo pybpf -p 1234                          until Ctrl-C\n"
	"  sudo pybpf -p 1234 -d 30 -o profile.html    a report to look at in a browser\n"
	"  sudo pybpf -p 1234 -d 30 -f text            a table of the hottest functions\n"
	"  sudo pybpf -p 1234 -d 30 --threads          each thread on its own\n"
	"  sudo pybpf --all -d 30                      every Python process of the machine, each under its name\n"
	"  sudo pybpf --container web -d 30            every Python process in a container\n"
	"  sudo pybpf -o app.folded -- python3 app.py  start a program, sample it and its children to its end\n"
	"  sudo pybpf --as caller -- python3 app.py    the same, run as you, not as root\n"
	"  sudo pybpf --all -d 30 -o monday.pybpf      everything, saved\n"
	"  pybpf report monday.pybpf -o monday.html    any format of what was saved, merged and filtered\n"
	"  pybpf diff monday.pybpf tuesday.pybpf       what grew or shrank beyond the noise\n"
	"  sudo pybpf ps                               the Python processes that there are\n"
	"  sudo pybpf doctor                           what this host offers, and what to change\n"
	"\n"
	"Usage:\n"
	"  pybpf [record] [options] -p PID[,PID...] | --all | --container NAME | --cgroup PATH\n"
	"  pybpf [record] [options] -- COMMAND [ARGUMENT...]\n"
	"  pybpf report [options] FILE.pybpf...        see `pybpf report --help`\n"
	"  pybpf diff [options] BEFORE.pybpf AFTER.pybpf\n"
	"  pybpf ps | doctor\n"
	"\n";

static const char help_middle[] =
	"      --no-children       of a command: not its children\n"
	"      --as USER           run the command as USER, with that user's groups, HOME and PATH, and without "
	"capabilities\n"
	"                          unless USER is root; caller: who called sudo. Without it, it runs as pybpf does: as "
	"root\n"
	"\n"
	"How to sample:\n"
	"  -d, --duration SECONDS  stop after so long (default: at Ctrl-C, or when the processes end)\n"
	"  -F, --freq HZ           samples per second and CPU, 1 to the kernel's limit (default 99);\n"
	"  -r, --rate HZ           the same\n"
	"  -e, --event EVENT       cycles, cpu-clock, or auto: cycles where the CPU can count them (default)\n"
	"\n"
	"What to print:\n"
	"  -o, --output FILE       write there, when all is done; the suffix chooses the format; a new\n"
	"                          file has mode 0600, one that was there keeps its owner and mode\n"
	"  -f, --format FORMAT     the format, whatever the suffix:\n";

static const char help_tail[] =
	"      --by WHAT           process: its name and PID at the root of each stack (default where there can be\n"
	"                          several); container: the container's name before that;\n"
	"                          line: lines in place of functions, in text and svg\n"
	"      --merge             processes of the same program together, without PID\n"
	"      --cmdline           a process is called by its command line\n"
	"      --threads           put each thread's name and TID under the root\n"
	"      --lines WHICH       current: the line being executed (default); first: the function's first; none\n"
	"      --full-filenames    whole paths instead of their importable part\n"
	"      --timestamps        keep the time of each sample, as html, speedscope and the other timelines do by\n"
	"                          themselves: 64 bytes of memory each, and a record beside its being counted;\n"
	"                          with --no-timestamps those do without\n"
	"      --no-source         no source text; html and pybpf files hold that of the hottest files\n"
	"      --anonymize         hashes in place of names of functions, files, processes and containers, and no "
	"source\n"
	"\n"
	"What to tell:\n"
	"  -v, --verbose           what was found: Python, runtime, offsets; twice: libbpf and the verifier, too\n"
	"  -q, --quiet             no account at the end, no progress line\n"
	"      --stats             what the run cost, in the account\n"
	"      --json-stats FILE   the account as JSON, in another file\n"
	"\n"
	"Limits:\n"
	"      --max-stacks N      room for distinct stacks in the kernel (default 32768, some 600 bytes each);\n"
	"                          samples whose stack finds none are counted and reported\n"
	"      --max-processes N   room for processes that live at the same time, Python or not (default 16384, some\n"
	"                          130 bytes each)\n"
	"      --max-memory MIB    pybpf and its maps in the kernel together (default 256); when it is used up, "
	"stacks\n"
	"                          that are new from then on are counted and reported\n"
	"      --without-kernel-feature LIST\n"
	"                          do as on a kernel without bpf_loop (before 5.17), task_regs (before 5.15),\n"
	"                          task_storage, direct_reads or checked_reads (before 6.4)\n"
	"\n"
	"  -h, --help              this text\n"
	"  -V, --version           with -v: those of the libraries, too\n"
	"\n"
	"In folded stacks a frame is `qualname (package/module.py:LINE)`; in names and paths a backslash is written\n"
	"\\\\, a semicolon \\x3b, and what is not plain text (control characters, marks that turn the direction of\n"
	"writing, characters that take no room, bytes that are no UTF-8) \\xNN.\n"
	"Exit status: 0 done, 1 failed, 2 wrong command line; of `-- COMMAND`, the command's own (127 not found,\n"
	"126 not executable, 128 + N ended by signal N).\n";

enum {
	OPT_THREADS = 256,
	OPT_LINES,
	OPT_FULL_FILENAMES,
	OPT_STATS,
	OPT_JSON_STATS,
	OPT_MAX_STACKS,
	OPT_WITHOUT,
	OPT_NO_CHILDREN,
	OPT_AS,
	OPT_BY,
	OPT_MERGE,
	OPT_CMDLINE,
	OPT_MAX_PROCESSES,
	OPT_MAX_MEMORY,
	OPT_TIMESTAMPS,
	OPT_NO_TIMESTAMPS,
	OPT_NO_SOURCE,
	OPT_ANONYMIZE,
};

static const struct option long_options[] = {
	CLI_SELECT_OPTIONS,
	{"duration", required_argument, NULL, 'd'},
	{"freq", required_argument, NULL, 'F'},
	{"rate", required_argument, NULL, 'r'},
	{"event", required_argument, NULL, 'e'},
	{"output", required_argument, NULL, 'o'},
	{"format", required_argument, NULL, 'f'},
	{"threads", no_argument, NULL, OPT_THREADS},
	{"lines", required_argument, NULL, OPT_LINES},
	{"full-filenames", no_argument, NULL, OPT_FULL_FILENAMES},
	{"verbose", no_argument, NULL, 'v'},
	{"quiet", no_argument, NULL, 'q'},
	{"stats", no_argument, NULL, OPT_STATS},
	{"json-stats", required_argument, NULL, OPT_JSON_STATS},
	{"max-stacks", required_argument, NULL, OPT_MAX_STACKS},
	{"without-kernel-feature", required_argument, NULL, OPT_WITHOUT},
	{"no-children", no_argument, NULL, OPT_NO_CHILDREN},
	{"as", required_argument, NULL, OPT_AS},
	{"by", required_argument, NULL, OPT_BY},
	{"merge", no_argument, NULL, OPT_MERGE},
	{"cmdline", no_argument, NULL, OPT_CMDLINE},
	{"max-processes", required_argument, NULL, OPT_MAX_PROCESSES},
	{"max-memory", required_argument, NULL, OPT_MAX_MEMORY},
	{"timestamps", no_argument, NULL, OPT_TIMESTAMPS},
	{"no-timestamps", no_argument, NULL, OPT_NO_TIMESTAMPS},
	{"no-source", no_argument, NULL, OPT_NO_SOURCE},
	{"anonymize", no_argument, NULL, OPT_ANONYMIZE},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{0},
};

static void print_help(void)
{
	fputs(help_head, stdout);
	fputs(cli_select_help, stdout);
	fputs(help_middle, stdout);
	cli_output_help();
	fputs(help_tail, stdout);
}

static int parse_freq(struct cli_record_options *r, const char *option, const char *text)
{
	int64_t limit = host_max_sample_rate();
	double freq;

	if (cli_number(text, 1, UINT32_MAX, &freq) || freq != (unsigned)freq)
		return cli_usage("%s %s: not a sampling rate; it takes a whole number of Hz from 1 up", option, text);
	if ((int64_t)freq > limit)
		return cli_usage("%s %s: above this kernel's limit of %lld Hz; ask for less, or raise it with "
				 "`sysctl " HOST_MAX_RATE_SYSCTL "=%s`",
				 option, text, (long long)limit, text);
	r->session.freq = (unsigned)freq;
	return 0;
}

static int parse_lines(struct cli_record_options *r, const char *text)
{
	if (strcmp(text, "current") == 0)
		r->session.lines = PYSYM_LINES_CURRENT;
	else if (strcmp(text, "first") == 0)
		r->session.lines = PYSYM_LINES_FIRST;
	else if (strcmp(text, "none") == 0)
		r->session.lines = PYSYM_LINES_NONE;
	else
		return cli_usage("--lines %s: it takes current, first or none", text);
	return 0;
}

static int parse_event(struct cli_record_options *r, const char *text)
{
	if (strcmp(text, "auto") == 0)
		r->session.source = KERNEL_SOURCE_AUTO;
	else if (strcmp(text, "cycles") == 0)
		r->session.source = KERNEL_SOURCE_CYCLES;
	else if (strcmp(text, "cpu-clock") == 0)
		r->session.source = KERNEL_SOURCE_CPU_CLOCK;
	else
		return cli_usage("-e %s: it takes auto, cycles or cpu-clock", text);
	return 0;
}

static int parse_by(struct cli_record_options *r, const char *text)
{
	unsigned threads = r->session.roots & PROFILE_ROOT_THREAD;

	if (strcmp(text, "process") == 0)
		r->session.roots = PROFILE_ROOT_PROCESS | threads;
	else if (strcmp(text, "container") == 0)
		r->session.roots = PROFILE_ROOT_CONTAINER | PROFILE_ROOT_PROCESS | threads;
	else if (strcmp(text, "line") == 0)
		r->output.options.by_line = true;
	else
		return cli_usage("--by %s: it takes process, container or line", text);
	return 0;
}

/* A whole number from least to most. */
static int parse_count(const char *option, const char *text, uint64_t least, uint64_t most, uint64_t *out)
{
	double number;

	if (cli_number(text, (double)least, (double)most, &number) || number != (double)(uint64_t)number)
		return cli_usage("%s %s: it takes a whole number from %llu to %llu", option, text,
				 (unsigned long long)least, (unsigned long long)most);
	*out = (uint64_t)number;
	return 0;
}

static int parse_limit(struct cli_record_options *r, int option, const char *arg)
{
	uint64_t number = 0;
	int err;

	if (option == OPT_MAX_STACKS) {
		err = parse_count("--max-stacks", arg, 1, SESSION_MAX_STACKS_LIMIT, &number);
		r->session.max_stacks = (uint32_t)number;
	} else if (option == OPT_MAX_PROCESSES) {
		err = parse_count("--max-processes", arg, 1, SESSION_MAX_PROCESSES_LIMIT, &number);
		r->session.max_processes = (uint32_t)number;
	} else {
		err = parse_count("--max-memory", arg, SESSION_MAX_MEMORY_LEAST, SESSION_MAX_MEMORY_MOST, &number);
		r->session.max_memory = number << 20;
	}
	return err;
}

static int parse_option(struct cli_record_options *r, int option, const char *arg)
{
	bool taken;
	int err = cli_select_option(&r->filter, option, arg, &taken);

	if (err || taken)
		return err;

	switch (option) {
	case 'd':
		if (cli_number(arg, 0.001, 1e9, &r->duration_s))
			return cli_usage("-d %s: not a duration; it takes seconds above 0, such as 30 or 0.5", arg);
		return 0;
	case 'F':
		return parse_freq(r, "-F", arg);
	case 'r':
		return parse_freq(r, "-r", arg);
	case 'e':
		return parse_event(r, arg);
	case 'o':
		r->output.path = arg;
		return 0;
	case 'f':
		return cli_output_format(&r->output, arg);
	case OPT_THREADS:
		r->session.threads = true;
		r->session.roots |= PROFILE_ROOT_THREAD;
		return 0;
	case OPT_LINES:
		return parse_lines(r, arg);
	case OPT_FULL_FILENAMES:
		r->session.full_filenames = true;
		return 0;
	case 'v':
		r->verbose++;
		return 0;
	case 'q':
		r->quiet = true;
		return 0;
	case OPT_STATS:
		r->stats = true;
		return 0;
	case OPT_JSON_STATS:
		r->json_path = arg;
		return 0;
	case OPT_NO_CHILDREN:
		r->no_children = true;
		return 0;
	case OPT_AS:
		r->as = arg;
		return 0;
	case OPT_BY:
		return parse_by(r, arg);
	case OPT_MERGE:
		r->session.merge = true;
		return 0;
	case OPT_CMDLINE:
		r->session.cmdline = true;
		return 0;
	case OPT_TIMESTAMPS:
		r->timestamps = true;
		return 0;
	case OPT_NO_TIMESTAMPS:
		r->no_timestamps = true;
		return 0;
	case OPT_ANONYMIZE:
		r->anonymize = true;
		return 0;
	case OPT_NO_SOURCE:
		r->no_source = true;
		return 0;
	case OPT_MAX_STACKS:
	case OPT_MAX_PROCESSES:
	case OPT_MAX_MEMORY:
		return parse_limit(r, option, arg);
	case OPT_WITHOUT:
		r->session.without = arg;
		return 0;
	default:
		return CLI_USAGE;
	}
}

/* The format tells what has to be collected for it. */
static void follow_needs(struct cli_record_options *r)
{
	unsigned needs = r->output.format->needs;

	if (needs & OUTPUT_THREADS)
		r->session.threads = true;
	r->session.containers = needs & OUTPUT_THREADS || r->session.roots & PROFILE_ROOT_CONTAINER;
	r->session.times = r->timestamps || (needs & OUTPUT_TIMES && !r->no_timestamps);
	r->session.sources = needs & OUTPUT_SOURCES && !r->no_source && !r->anonymize;
}

int cli_record_parse(struct cli_record_options *r, int argc, char **argv, bool *done)
{
	bool version = false;
	int option, err;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "+:" CLI_SELECT_SHORT "d:F:r:e:o:f:vqhV", long_options, NULL)) != -1) {
		if (option == 'h') {
			print_help();
			*done = true;
			return 0;
		}
		if (option == 'V') {
			version = true;
			continue;
		}
		if (option == ':')
			return cli_usage("%s needs a value; see `pybpf --help`", argv[optind - 1]);
		if (option == '?')
			return cli_usage("unknown option %s; see `pybpf --help`", argv[optind - 1]);
		err = parse_option(r, option, optarg);
		if (err)
			return err;
	}
	if (version) {
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

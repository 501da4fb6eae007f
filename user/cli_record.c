// SPDX-License-Identifier: Apache-2.0
/* pybpf [record]: options in, profile out. */
#include "cli.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host.h"
#include "log.h"
#include "output.h"
#include "session.h"
#include "session_account.h"
#include "session_command.h"
#include "session_run.h"

#define DEFAULT_FREQ 99

static const char help_head[] =
	"pybpf shows where a Python process spends its time, without stopping or changing it.\n"
	"\n"
	"Examples:\n"
	"  sudo pybpf -p 1234 -d 30                    process 1234 for 30 s, folded stacks on stdout\n"
	"  sudo pybpf -p 1234                          until Ctrl-C\n"
	"  sudo pybpf -p 1234 -d 30 -o profile.folded  into a file: for flamegraph.pl, speedscope, inferno\n"
	"  sudo pybpf -p 1234 -d 30 -f text            a table of the hottest functions\n"
	"  sudo pybpf -p 1234 -d 30 --threads          each thread on its own\n"
	"  sudo pybpf -o app.folded -- python3 app.py  start a program, sample it from its beginning to its end\n"
	"  sudo pybpf doctor                           what this host offers, and what to change\n"
	"\n"
	"Usage:\n"
	"  pybpf [record] [options] -p PID\n"
	"  pybpf [record] [options] -- COMMAND [ARGUMENT...]\n"
	"  pybpf doctor\n"
	"\n"
	"What to sample:\n"
	"  -p, --pid PID           a running process\n"
	"  -d, --duration SECONDS  stop after so long (default: at Ctrl-C, or when the process ends)\n"
	"  -F, --freq HZ           samples per second and CPU, 1 to the kernel's limit (default 99);\n"
	"  -r, --rate HZ           the same\n"
	"  -e, --event EVENT       cycles, cpu-clock, or auto: cycles where the CPU can count them (default)\n"
	"\n"
	"What to print:\n"
	"  -o, --output FILE       write there, when all is done; the suffix chooses the format\n"
	"  -f, --format FORMAT     the format, whatever the suffix:\n";

static const char help_tail[] =
	"      --threads           put each thread's name and TID under the root\n"
	"      --lines WHICH       current: the line being executed (default); first: the function's first; none\n"
	"      --full-filenames    whole paths instead of their importable part\n"
	"\n"
	"What to tell:\n"
	"  -v, --verbose           what was found: Python, runtime, offsets; twice: libbpf and the verifier, too\n"
	"  -q, --quiet             no account at the end, no progress line\n"
	"      --stats             what the run cost, in the account\n"
	"      --json-stats FILE   the account as JSON\n"
	"\n"
	"Limits:\n"
	"      --max-stacks N      room for distinct stacks in the kernel (default 32768, some 600 bytes each);\n"
	"                          samples whose stack finds none are counted and reported\n"
	"      --without-kernel-feature LIST\n"
	"                          do as on a kernel without bpf_loop (before 5.17), task_regs (before 5.15),\n"
	"                          task_storage (before 5.12)\n"
	"\n"
	"  -h, --help              this text\n"
	"  -V, --version\n"
	"\n"
	"In folded stacks a frame is `qualname (package/module.py:LINE)`; in names and paths a backslash is written\n"
	"\\\\, a semicolon \\x3b, and a control character \\xNN.\n"
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
};

static const struct option long_options[] = {
	{"pid", required_argument, NULL, 'p'},
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
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{0},
};

struct record {
	struct session_options session;
	pid_t pid;
	char **command;
	double duration_s;
	const char *output_path, *json_path;
	const struct output_format *format;
	bool quiet, stats;
	int verbose;

	struct output_file output, json;
};

static void print_help(void)
{
	fputs(help_head, stdout);
	for (const struct output_format *f = output_formats(); f->name; f++)
		printf("                            %-8s %s\n", f->name, f->help);
	fputs(help_tail, stdout);
}

static int usage(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	log_vprintf(LOG_ERROR, fmt, args);
	va_end(args);
	return CLI_USAGE;
}

static const char *format_names(void)
{
	static char names[256];
	size_t at = 0;

	for (const struct output_format *f = output_formats(); f->name && at < sizeof(names); f++)
		at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s", at ? ", " : "", f->name);
	return names;
}

static int parse_pid(struct record *r, const char *text)
{
	double pid;

	if (r->pid)
		return usage("-p was given twice (%d and %s): one process at a time", r->pid, text);
	if (cli_number(text, 1, INT32_MAX, &pid) || pid != (int)pid)
		return usage("-p %s: not a process ID; it takes a number such as 1234", text);
	r->pid = (pid_t)pid;
	return 0;
}

static int parse_freq(struct record *r, const char *option, const char *text)
{
	int64_t limit = host_max_sample_rate();
	double freq;

	if (cli_number(text, 1, UINT32_MAX, &freq) || freq != (unsigned)freq)
		return usage("%s %s: not a sampling rate; it takes a whole number of Hz from 1 up", option, text);
	if ((int64_t)freq > limit)
		return usage("%s %s: above this kernel's limit of %lld Hz; ask for less, or raise it with "
			     "`sysctl " HOST_MAX_RATE_SYSCTL "=%s`",
			     option, text, (long long)limit, text);
	r->session.freq = (unsigned)freq;
	return 0;
}

static int parse_lines(struct record *r, const char *text)
{
	if (strcmp(text, "current") == 0)
		r->session.lines = PYSYM_LINES_CURRENT;
	else if (strcmp(text, "first") == 0)
		r->session.lines = PYSYM_LINES_FIRST;
	else if (strcmp(text, "none") == 0)
		r->session.lines = PYSYM_LINES_NONE;
	else
		return usage("--lines %s: it takes current, first or none", text);
	return 0;
}

static int parse_event(struct record *r, const char *text)
{
	if (strcmp(text, "auto") == 0)
		r->session.source = SESSION_PERF_AUTO;
	else if (strcmp(text, "cycles") == 0)
		r->session.source = SESSION_PERF_CYCLES;
	else if (strcmp(text, "cpu-clock") == 0)
		r->session.source = SESSION_PERF_CPU_CLOCK;
	else
		return usage("-e %s: it takes auto, cycles or cpu-clock", text);
	return 0;
}

static int parse_option(struct record *r, int option, const char *arg)
{
	double number;

	switch (option) {
	case 'p':
		return parse_pid(r, arg);
	case 'd':
		if (cli_number(arg, 0.001, 1e9, &r->duration_s))
			return usage("-d %s: not a duration; it takes seconds above 0, such as 30 or 0.5", arg);
		return 0;
	case 'F':
		return parse_freq(r, "-F", arg);
	case 'r':
		return parse_freq(r, "-r", arg);
	case 'e':
		return parse_event(r, arg);
	case 'o':
		r->output_path = arg;
		return 0;
	case 'f':
		r->format = output_by_name(arg);
		return r->format ? 0 : usage("-f %s: no such format; there are %s", arg, format_names());
	case OPT_THREADS:
		r->session.threads = true;
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
	case OPT_MAX_STACKS:
		if (cli_number(arg, 1, SESSION_MAX_STACKS_LIMIT, &number) || number != (unsigned)number)
			return usage("--max-stacks %s: it takes a whole number from 1 to %u", arg,
				     SESSION_MAX_STACKS_LIMIT);
		r->session.max_stacks = (uint32_t)number;
		return 0;
	case OPT_WITHOUT:
		r->session.without = arg;
		return 0;
	default:
		return CLI_USAGE;
	}
}

static int parse(struct record *r, int argc, char **argv, bool *done)
{
	int option, err;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "+:p:d:F:r:e:o:f:vqhV", long_options, NULL)) != -1) {
		if (option == 'h') {
			print_help();
			*done = true;
			return 0;
		}
		if (option == 'V') {
			puts("pybpf " PYBPF_VERSION);
			*done = true;
			return 0;
		}
		if (option == ':')
			return usage("%s needs a value; see `pybpf --help`", argv[optind - 1]);
		if (option == '?')
			return usage("unknown option %s; see `pybpf --help`", argv[optind - 1]);
		err = parse_option(r, option, optarg);
		if (err)
			return err;
	}
	if (optind < argc) {
		if (strcmp(argv[optind - 1], "--") != 0)
			return usage("%s: no such command or option; a program to start comes after `--`, see "
				     "`pybpf --help`",
				     argv[optind]);
		r->command = argv + optind;
	}
	if (r->pid && r->command)
		return usage("two targets, process %d and command %s: give one of them", r->pid, r->command[0]);
	if (!r->pid && !r->command)
		return usage("nothing to sample: give -p PID, or a command after `--`; see `pybpf --help`");
	if (!r->format && r->output_path)
		r->format = output_by_path(r->output_path);
	else if (!r->format)
		r->format = output_by_name("folded");
	if (!r->format)
		return usage("-o %s: no format has that suffix; choose one with -f: %s", r->output_path,
			     format_names());
	return 0;
}

static int check_host(void)
{
	char why[512];

	if (host_check_privilege(why, sizeof(why)) || host_check_btf(why, sizeof(why)) ||
	    host_check_bpf(why, sizeof(why))) {
		log_error("%s", why);
		return CLI_FAILED;
	}
	return 0;
}

static int open_output(struct output_file *file, const char *path)
{
	int err = path ? output_file_open(file, path) : 0;

	if (!err)
		return 0;
	log_error("cannot write to %s: %s", path, strerror(-err));
	return CLI_FAILED;
}

static int commit_output(struct output_file *file, const char *path)
{
	int err = path ? output_file_commit(file) : 0;

	if (!err)
		return 0;
	log_error("cannot write %s: %s; nothing was kept under that name", path, strerror(-err));
	return CLI_FAILED;
}

static int write_profile(struct record *r, const struct profile *profile)
{
	FILE *out = r->output_path ? r->output.stream : stdout;
	/* parse() leaves no format out. NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
	int err = r->format->write(profile, out);

	if (err) {
		log_error("cannot write the profile: %s", strerror(-err));
		return CLI_FAILED;
	}
	errno = 0;
	if (!r->output_path && (fflush(stdout) || ferror(stdout))) {
		log_error("cannot write the profile to stdout: %s", strerror(errno ? errno : EIO));
		return CLI_FAILED;
	}
	return commit_output(&r->output, r->output_path);
}

static int finish(struct record *r, struct session *session, bool found)
{
	const struct profile *profile;
	struct session_account account;
	int code = session_collect(session, &profile, &account) ? CLI_FAILED : CLI_OK;

	if (code)
		return code;
	code = write_profile(r, profile);
	if (!found)
		log_warn("no Python was found in %s: it may be another program, or have ended too early",
			 r->command[0]);
	if (!r->quiet)
		session_account_print(&account, r->stats, stderr);
	if (r->json_path) {
		session_account_json(&account, r->json.stream);
		code = commit_output(&r->json, r->json_path) ?: code;
	}
	return code;
}

static void say_end(const struct record *r, enum session_end end)
{
	if (end == SESSION_END_TARGET && r->pid && !r->quiet)
		log_warn("process %d ended during the run; what was sampled until then follows", r->pid);
}

static void tell_python(const struct discovery_python *python)
{
	log_info("process %d (%s): Python %s%s%s, %s", python->pid, python->comm, python->version,
		 python->free_threaded ? ", free-threaded" : "", python->debug_build ? ", debug build" : "",
		 python->is_static ? "static" : "shared library");
	log_info("runtime: %s in %s (load bias 0x%llx), at 0x%llx", python->runtime_source, python->path,
		 (unsigned long long)python->load_bias, (unsigned long long)python->runtime_addr);
	log_info("version from %s; offsets from %s", python->version_source, python->build.origin);
	log_info("thread states: by thread, from %s%s", python->tstate_current_addr ? "the GIL's owner, then " : "",
		 "the interpreters' lists, matched by pthread_self()");
}

static int record_process(struct record *r)
{
	struct session_run run = {.pid = r->pid, .duration_s = r->duration_s, .python_found = true};
	struct discovery_python *python = calloc(1, sizeof(*python));
	struct session *session = NULL;
	enum session_end end;
	int code = CLI_FAILED, err;

	if (!python || session_find_python(r->pid, python))
		goto done;
	tell_python(python);
	session = session_new(&r->session);
	if (!session)
		goto done;
	err = session_set_process(session, r->pid, python);
	if (err) {
		log_error("cannot hand process %d to the kernel: %s", r->pid, strerror(-err));
		goto done;
	}
	if (session_attach(session))
		goto done;
	run.session = session;
	run.progress = !r->quiet && isatty(STDERR_FILENO);
	end = session_run(&run);
	session_detach(session);
	say_end(r, end);
	code = finish(r, session, true);
	if (end == SESSION_END_ERROR)
		code = CLI_FAILED;
done:
	session_free(session);
	free(python);
	return code;
}

static int record_command(struct record *r, const sigset_t *mask)
{
	struct session_command command = {0};
	struct session_run run = {.command = &command, .duration_s = r->duration_s};
	struct session *session = NULL;
	enum session_end end;
	int code = CLI_FAILED, err;

	err = session_command_start(&command, r->command, mask);
	if (err) {
		log_error("cannot start %s: %s", r->command[0], strerror(-err));
		goto done;
	}
	session = session_new(&r->session);
	if (!session || session_set_process(session, command.pid, NULL) || session_attach(session))
		goto done;
	code = session_command_release(&command, r->command[0]);
	if (code)
		goto done;
	run.session = session;
	run.pid = command.pid;
	run.progress = false;
	end = session_run(&run);
	session_detach(session);
	code = finish(r, session, run.python_found);
	if (end == SESSION_END_ERROR)
		code = CLI_FAILED;
	session_run_command(&command);
	if (!code)
		code = command.exit_code;
done:
	session_command_drop(&command);
	session_free(session);
	return code;
}

int cli_record(int argc, char **argv)
{
	struct record r = {
		.session = {.freq = DEFAULT_FREQ, .max_stacks = SESSION_MAX_STACKS_DEFAULT, .start_ns = cli_start_ns},
	};
	sigset_t signals, mask;
	bool done = false;
	int code = parse(&r, argc, argv, &done);

	if (code || done)
		return code;
	log_set_level(r.verbose > 1 ? LOG_DEBUG : r.verbose ? LOG_INFO : LOG_WARN);
	r.session.measure_kernel = r.stats || r.json_path;
	signal(SIGPIPE, SIG_IGN);
	session_run_signals(&signals);
	sigprocmask(SIG_BLOCK, &signals, &mask);
	code = check_host();
	code = code ?: open_output(&r.output, r.output_path);
	code = code ?: open_output(&r.json, r.json_path);
	if (!code)
		code = r.command ? record_command(&r, &mask) : record_process(&r);
	output_file_discard(&r.output);
	output_file_discard(&r.json);
	return code;
}

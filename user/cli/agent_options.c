// SPDX-License-Identifier: Apache-2.0
/* The options, help and examples of agent, and the checks of its command line. */
#include "cli/agent_options.h"

#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cli/agent_push_options.h"
#include "cli/cli.h"
#include "cli/filter.h"
#include "cli/host.h"
#include "cli/other_tools.h"
#include "cli/record_options.h"
#include "cli/rules.h"
#include "cli/select.h"

#define KEEP_LEAST_S 60
#define KEEP_MOST_S  (100 * 365 * 86400.0)
#define SIZE_LEAST   ((uint64_t)1 << 20)
#define SIZE_MOST    ((uint64_t)1 << 50)

static int take_epoch(const struct cli_option *option, const char *value, void *target)
{
	struct cli_agent_options *o = target;
	double seconds;

	if (cli_duration(value, &seconds) || seconds < AGENT_EPOCH_LEAST_S || seconds > AGENT_EPOCH_MOST_S)
		return cli_usage("%s %s: not the length of an epoch; it takes a time from 1s to 1h, such as 60s or 5m",
				 cli_option_spelling(option), value);
	o->agent.epoch_s = seconds;
	return 0;
}

static int take_keep(const struct cli_option *option, const char *value, void *target)
{
	struct cli_agent_options *o = target;
	double seconds;

	if (cli_duration(value, &seconds) || seconds < KEEP_LEAST_S || seconds > KEEP_MOST_S)
		return cli_usage("%s %s: not a time for which epochs are kept; it takes one from 1m up, such as 12h or "
				 "7d",
				 cli_option_spelling(option), value);
	o->agent.keep_s = seconds;
	return 0;
}

static int take_keep_size(const struct cli_option *option, const char *value, void *target)
{
	struct cli_agent_options *o = target;

	return cli_option_size(option, value, SIZE_LEAST, SIZE_MOST, &o->agent.keep_size);
}

static int take_freq(const struct cli_option *option, const char *value, void *target)
{
	struct cli_agent_options *o = target;

	return cli_option_rate(option, value, &o->session.freq);
}

static int take_native(const struct cli_option *option, const char *value, void *target)
{
	struct cli_agent_options *o = target;

	return cli_take_native(option, value, &o->session);
}

static int take_max_memory(const struct cli_option *option, const char *value, void *target)
{
	struct cli_agent_options *o = target;

	return cli_option_mib(option, value, SESSION_MAX_MEMORY_LEAST, SESSION_MAX_MEMORY_MOST, &o->session.max_memory);
}

static int take_service(const struct cli_option *option, const char *value, void *target)
{
	struct cli_agent_options *o = target;
	int err = discovery_service_add_rule(&o->services, value);

	if (err == -EINVAL)
		return cli_usage("%s %s: not a rule for services; it takes NAME=GLOB, such as shop='gunicorn*'",
				 cli_option_spelling(option), value);
	if (err)
		log_error("cannot keep the options: %s", strerror(-err));
	return err ? CLI_FAILED : 0;
}

static const struct cli_option service_options[] = {
	{"service", 0, "NAME=GLOB",
	 "processes whose program, container or systemd unit matches belong to this service; the first option that "
	 "matches counts; may be repeated; the name of others is that in their environment's OTEL_SERVICE_NAME, or "
	 "that of their container, unit or program",
	 .take = take_service},
	{0},
};

static void forget_modes(struct cli_agent_options *o)
{
	for (size_t i = 0; i < AGENT_MODES_MAX; i++)
		discovery_service_free_choice(&o->chosen[i]);
	o->agent.nr_modes = 0;
	o->modes_of_file = false;
}

/* Returns the index of the mode among those that were given, or their number. */
static size_t find_mode(const struct agent_options *agent, enum session_mode mode)
{
	size_t i = 0;

	while (i < agent->nr_modes && agent->modes[i] != mode)
		i++;
	return i;
}

/* Adds a mode. glob: of the services that it is for; NULL: all. Returns as a cli_option's take. */
static int add_mode(const struct cli_option *option, const char *value, enum session_mode mode, const char *glob,
		    struct cli_agent_options *o)
{
	struct agent_options *agent = &o->agent;
	const size_t i = find_mode(agent, mode);

	if (i < agent->nr_modes && !glob != !o->chosen[i].count)
		return cli_usage("%s %s: this mode is given both with services and without, which means all of them; "
				 "leave one out",
				 cli_option_spelling(option), value);
	agent->modes[i] = mode;
	agent->nr_modes += i == agent->nr_modes;
	if (!glob || !discovery_service_choose(&o->chosen[i], glob))
		return 0;
	log_error("cannot keep the options: %s", strerror(ENOMEM));
	return CLI_FAILED;
}

static int take_mode(const struct cli_option *option, const char *value, void *target)
{
	struct cli_agent_options *o = target;
	const char *glob = strchr(value, '=');
	char word[16];
	int mode = SESSION_CPU, code;

	if (o->modes_of_file)
		forget_modes(o);
	snprintf(word, sizeof(word), "%.*s", (int)strcspn(value, "="), value);
	code = cli_option_word(option, word, &mode);
	if (code)
		return code;
	if (glob && !*++glob)
		return cli_usage("%s %s: the name of a service is missing after =, such as %sshop or %s'web*'",
				 cli_option_spelling(option), value, value, value);
	if ((mode == SESSION_WALL && find_mode(&o->agent, SESSION_OFFCPU) < o->agent.nr_modes) ||
	    (mode == SESSION_OFFCPU && find_mode(&o->agent, SESSION_WALL) < o->agent.nr_modes))
		return cli_usage("%s %s: wall and offcpu cannot be measured together, as wall contains all of offcpu; "
				 "leave one of them out",
				 cli_option_spelling(option), value);
	return add_mode(option, value, (enum session_mode)mode, glob, o);
}

static const struct cli_option sampling_options[] = {
	{"mode", 0, "MODE[=GLOB]",
	 "cpu: where threads use CPUs (default); wall: all the time of all threads, with what they wait for; offcpu: "
	 "the same without the time on CPUs; gil: the time that threads wait for the GIL; with =GLOB, such as "
	 "wall=shop, only for services whose name matches; may be repeated: modes are measured side by side",
	 .take = take_mode, .words = cli_agent_modes},
	{"freq", 'F', "HZ", "samples per second and CPU (default " CLI_NUMBER(AGENT_FREQ_DEFAULT) ")",
	 .take = take_freq},
	{"rate", 'r', "HZ", .take = take_freq},
	{"native", 'n', "all", "functions of C and other compiled languages, too, as in `pybpf record`",
	 .take = take_native, .optional = true},
	{"kernel", 0, NULL, "add the kernel's functions after the function that runs, as NAME_[k]",
	 .take = cli_take_flag, .offset = offsetof(struct cli_agent_options, session.kernel_stacks)},
	{"async", 0, NULL, "add the running asyncio task to the stacks, as in `pybpf record`", .take = cli_take_flag,
	 .offset = offsetof(struct cli_agent_options, session.tasks)},
	{"threads", 't', NULL, "show each thread by itself, with its name", .take = cli_take_flag,
	 .offset = offsetof(struct cli_agent_options, session.threads)},
	{"full-filenames", 0, NULL, "whole paths of files", .take = cli_take_flag,
	 .offset = offsetof(struct cli_agent_options, session.full_filenames)},
	{0},
};

static const struct cli_option epoch_options[] = {
	{"epoch", 0, "TIME",
	 "a profile is made for each epoch of this length, from 1s to 1h (default " CLI_NUMBER(
		 AGENT_EPOCH_DEFAULT_S) "s); lengths vary by 20 %, so that many machines do not work at the same "
					"moment",
	 .take = take_epoch},
	{"fixed-epochs", 0, NULL, "do not vary the lengths of epochs", .take = cli_take_flag,
	 .offset = offsetof(struct cli_agent_options, agent.fixed_epochs)},
	{"dir", 0, "DIR",
	 "the folder for a file NAME.pybpf of each epoch (default " AGENT_DIR_DEFAULT
	 ", unless profiles are sent somewhere); it is created with mode 0700",
	 .take = cli_take_text, .offset = offsetof(struct cli_agent_options, agent.dir)},
	{"keep", 0, "TIME",
	 "remove epochs that ended longer ago than this (default 7d); after a seventh of this time, the epochs of each "
	 "hour are merged into one",
	 .take = take_keep},
	{"keep-size", 0, "SIZE",
	 "the most bytes of all epochs together (default 2GiB); above that, epochs of the oldest hours are merged hour "
	 "by hour, and finally removed",
	 .take = take_keep_size},
	{0},
};

static int take_listen(const struct cli_option *option, const char *value, void *target)
{
	struct cli_agent_options *o = target;
	struct error error;

	if (serve_check(&(struct serve_options){.listen = value}, &error))
		return cli_usage("%s: %s", cli_option_spelling(option), error.text);
	o->agent.serve.listen = value;
	return 0;
}

static int take_listen_mode(const struct cli_option *option, const char *value, void *target)
{
	struct cli_agent_options *o = target;
	const size_t digits = strspn(value, "01234567");
	const unsigned long mode = strtoul(value, NULL, 8);

	if (!digits || digits > 4 || value[digits] || mode > 0777 || (mode & 0600) != 0600)
		return cli_usage("%s %s: not the mode of a socket; it takes an octal number from 0600 to 0777, such as "
				 "0660, by which the owner may read and write",
				 cli_option_spelling(option), value);
	o->agent.serve.socket_mode = (unsigned)mode;
	return 0;
}

static const struct cli_option serve_options[] = {
	{"listen", 0, "ADDRESS:PORT|PATH",
	 "answer requests by HTTP: /debug/pprof/profile (wall and gil with these modes), /metrics for Prometheus, "
	 "/healthz "
	 "and /readyz; :PORT is on 127.0.0.1, a PATH with a slash is a Unix socket",
	 .take = take_listen},
	{"listen-mode", 0, "MODE",
	 "the mode of the Unix socket, octal (default 0600): 0660 lets the group of the socket's folder connect, if "
	 "that "
	 "folder has the setgid bit",
	 .take = take_listen_mode},
	{"listen-token", 0, "FILE",
	 "clients have to send the bearer token in FILE; only its owner may have access to FILE", .take = cli_take_text,
	 .offset = offsetof(struct cli_agent_options, agent.serve.token)},
	{0},
};

static int take_max_cpu(const struct cli_option *option, const char *value, void *target)
{
	struct cli_agent_options *o = target;
	size_t size = strlen(value);
	char number[32];
	double percent;

	if (size && value[size - 1] == '%')
		size--;
	snprintf(number, sizeof(number), "%.*s", (int)size, value);
	if (size >= sizeof(number) || cli_number(number, 0.001, 100, &percent))
		return cli_usage("%s %s: not a share of a CPU; it takes percent, such as 1%% or 0.5%%",
				 cli_option_spelling(option), value);
	o->agent.max_cpu = percent / 100;
	return 0;
}

static const struct cli_option other_options[] = {
	{"max-cpu", 0, "PERCENT",
	 "the share of one CPU that all processes of pybpf may use (default 1%); before they use more, the rate is "
	 "halved, and each sample counts for two; it is raised again when they use little",
	 .take = take_max_cpu},
	{"max-memory", 0, "MIB",
	 "memory of pybpf and its maps in the kernel together, as in `pybpf record` (default " CLI_NUMBER(
		 SESSION_MAX_MEMORY_DEFAULT) ")",
	 .take = take_max_memory},
	{"without-kernel-feature", 0, "LIST", "as in `pybpf record`", .take = cli_take_text,
	 .offset = offsetof(struct cli_agent_options, session.disabled_features)},
	{"verbose", 'v', NULL, "print a line for each epoch, with what it cost; given twice: libbpf's messages, too",
	 .take = cli_take_count, .offset = offsetof(struct cli_agent_options, verbose)},
	CLI_OPTION_HELP,
	{0},
};

static const struct cli_example examples[] = {
	{"sudo pybpf agent", "every Python process; profiles go to " AGENT_DIR_DEFAULT},
	{"sudo pybpf agent --container 'shop*'", "those of some containers"},
	{"sudo pybpf agent --dir /srv/pybpf --keep 30d", "another folder, and for longer"},
	{"sudo pybpf agent --mode cpu --mode wall=shop", "CPU time of all, and what one service waits for"},
	{"sudo pybpf agent --otlp http://otel:4318", "to an OpenTelemetry Collector"},
	{"sudo pybpf agent --listen :6060", "profiles and metrics by HTTP"},
	{0},
};

static const struct cli_option config_options[] = {
	{"config", 0, "FILE",
	 "also read options from FILE (YAML): a line `NAME: VALUE` for each option, such as `epoch: 60s`; the value is "
	 "true for an option that takes none, and a list for one that may be repeated; options of the command line "
	 "take precedence",
	 .take = cli_take_text, .offset = offsetof(struct cli_agent_options, config_path)},
	{"check", 0, NULL, "check the options and the file of --config, and exit", .take = cli_take_flag,
	 .offset = offsetof(struct cli_agent_options, check)},
	{0},
};

void cli_agent_options_init(struct cli_agent_options *o)
{
	const struct cli_option_group groups[CLI_AGENT_GROUPS] = {
		{"Where options come from", config_options, o},
		{"Which processes", cli_select_options, &o->filter},
		{"Filters on processes (may be repeated)", cli_select_among_options, &o->filter},
		{"What services and the host are called", service_options, o},
		{NULL, cli_host_options, &o->session},
		{"How to sample", sampling_options, o},
		{NULL, cli_own_path_options, &o->edit},
		{"Epochs, and where they go", epoch_options, o},
		{"Where epochs are sent", cli_agent_push_options, &o->agent.push},
		{"Requests by HTTP", serve_options, o},
		{"Other", other_options, o},
		{0},
	};

	*o = (struct cli_agent_options){
		.agent = {.epoch_s = AGENT_EPOCH_DEFAULT_S,
			  .keep_s = AGENT_KEEP_DEFAULT_S,
			  .keep_size = AGENT_KEEP_SIZE_DEFAULT,
			  .max_cpu = AGENT_MAX_CPU_DEFAULT},
		.session = SESSION_OPTIONS_DEFAULT,
	};
	o->session.freq = AGENT_FREQ_DEFAULT;
	memcpy(o->groups, groups, sizeof(groups));
}

void cli_agent_options_free(struct cli_agent_options *o)
{
	discovery_filter_free(&o->filter);
	discovery_service_free_rules(&o->services);
	forget_modes(o);
	profile_edit_free(&o->edit);
	cli_agent_push_free(&o->agent.push);
	cli_set_places(NULL, NULL);
	cli_config_free(o->config);
	o->config = NULL;
}

/* Those that a file may have: all but the first group's. */
static const struct cli_option_group *groups_of_file(const struct cli_agent_options *o)
{
	return o->groups + 1;
}

static int parse_line(struct cli_agent_options *o, int argc, char **argv, bool *helped)
{
	const struct cli_options command = {
		.command = "pybpf agent",
		.about = "pybpf agent samples continuously. It keeps a profile of each minute for `pybpf report`, or "
			 "sends it to a receiver. Without an option that chooses processes, it samples all of them.",
		.examples = examples,
		.usage = "  pybpf agent [options]\n",
		.groups = o->groups,
		.notes = "SIGTERM and SIGINT end it after the last epoch is written. On SIGHUP it reads the file of "
			 "--config again: --epoch, --fixed-epochs, --keep, --keep-size and --max-cpu change at once; "
			 "for other options it says that they change at the next start.\nExit status: 0 ended by a "
			 "signal, or its processes ended; 1 it failed; 2 wrong command line.",
	};
	int code = cli_options_parse(&command, argc, argv, helped);

	o->argc = argc;
	o->argv = argv;
	if (!code && !*helped && optind < argc)
		return cli_refuse_argument("agent", argv[optind]);
	return code;
}

/* Takes the options of the file, and then those of the command line. */
static int parse_file(struct cli_agent_options *o, const char *path, int argc, char **argv)
{
	bool helped;
	int code;

	cli_agent_options_free(o);
	cli_agent_options_init(o);
	o->config = cli_config_read(path, groups_of_file(o));
	if (!o->config)
		return CLI_USAGE;
	code = cli_config_take(o->config);
	cli_set_places(cli_config_set_place, o->config);
	o->modes_of_file = o->agent.nr_modes;
	return code ?: parse_line(o, argc, argv, &helped);
}

static const struct cli_choice choices[] = {
	{"--listen", CLI_CHOSEN(struct cli_agent_options, agent.serve.listen)},
	{"--listen-token", CLI_CHOSEN(struct cli_agent_options, agent.serve.token)},
	{"--listen-mode", CLI_CHOSEN(struct cli_agent_options, agent.serve.socket_mode)},
	{0},
};

static const struct cli_rule rules[] = {
	{"--listen-token", .needs = "--listen", .sentence = "--listen-token is for --listen, which is missing"},
	{"--listen-mode", .needs = "--listen", .sentence = "--listen-mode is for --listen, which is missing"},
	{0},
};

const struct cli_rules cli_agent_rules = {"agent", sizeof(struct cli_agent_options), choices, rules};

/* Returns 0, or CLI_USAGE after one sentence on stderr. */
static int check_listen(const struct serve_options *serve)
{
	struct error error;

	if (!serve->socket_mode || strchr(serve->listen, '/'))
		return 0;
	error_set(&error, -EINVAL,
		  "--listen-mode is the mode of a Unix socket, but --listen %s is an address of TCP; give it a path "
		  "with a slash",
		  serve->listen);
	return cli_usage_of("--listen-mode", error.text);
}

int cli_agent_parse(struct cli_agent_options *o, int argc, char **argv, bool *helped)
{
	int code = parse_line(o, argc, argv, helped);

	if (code || *helped)
		return code;
	if (o->config_path)
		code = parse_file(o, o->config_path, argc, argv);
	if (code)
		return code;
	if (!o->agent.nr_modes)
		o->agent.modes[o->agent.nr_modes++] = SESSION_CPU;
	if (!o->filter.pids.count && !o->filter.containers.count && !o->filter.cgroups.count)
		o->filter.all = true;
	if (!o->agent.dir && !cli_agent_has_receiver(&o->agent.push))
		o->agent.dir = AGENT_DIR_DEFAULT;
	code = cli_rules_check(&cli_agent_rules, o);
	code = code ?: check_listen(&o->agent.serve);
	code = code ?: cli_agent_push_check(&o->agent.push);
	return code ?: cli_select_check(&o->filter, NULL);
}

/* Bytes of the names of options in a message: all that there are. */
#define CHANGES_MAX 1024

int cli_agent_read_again(const struct cli_agent_options *o, struct agent_options *agent)
{
	/* What can change while the agent runs: agent_change(). */
	static const char *const changeable[] = {"epoch", "fixed-epochs", "keep", "keep-size", "max-cpu", NULL};
	struct cli_agent_options fresh;
	char changed[CHANGES_MAX] = "";
	bool helped = false;
	int code;

	cli_select_trust_users();
	cli_agent_options_init(&fresh);
	/* All of it, as at the next start: a file that would be refused then is refused now. */
	code = cli_agent_parse(&fresh, o->argc, o->argv, &helped);
	if (!code)
		cli_config_list_changes(o->config, fresh.config, changeable, changed, sizeof(changed));
	if (*changed)
		log_warn("%s has other values of what cannot change while the agent runs; at the next start change: %s",
			 o->config_path, changed);
	*agent = fresh.agent;
	cli_agent_options_free(&fresh);
	return code;
}

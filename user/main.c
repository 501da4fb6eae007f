// SPDX-License-Identifier: Apache-2.0
/* The program's entry point: the table of commands, and the handling of standard streams for all of them. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/sudo.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/other_tools.h"

static int help(int argc, char **argv);

static const struct cli_command commands[] = {
	{"record", "sample a process or a command (the default, may be left out)", cli_record},
	{"ps", "list the Python processes that would be sampled", cli_ps},
	{"dump", "print what every thread of a process does now, and its stack", cli_dump},
	{"top", "show live where processes spend their time", cli_top},
	{"agent", "sample continuously, and keep a profile of each minute", cli_agent},
	{"report", "convert, merge and filter saved profiles", cli_report},
	{"diff", "compare two saved profiles", cli_diff},
	{"doctor", "say what this host offers, what will work, and what to change", cli_doctor},
	{"help", "print the help of a command", help},
	{"version", "print the version", cli_print_version},
	{0},
};

static const struct cli_command *find_command(const char *name)
{
	for (const struct cli_command *c = commands; c->name; c++) {
		if (!strcmp(name, c->name))
			return c;
	}
	return NULL;
}

/* Those two have no options of their own. */
static bool has_options(const struct cli_command *command)
{
	return command->run != help && command->run != cli_print_version;
}

static int print_options(void)
{
	int code = CLI_OK;

	cli_options_as_table = true;
	cli_print_table_head();
	for (const struct cli_command *c = commands; c->name && !code; c++) {
		cli_print_table_command(c->name, c->summary);
		if (has_options(c))
			code = c->run(2, (char *[]){(char *)c->name, "--help", NULL});
	}
	return code;
}

/* pybpf help: the first page; help COMMAND: as `pybpf COMMAND --help`; help --options: every option, for programs. */
static int help(int argc, char **argv)
{
	const struct cli_command *command = argc > 1 ? find_command(argv[1]) : NULL;

	if (argc < 2)
		return cli_print_front(commands);
	if (!strcmp(argv[1], "--options"))
		return print_options();
	if (!command)
		return cli_refuse_command(commands, argc - 1, argv + 1);
	if (!has_options(command))
		return cli_print_front(commands);
	return command->run(2, (char *[]){argv[1], "--help", NULL});
}

static bool asks_for_help(const char *option)
{
	return !strcmp(option, "--help") || !strcmp(option, "-h");
}

/*
 * Flushes stdout and reports a write error that no command has reported: most commands print nothing there, or only
 * help. Returns code, or CLI_FAILED after a write error.
 */
static int finish(int code)
{
	int err = cli_finish_stdout();

	if (!err)
		return code;
	log_error("cannot write to stdout: %s", strerror(-err));
	return CLI_FAILED;
}

/*
 * If the parent process closed a standard stream, the next file that pybpf opens would get its descriptor, and output
 * would go into that file. This opens /dev/null in its place, with the opposite access mode, so that reads of stdin and
 * writes to stdout or stderr fail as they do on a closed stream.
 */
static void stand_in_for_closed_streams(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) < 0)
			open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_NOCTTY);
	}
}

int main(int argc, char **argv)
{
	const struct cli_command *command;

	stand_in_for_closed_streams();
	sudo_remember(argc, argv);
	cli_start_ns = clock_ns(CLOCK_MONOTONIC);
	if (argc > 1) {
		command = find_command(argv[1]);
		if (command)
			return finish(command->run(argc - 1, argv + 1));
		if (argv[1][0] != '-')
			return finish(cli_refuse_command(commands, argc - 1, argv + 1));
	}
	if (argc == 2 && asks_for_help(argv[1]))
		return finish(cli_print_front(commands));
	return finish(cli_record(argc, argv));
}

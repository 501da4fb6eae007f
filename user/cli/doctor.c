// SPDX-License-Identifier: Apache-2.0
/* pybpf doctor: reports what this host supports. */
#include "cli/cli.h"

#include <getopt.h>
#include <stdio.h>

#include "cli/options.h"
#include "helper/helper.h"
#include "doctor/trial.h"

static const struct cli_example examples[] = {
	{"sudo pybpf doctor", "everything, with a trial of the sampler"},
	{"pybpf doctor", "what can be seen without privileges"},
	{"sudo pybpf doctor -vv", "libbpf's messages and the verifier's log as well"},
	{0},
};

static const struct cli_option options[] = {
	{"verbose", 'v', NULL, "print how it was found out; given twice: libbpf's messages and the verifier's log, too",
	 .take = cli_take_count},
	CLI_OPTION_HELP,
	{0},
};

int cli_doctor(int argc, char **argv)
{
	int verbose = 0, code;
	const struct cli_option_group groups[] = {{"Options", options, &verbose}, {0}};
	const struct cli_options command = {
		.command = "pybpf doctor",
		.about = "pybpf doctor says what this host offers, what will work, and what to change.",
		.examples = examples,
		.usage = "  pybpf doctor [-v]\n",
		.groups = groups,
		.notes = "Each line is an item: ok; warn, works but could do better; FAIL, the main job cannot run; "
			 "skip, could not be checked. `->` says what to change.\nExit status: 0 the main job can run, "
			 "1 it cannot, 2 wrong command line.",
		.command_follows = true,
	};
	bool helped;

	code = cli_options_parse(&command, argc, argv, &helped);
	if (code || helped)
		return code;
	if (optind < argc)
		return cli_usage("doctor takes no argument, but was given %s; see `pybpf doctor --help`", argv[optind]);
	cli_set_verbosity(verbose);
	code = cli_start_helpers() ?: session_doctor(stdout) ? CLI_FAILED : CLI_OK;
	helper_stop();
	return code;
}

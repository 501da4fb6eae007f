// SPDX-License-Identifier: Apache-2.0
/* pybpf doctor: what this host offers. */
#include "cli/cli.h"

#include <getopt.h>
#include <stdio.h>

#include "foreign/foreign.h"
#include "base/log.h"
#include "doctor/trial.h"

static const char help[] = "pybpf doctor says what this host offers, what will work, and what to change where not.\n"
			   "\n"
			   "Examples:\n"
			   "  sudo pybpf doctor      everything, with a trial of the sampler\n"
			   "  pybpf doctor           what can be seen without privileges\n"
			   "  sudo pybpf doctor -vv  libbpf's messages and the verifier's log as well\n"
			   "\n"
			   "Usage: pybpf doctor [-v] [-h]\n"
			   "\n"
			   "A line per item: ok; warn, works but could do better; FAIL, the main job cannot run;\n"
			   "skip, could not be looked at. `->` says what to change.\n"
			   "Exit status: 0 the main job can run, 1 it cannot, 2 wrong command line.\n";

static const struct option long_options[] = {
	{"verbose", no_argument, NULL, 'v'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

int cli_doctor(int argc, char **argv)
{
	int option, verbose = 0, code;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "+vh", long_options, NULL)) != -1) {
		if (option == 'h') {
			fputs(help, stdout);
			return CLI_OK;
		}
		if (option != 'v') {
			log_error("unknown option %s; see `pybpf doctor --help`", argv[optind - 1]);
			return CLI_USAGE;
		}
		verbose++;
	}
	if (optind < argc) {
		log_error("doctor takes no argument, and found %s; see `pybpf doctor --help`", argv[optind]);
		return CLI_USAGE;
	}
	log_set_level(verbose > 1 ? LOG_DEBUG : verbose ? LOG_INFO : LOG_WARN);
	code = cli_start_helpers() ?: session_doctor(stdout) ? CLI_FAILED : CLI_OK;
	foreign_stop();
	return code;
}

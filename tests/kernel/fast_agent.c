// SPDX-License-Identifier: Apache-2.0
/*
 * pybpf agent in fast motion: the command itself, with epochs that are shorter than its options allow.
 *
 *   fast_agent EPOCH_MS KEEP_S agent [OPTION...]
 *
 * Epochs are that long, and are removed after that time; few requests wait in memory, and the rate stays. The program
 * is linked with --wrap=agent_new.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "base/clock.h"
#include "cli/cli.h"

/* Bytes of requests in memory, so that a short outage fills the spool. */
#define QUEUE_MAX (16 << 10)
/* CPUs that pybpf may use: the rate is never lowered. At a lower one a sample counts for several. */
#define MAX_CPU 1000

/* The linker's names of what is wrapped, and of what is called in its place. */
struct agent *wrapped_agent_new(const struct agent_options *options, struct error *error) __asm__("__real_agent_new");
struct agent *fast_agent_new(const struct agent_options *options, struct error *error) __asm__("__wrap_agent_new");

static double epoch_s, keep_s;

struct agent *fast_agent_new(const struct agent_options *options, struct error *error)
{
	struct agent_options fast = *options;

	fast.epoch_s = epoch_s;
	fast.keep_s = keep_s;
	fast.max_cpu = MAX_CPU;
	fast.push.common.queue_max = QUEUE_MAX;
	return wrapped_agent_new(&fast, error);
}

int main(int argc, char **argv)
{
	if (argc < 4 || strcmp(argv[3], "agent") != 0)
		return 2;
	epoch_s = atof(argv[1]) / 1000;
	keep_s = atof(argv[2]);
	cli_start_ns = clock_ns(CLOCK_MONOTONIC);
	return cli_agent(argc - 3, argv + 3);
}

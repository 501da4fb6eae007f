// SPDX-License-Identifier: Apache-2.0
/*
 * watch-reads PID COMMAND...: runs the command, and then says how many reads of that process's memory in interrupts
 * went into the kernel's direct map, and how many elsewhere (reads.bpf.c). Its status is the command's.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "reads.skel.h"

static unsigned long long reads(const struct reads_bpf *skel, uint32_t kind)
{
	unsigned long long count = 0;

	bpf_map_lookup_elem(bpf_map__fd(skel->maps.reads), &kind, &count);
	return count;
}

int main(int argc, char **argv)
{
	unsigned long long pid = argc > 2 ? strtoull(argv[1], NULL, 10) : 0;
	struct reads_bpf *skel = pid ? reads_bpf__open_and_load() : NULL;
	uint32_t zero = 0;
	int status = -1;
	pid_t child;

	if (!skel || bpf_map_update_elem(bpf_map__fd(skel->maps.reads), &zero, &pid, 0) || reads_bpf__attach(skel))
		return 125;
	child = fork();
	if (!child) {
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	waitpid(child, &status, 0);
	printf("%llu %llu\n", reads(skel, 1), reads(skel, 2));
	reads_bpf__destroy(skel);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 126;
}

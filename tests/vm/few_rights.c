// SPDX-License-Identifier: Apache-2.0
/*
 * few-rights COMMAND...: executes the command as root with nothing but the three capabilities that pybpf asks for, as a
 * container's runtime does (docs/containers.md).
 */
#include <linux/capability.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#define CAP_BPF     39
#endif

int main(int argc, char **argv)
{
	for (int c = 0; prctl(PR_CAPBSET_READ, c, 0, 0, 0) >= 0; c++) {
		if (c != CAP_BPF && c != CAP_PERFMON && c != CAP_SYS_PTRACE)
			prctl(PR_CAPBSET_DROP, c, 0, 0, 0);
	}
	if (argc > 1)
		execvp(argv[1], argv + 1);
	perror("few-rights");
	return 127;
}

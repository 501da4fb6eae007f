// SPDX-License-Identifier: Apache-2.0
/*
 * For the static binary, in place of that member of libdw.a (elfutils, libdwfl/debuginfod-client.c) whose constructor
 * loads libdebuginfod, which would need the C library of the host. pybpf finds debug information without it.
 */
struct debuginfod_client;

/* libdwfl's own: no header of elfutils declares it. */
void end_debuginfod(struct debuginfod_client *client) __asm__("__libdwfl_debuginfod_end");

void end_debuginfod(struct debuginfod_client *client)
{
	(void)client;
}

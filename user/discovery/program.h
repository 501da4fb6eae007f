// SPDX-License-Identifier: Apache-2.0
/* Tells which processes run the same program. */
#ifndef DISCOVERY_PROGRAM_H
#define DISCOVERY_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Writes the name that processes of one program share: comm, and for a process called python... also the script or
 * module of its command line (as scan_read_cmdline() returns it): "python3 app.py", "python3 -m http.server", "python3
 * -c".
 */
void discovery_program_name(const char *comm, const char *cmdline, char *out, size_t size);

/* Returns whether multiprocessing started the process, as a worker of the program that called it. */
bool discovery_program_is_worker(const char *cmdline);

/* Returns whether the command line begins with an interpreter that is called python..., as that of its scripts does. */
bool discovery_program_is_python(const char *cmdline);

#endif

// SPDX-License-Identifier: Apache-2.0
/* Which processes are of the same program? */
#ifndef DISCOVERY_PROGRAM_H
#define DISCOVERY_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

/*
 * What processes of one program have in common: comm, and for one that is called python... the script or module of its
 * command line (as scan_read_cmdline has it): "python3 app.py", "python3 -m http.server", "python3 -c".
 */
void discovery_program_name(const char *comm, const char *cmdline, char *out, size_t size);

/* Was it started by multiprocessing, as a worker of the program that started it? */
bool discovery_program_is_worker(const char *cmdline);

#endif

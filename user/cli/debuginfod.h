// SPDX-License-Identifier: Apache-2.0
/* Servers that files for debuggers are fetched from: those of --debuginfod, or of the environment. */
#ifndef CLI_DEBUGINFOD_H
#define CLI_DEBUGINFOD_H

#include "fetch/fetch.h"

/*
 * Starts the process that fetches, before anything is opened. given: the value of --debuginfod, or NULL. Sets *started,
 * which is NULL where nothing is fetched: no server is named, or those of the environment cannot be asked, which is
 * said. Returns an exit code, after one sentence on stderr if it is not CLI_OK.
 */
int cli_debuginfod_start(const char *given, struct fetch **started);

#endif

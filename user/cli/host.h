// SPDX-License-Identifier: Apache-2.0
/* The option of record and agent that says what the host is called. */
#ifndef CLI_HOST_H
#define CLI_HOST_H

#include "cli/options.h"

/* Their target is a struct session_options. */
extern const struct cli_option cli_host_options[];

#endif

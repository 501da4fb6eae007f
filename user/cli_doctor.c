// SPDX-License-Identifier: Apache-2.0
#include "cli.h"

int cli_doctor(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return CLI_FAILED;
}

// SPDX-License-Identifier: Apache-2.0
/* What users of other profilers type out of habit, and what there is instead. */
#ifndef CLI_OTHER_TOOLS_H
#define CLI_OTHER_TOOLS_H

#include "cli/cli.h"
#include "cli/options.h"

/* Options of other profilers' record commands. */
extern const struct cli_other_tool cli_other_tools[];

/*
 * Reports argv[at], which is neither an option nor behind `--`: another profiler's command, a program, a PID, a saved
 * profile, or a mistyped command. Returns CLI_USAGE.
 */
int cli_refuse_operand(int argc, char **argv, int at);

/* Reports an argument of a command that takes options alone. Returns CLI_USAGE. */
int cli_refuse_argument(const char *command, const char *word);

/* Reports argv[0], which is not a command. Returns CLI_USAGE. */
int cli_refuse_command(const struct cli_command *commands, int argc, char **argv);

/* Returns the name of the format that other programs call by this word, or NULL. */
const char *cli_find_format_word(const char *word);

#endif

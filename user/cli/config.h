// SPDX-License-Identifier: Apache-2.0
/*
 * A file of options: YAML, one mapping from names of options to their values. A flag takes true or false, an option
 * that may be repeated a list.
 */
#ifndef CLI_CONFIG_H
#define CLI_CONFIG_H

#include <stdbool.h>

#include "cli/options.h"

struct cli_config;

/*
 * Reads a file whose keys are options of these groups, and refuses one that others than its owner, root or pybpf's
 * user, may write to. Returns NULL after one sentence on stderr, with line and column.
 */
struct cli_config *cli_config_read(const char *path, const struct cli_option_group *groups);
/*
 * Takes the values as cli_options_parse() takes those of a command line. Texts that options keep are valid until
 * cli_config_free(). Returns 0, or an exit code after one sentence on stderr, with line and column.
 */
int cli_config_take(const struct cli_config *config);
/*
 * For cli_set_places(): has messages begin with where the last one of the options with these names is in the file, if
 * any is. config: a struct cli_config.
 */
void cli_config_set_place(const void *config, const char *names);
/*
 * Writes the keys whose values differ and that are not in the list, which ends with NULL: "freq, mode"; "": there are
 * none.
 */
void cli_config_list_changes(const struct cli_config *before, const struct cli_config *after, const char *const names[],
			     char *text, size_t size);
/* Accepts NULL. */
void cli_config_free(struct cli_config *config);

#endif

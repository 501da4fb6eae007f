// SPDX-License-Identifier: Apache-2.0
/* What --by of record and of report may be given. */
#ifndef CLI_BY_WORDS_H
#define CLI_BY_WORDS_H

#include "cli/options.h"

enum cli_by {
	CLI_BY_PROCESS,
	CLI_BY_CONTAINER,
	CLI_BY_LINE,
	CLI_BY_EXPRESSION,
	CLI_BY_STATE,
	CLI_BY_IMPORT,
};

extern const struct cli_word cli_by_words[];

#endif

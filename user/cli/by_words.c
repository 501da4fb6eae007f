// SPDX-License-Identifier: Apache-2.0
#include "cli/by_words.h"

const struct cli_word cli_by_words[] = {
	{"process", CLI_BY_PROCESS},
	{"container", CLI_BY_CONTAINER},
	{"line", CLI_BY_LINE},
	{"expression", CLI_BY_EXPRESSION},
	{"state", CLI_BY_STATE},
	{"import", CLI_BY_IMPORT},
	{0},
};

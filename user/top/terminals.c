// SPDX-License-Identifier: Apache-2.0
/* Finds one of the descriptions that were in the terminfo of the machine that built this. */
#include "top/terminals.h"

#include <string.h>

static const struct terminal terminals[] = {
/* One line for each of TERMINALS in the Makefile, the first one of a family first: {"NAME", "b64:..."}, */
#include "terminal_descriptions.h"
};

const struct terminal *terminals_find(const char *term)
{
	size_t family = strcspn(term, "-");

	for (size_t i = 0; i < sizeof(terminals) / sizeof(*terminals); i++) {
		const char *name = terminals[i].name;

		if (strcspn(name, "-") == family && !strncmp(name, term, family))
			return &terminals[i];
	}
	return NULL;
}

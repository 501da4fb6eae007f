// SPDX-License-Identifier: Apache-2.0
/* See newer.h. */
#include "cpython/newer.h"

#include <stdbool.h>
#include <stdio.h>

#include "cpython/facts.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

void cpython_describe_left_out(const struct pybpf_layout *layout, char out[CPYTHON_LEFT_OUT_MAX])
{
	const struct {
		bool is_lacking;
		const char *what;
	} parts[] = {
		{!layout->tstate_handled, "exceptions that are raised or handled"},
		{!layout->interp_collecting, "garbage collections"},
		{!layout->interp_modules, "what is found by sys.modules"},
		/* Candidates for the running frame are checked by the data stack. */
		{!layout->tstate_datastack_top, "stacks of the moment in which a generator stops"},
		/* The opcode tables, and cpython_is_newer() in py_dict.c. */
		{true, "names of opcodes, attributes in dump --locals"},
	};
	const char *separator = "";
	size_t len = 0;

	out[0] = '\0';
	if (!cpython_is_newer(layout))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(parts) && len < CPYTHON_LEFT_OUT_MAX; i++) {
		if (!parts[i].is_lacking)
			continue;
		len += (size_t)snprintf(out + len, CPYTHON_LEFT_OUT_MAX - len, "%s%s", separator, parts[i].what);
		separator = ", ";
	}
	if (len < CPYTHON_LEFT_OUT_MAX && (!layout->tstate_executor || layout->frame_mark == PYBPF_NO_OFFSET))
		len += (size_t)snprintf(out + len, CPYTHON_LEFT_OUT_MAX - len,
					"; lines of code that the JIT or Nuitka has compiled may be wrong");
	/* Code objects are distinguished by their names and line tables in place of co_version. */
	if (len < CPYTHON_LEFT_OUT_MAX && layout->code_version == PYBPF_NO_OFFSET)
		snprintf(out + len, CPYTHON_LEFT_OUT_MAX - len, "; samples take more time");
}

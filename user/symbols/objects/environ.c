// SPDX-License-Identifier: Apache-2.0
/*
 * posix.environ is a dict of bytes, in which os.environ keeps its variables (2.7 and 3; "data = environ" in Lib/os.py).
 * It is made of what the process was started with, and has what the program has set since.
 */
#include "symbols/objects/environ.h"

#include <string.h>

#include "symbols/objects/py_dict.h"

/* Writes NAME=VALUE. Returns its bytes, or 0. */
static size_t read_variable(const struct py_reader *r, const struct py_dict *variables, const char *name, char *out,
			    size_t size)
{
	size_t used = strlen(name) + 1, value_size;
	uint64_t value;

	if (used + 1 >= size || !py_find_bytes(r, variables, name, &value) ||
	    !py_read_bytes(r, value, out + used, size - used, &value_size) || used + value_size == size)
		return 0;
	memcpy(out, name, used - 1);
	out[used - 1] = '=';
	out[used + value_size] = '\0';
	return used + value_size + 1;
}

size_t pysym_read_environ(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t interp,
			  const char *const *names, size_t count, char *out, size_t size)
{
	const struct py_reader r = {memory, layout};
	struct py_dict dict;
	uint64_t variables;
	size_t used = 0;

	if (!py_open_module(&r, interp, "posix", &dict) || !py_find_text(&r, &dict, "environ", &variables) ||
	    !py_open_dict(&r, variables, &dict))
		return 0;
	for (size_t i = 0; i < count; i++)
		used += read_variable(&r, &dict, names[i], out + used, size - used);
	return used;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Reads the Thread that Thread.join() of threading.py was called with. The lock that ends with the thread is waited for
 * by join() itself from 3.13 on, by its _wait_for_tstate_lock() before, and in 2.7 by a condition's wait().
 */
#include "dump/join.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cpython/facts.h"
#include "symbols/objects/py_frame.h"
#include "symbols/objects/thread_name.h"

struct reader {
	struct py_values *v;
	const struct py_values_of *of;
	const struct walk_stack *stack;
};

/* Returns a text of the frame's code object, which the caller frees, or NULL. */
static char *read_text(const struct reader *r, uint32_t frame, uint32_t field)
{
	uint64_t text;

	if (py_values_read(r->v, r->stack->frames[frame].code + field, &text, sizeof(text)))
		return NULL;
	return py_values_name(r->v, text);
}

/* Returns whether the frame is of a function of threading.py with that name. */
static bool is_function(const struct reader *r, uint32_t frame, const char *wanted)
{
	char *name, *path;
	const char *slash;
	bool is;

	if (frame >= r->stack->depth || frame >= PYBPF_HALF_FRAMES || !r->stack->addresses[frame] ||
	    r->stack->frames[frame].kind == PYBPF_FRAME_MARKER)
		return false;
	name = read_text(r, frame, r->of->layout->code_name);
	path = read_text(r, frame, r->of->layout->code_filename);
	slash = path ? strrchr(path, '/') : NULL;
	is = name && path && !strcmp(name, wanted) && !strcmp(slash ? slash + 1 : path, "threading.py");
	free(name);
	free(path);
	return is;
}

uint64_t dump_join_read(struct py_values *v, const struct py_values_of *of, const struct walk_stack *stack,
			uint32_t *frames)
{
	const struct pybpf_layout *layout = of->layout;
	const struct reader r = {.v = v, .of = of, .stack = stack};
	const char *waits = cpython_facts(layout)->names->join_waits;
	uint32_t at = waits ? 1 : 0, variables = py_frame_locals(layout);
	uint64_t self;

	*frames = 0;
	if ((waits && !is_function(&r, 0, waits)) || !is_function(&r, at, "join") ||
	    py_values_read(v, stack->addresses[at] + variables, &self, sizeof(self)))
		return 0;
	*frames = at + 1;
	return pysym_thread_ident(of->memory, layout, py_frame_object(layout, self));
}

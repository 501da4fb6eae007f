// SPDX-License-Identifier: Apache-2.0
/* From an interpreter through sys.modules to threading._active, and from there to a Thread's attributes. */
#include "symbols/objects/thread_name.h"

#include <stdlib.h>
#include <string.h>

#include "cpython/facts.h"
#include "symbols/objects/py_dict.h"
#include "symbols/objects/string_read.h"

uint64_t pysym_find_threads(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t interp)
{
	const struct py_reader r = {memory, layout};
	uint64_t threads = 0;
	struct py_dict dict;

	if (!py_open_module(&r, interp, "threading", &dict) || !py_find_text(&r, &dict, "_active", &threads) ||
	    !py_is_a(&r, threads, PY_KIND_DICT))
		return 0;
	return threads;
}

/* Cuts a text of UTF-8 before the character that does not fit. */
static void cut(char *text, size_t size)
{
	if (strlen(text) <= size)
		return;
	while (size && ((unsigned char)text[size] & 0xc0) == 0x80)
		size--;
	text[size] = '\0';
}

static uint64_t read_ident(const struct py_reader *r, const struct py_dict *attributes)
{
	uint64_t ident, number;

	if (!py_find_text(r, attributes, cpython_facts(r->layout)->names->ident, &ident) ||
	    !py_read_int(r, ident, &number))
		return 0;
	return number;
}

uint64_t pysym_thread_ident(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t thread)
{
	const struct py_reader r = {memory, layout};
	struct py_dict attributes;

	return thread && py_open_attributes(&r, thread, &attributes) ? read_ident(&r, &attributes) : 0;
}

bool pysym_read_thread(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t threads,
		       uint64_t thread_id, struct pysym_thread *out)
{
	const struct py_reader r = {memory, layout};
	const struct cpython_names *names = cpython_facts(layout)->names;
	struct py_dict dict, attributes;
	uint64_t thread, number, text, daemon;

	*out = (struct pysym_thread){.name = NULL};
	if (!py_open_dict(&r, threads, &dict) || !py_find_int(&r, &dict, thread_id, &thread) ||
	    !py_open_attributes(&r, thread, &attributes))
		return false;
	/* The dict may have changed meanwhile: the object itself says whose it is. */
	if (read_ident(&r, &attributes) != thread_id)
		return false;
	if (py_find_text(&r, &attributes, names->name, &text) &&
	    py_is_a(&r, text, layout->string_kind == PYBPF_STR_BYTES ? PY_KIND_BYTES : PY_KIND_TEXT))
		out->name = pysym_read_string(memory, layout, text);
	if (out->name)
		cut(out->name, PYSYM_THREAD_NAME_MAX);
	if (py_find_text(&r, &attributes, names->daemon, &daemon) && py_read_int(&r, daemon, &number)) {
		out->daemon_known = true;
		out->is_daemon = number != 0;
	}
	return true;
}

// SPDX-License-Identifier: Apache-2.0
/* Checks fields of a _Py_DebugOffsets by other ones. */
#include <errno.h>

#include "cpython/debug_offsets.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/*
 * A field that is a sum of others; rounded up to a multiple of 8, as the size of a struct is by its last field. No
 * version from 3.13 on has changed what is said of objects and frames; of the states of threads and interpreters it is
 * known of known versions only.
 */
#define ENDS(name, sum, first, plus)                                                                                   \
	{                                                                                                              \
		name, DEBUG_##sum, DEBUG_##first, DEBUG_NO_FIELD, plus, true, false                                    \
	}
#define SUM(name, sum, first, second, plus)                                                                            \
	{                                                                                                              \
		name, DEBUG_##sum, DEBUG_##first, DEBUG_##second, plus, false, false                                   \
	}
#define STATE(name, sum, first, plus)                                                                                  \
	{                                                                                                              \
		name, DEBUG_##sum, DEBUG_##first, DEBUG_NO_FIELD, plus, false, true                                    \
	}
static const struct relation {
	const char *name;
	enum debug_field sum, first;
	enum debug_field second; /* DEBUG_NO_FIELD: there is none */
	uint8_t plus;
	bool rounded;
	bool of_known_versions;
} relations[] = {
	ENDS("pyobject.size", PYOBJECT_SIZE, PYOBJECT_OB_TYPE, 8),
	ENDS("bytes_object.size", BYTES_OBJECT_SIZE, BYTES_OBJECT_OB_SVAL, 1),
	ENDS("unicode_object.asciiobject_size", UNICODE_OBJECT_ASCIIOBJECT_SIZE, UNICODE_OBJECT_STATE, 4),
	SUM("unicode_object.compactunicodeobject_size", UNICODE_OBJECT_COMPACTUNICODEOBJECT_SIZE,
	    UNICODE_OBJECT_ASCIIOBJECT_SIZE, NO_FIELD, 16),
	SUM("unicode_object.size", UNICODE_OBJECT_SIZE, UNICODE_OBJECT_ASCIIOBJECT_SIZE, NO_FIELD, 24),
	SUM("interpreter_frame.previous", INTERPRETER_FRAME_PREVIOUS, INTERPRETER_FRAME_EXECUTABLE, NO_FIELD, 8),
	SUM("interpreter_frame.stackpointer", INTERPRETER_FRAME_STACKPOINTER, INTERPRETER_FRAME_INSTR_PTR, NO_FIELD, 8),
	ENDS("interpreter_frame.localsplus", INTERPRETER_FRAME_LOCALSPLUS, INTERPRETER_FRAME_OWNER, 1),
	ENDS("interpreter_frame.size", INTERPRETER_FRAME_SIZE, INTERPRETER_FRAME_LOCALSPLUS, 8),
	SUM("gen_object.size", GEN_OBJECT_SIZE, GEN_OBJECT_GI_IFRAME, INTERPRETER_FRAME_SIZE, 0),
	ENDS("gen_object.gi_iframe", GEN_OBJECT_GI_IFRAME, GEN_OBJECT_GI_FRAME_STATE, 1),
	SUM("code_object.argcount", CODE_OBJECT_ARGCOUNT, PYOBJECT_SIZE, NO_FIELD, 36),
	SUM("code_object.firstlineno", CODE_OBJECT_FIRSTLINENO, CODE_OBJECT_ARGCOUNT, NO_FIELD, 16),
	SUM("code_object.localspluskinds", CODE_OBJECT_LOCALSPLUSKINDS, CODE_OBJECT_LOCALSPLUSNAMES, NO_FIELD, 8),
	SUM("code_object.filename", CODE_OBJECT_FILENAME, CODE_OBJECT_LOCALSPLUSKINDS, NO_FIELD, 8),
	SUM("code_object.name", CODE_OBJECT_NAME, CODE_OBJECT_FILENAME, NO_FIELD, 8),
	SUM("code_object.qualname", CODE_OBJECT_QUALNAME, CODE_OBJECT_NAME, NO_FIELD, 8),
	SUM("code_object.linetable", CODE_OBJECT_LINETABLE, CODE_OBJECT_QUALNAME, NO_FIELD, 8),
	ENDS("code_object.size", CODE_OBJECT_SIZE, CODE_OBJECT_CO_CODE_ADAPTIVE, 1),
	STATE("runtime_state.interpreters_head", RUNTIME_STATE_INTERPRETERS_HEAD, RUNTIME_STATE_FINALIZING, 24),
	STATE("interpreter_state.id", INTERPRETER_STATE_ID, INTERPRETER_STATE_NEXT, 8),
	STATE("interpreter_state.threads_main", INTERPRETER_STATE_THREADS_MAIN, INTERPRETER_STATE_THREADS_HEAD, 16),
	STATE("thread_state.next", THREAD_STATE_NEXT, THREAD_STATE_PREV, 8),
	STATE("thread_state.interp", THREAD_STATE_INTERP, THREAD_STATE_NEXT, 8),
	STATE("thread_state.native_thread_id", THREAD_STATE_NATIVE_THREAD_ID, THREAD_STATE_THREAD_ID, 8),
};
#undef ENDS
#undef SUM
#undef STATE

static bool has(const struct debug_reader *reader, enum debug_field field)
{
	return reader->table->at[field] != 0;
}

/* Sums of untrusted numbers may wrap around, which makes them wrong all the same. */
static uint64_t sum_of(const struct debug_reader *reader, const struct relation *r)
{
	uint64_t second = r->second == DEBUG_NO_FIELD ? 0 : debug_value(reader, r->second);
	uint64_t sum = debug_value(reader, r->first) + second + r->plus;

	return r->rounded ? (sum + 7) & ~7ull : sum;
}

int debug_check_relations(const struct debug_reader *reader, const struct pybpf_layout *layout)
{
	for (size_t i = 0; i < ARRAY_SIZE(relations); i++) {
		const struct relation *r = &relations[i];

		if (r->of_known_versions && layout->minor != reader->table->minor)
			continue;
		if (has(reader, r->sum) && has(reader, r->first) && debug_value(reader, r->sum) != sum_of(reader, r))
			return refuse(reader, "%s is %llu, and by other fields it is %llu", r->name,
				      (unsigned long long)debug_value(reader, r->sum),
				      (unsigned long long)sum_of(reader, r));
	}
	return 0;
}

void debug_drop_doubtful(const struct debug_reader *reader, struct pybpf_layout *layout)
{
	uint64_t gc = debug_value(reader, DEBUG_INTERPRETER_STATE_GC), gc_size = debug_value(reader, DEBUG_GC_SIZE);
	bool is_gc_doubtful = gc + gc_size != debug_value(reader, DEBUG_INTERPRETER_STATE_SYSDICT) ||
			      (layout->interp_gc_frame && layout->interp_gc_frame != layout->interp_collecting + 8);

	if (is_gc_doubtful) {
		layout->interp_collecting = 0;
		layout->interp_gc_frame = 0;
	}
	if (layout->interp_modules != debug_value(reader, DEBUG_INTERPRETER_STATE_BUILTINS) + 8)
		layout->interp_modules = 0;
	if (has(reader, DEBUG_THREAD_STATE_CURRENT_EXCEPTION) &&
	    layout->tstate_raised != debug_value(reader, DEBUG_THREAD_STATE_CURRENT_EXCEPTION)) {
		layout->tstate_raised = 0;
		layout->tstate_handled = 0;
	}
}

// SPDX-License-Identifier: Apache-2.0
/* Reads and checks the offsets that a _Py_DebugOffsets has. */
#include "cpython/debug_offsets.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/*
 * Limits in bytes, larger than any struct of CPython could sensibly be; _PyRuntimeState, which holds static objects,
 * has 0.5 MB.
 */
#define MAX_RUNTIME_SIZE (16 << 20)
#define MAX_STRUCT_SIZE  (4 << 20)

void debug_say_why(const struct debug_reader *reader, const char *fmt, ...)
{
	char found[192];
	va_list args;

	va_start(args, fmt);
	vsnprintf(found, sizeof(found), fmt, args);
	va_end(args);
	error_set(reader->error, -EINVAL, "the debug offsets of Python %s are refused: %s", reader->version, found);
}

/* Sizes of structs. */
static const struct size_rule {
	const char *name;
	enum debug_field field;
	uint32_t max;
} size_rules[] = {
	{"runtime_state", DEBUG_RUNTIME_STATE_SIZE, MAX_RUNTIME_SIZE},
	{"interpreter_state", DEBUG_INTERPRETER_STATE_SIZE, MAX_STRUCT_SIZE},
	{"thread_state", DEBUG_THREAD_STATE_SIZE, MAX_STRUCT_SIZE},
	{"interpreter_frame", DEBUG_INTERPRETER_FRAME_SIZE, 1024},
	{"code_object", DEBUG_CODE_OBJECT_SIZE, 1024},
	/* 16; 32 when free-threaded or with Py_TRACE_REFS; 48 with both. */
	{"pyobject", DEBUG_PYOBJECT_SIZE, 48},
	{"bytes_object", DEBUG_BYTES_OBJECT_SIZE, 256},
	{"unicode_object", DEBUG_UNICODE_OBJECT_SIZE, 256},
};

/* Which build has a field. */
enum rule_when {
	ALWAYS,
	WITH_TLBC,
};

/* Offsets of fields, and the members of struct pybpf_layout that receive them. */
static const struct offset_rule {
	const char *name;
	enum debug_field field;
	enum debug_field size_field; /* the size of the struct that has it */
	uint8_t width;
	uint8_t align;
	enum rule_when when;
	size_t out; /* offset in struct pybpf_layout */
} offset_rules[] = {
#define RULE(struct_name, field_name, STRUCT, FIELD, width, align, when, out)                                          \
	{                                                                                                              \
		struct_name "." field_name, DEBUG_##STRUCT##_##FIELD, DEBUG_##STRUCT##_SIZE, width, align, when,       \
			offsetof(struct pybpf_layout, out)                                                             \
	}
#define INTERP(field, FIELD, out) RULE("interpreter_state", field, INTERPRETER_STATE, FIELD, 8, 8, ALWAYS, out)
#define TSTATE(field, FIELD, out) RULE("thread_state", field, THREAD_STATE, FIELD, 8, 8, ALWAYS, out)
#define FRAME(field, FIELD, out)  RULE("interpreter_frame", field, INTERPRETER_FRAME, FIELD, 8, 8, ALWAYS, out)
#define CODE(field, FIELD, out)   RULE("code_object", field, CODE_OBJECT, FIELD, 8, 8, ALWAYS, out)
	INTERP("next", NEXT, interp_next),
	INTERP("threads_head", THREADS_HEAD, interp_threads_head),
	TSTATE("next", NEXT, tstate_next),
	TSTATE("interp", INTERP, tstate_interp),
	TSTATE("thread_id", THREAD_ID, tstate_thread_id),
	TSTATE("current_frame", CURRENT_FRAME, tstate_frame),
	RULE("thread_state", "status", THREAD_STATE, STATUS, 4, 4, ALWAYS, tstate_status),
	FRAME("executable", EXECUTABLE, frame_code),
	FRAME("previous", PREVIOUS, frame_previous),
	FRAME("instr_ptr", INSTR_PTR, frame_position),
	RULE("interpreter_frame", "owner", INTERPRETER_FRAME, OWNER, 1, 1, ALWAYS, frame_owner),
	RULE("interpreter_frame", "tlbc_index", INTERPRETER_FRAME, TLBC_INDEX, 4, 4, WITH_TLBC, frame_tlbc_index),
	RULE("pyobject", "ob_type", PYOBJECT, OB_TYPE, 8, 8, ALWAYS, code_type),
	CODE("filename", FILENAME, code_filename),
	CODE("name", NAME, code_name),
	CODE("qualname", QUALNAME, code_qualname),
	CODE("linetable", LINETABLE, code_linetable),
	RULE("code_object", "firstlineno", CODE_OBJECT, FIRSTLINENO, 4, 4, ALWAYS, code_firstlineno),
	/* Code units of 2 bytes. */
	RULE("code_object", "co_code_adaptive", CODE_OBJECT, CO_CODE_ADAPTIVE, 1, 2, ALWAYS, code_adaptive),
	RULE("code_object", "co_tlbc", CODE_OBJECT, CO_TLBC, 8, 8, WITH_TLBC, code_tlbc),
	RULE("unicode_object", "length", UNICODE_OBJECT, LENGTH, 8, 8, ALWAYS, str_length),
	RULE("unicode_object", "state", UNICODE_OBJECT, STATE, 4, 4, ALWAYS, str_state),
	RULE("bytes_object", "ob_size", BYTES_OBJECT, OB_SIZE, 8, 8, ALWAYS, bytes_size),
	RULE("bytes_object", "ob_sval", BYTES_OBJECT, OB_SVAL, 1, 1, ALWAYS, bytes_data),
#undef INTERP
#undef TSTATE
#undef FRAME
#undef CODE
#undef RULE
};

static uint16_t *layout_field(struct pybpf_layout *layout, size_t offset)
{
	return (uint16_t *)((char *)layout + offset);
}

int debug_check_sizes(const struct debug_reader *reader)
{
	for (size_t i = 0; i < ARRAY_SIZE(size_rules); i++) {
		const struct size_rule *rule = &size_rules[i];
		uint64_t size = debug_value(reader, rule->field);

		if (size < 16 || size > rule->max || size % 8 != 0)
			return refuse(reader, "%s.size is %llu, which cannot be", rule->name, (unsigned long long)size);
	}
	return 0;
}

static int debug_read_offset(const struct debug_reader *reader, const struct offset_rule *rule, uint16_t *out)
{
	uint64_t size = debug_value(reader, rule->size_field);
	uint64_t value = debug_value(reader, rule->field);

	if (!offset_is_inside(value, size, rule->width, rule->align) || value >= PYBPF_NO_OFFSET)
		return refuse(reader, "%s is at %llu of %llu bytes, which cannot be", rule->name,
			      (unsigned long long)value, (unsigned long long)size);
	*out = value;
	return 0;
}

static bool has_tlbc(const struct pybpf_layout *layout)
{
	return layout->free_threaded && layout->minor >= MINOR_TLBC;
}

int debug_read_offsets(const struct debug_reader *reader, struct pybpf_layout *layout)
{
	for (size_t i = 0; i < ARRAY_SIZE(offset_rules); i++) {
		const struct offset_rule *rule = &offset_rules[i];
		uint16_t *out = layout_field(layout, rule->out);
		int err;

		*out = PYBPF_NO_OFFSET;
		if (rule->when == WITH_TLBC && !has_tlbc(layout))
			continue;
		err = debug_read_offset(reader, rule, out);
		if (err)
			return err;
	}
	return 0;
}

int debug_check_overlaps(const struct debug_reader *reader, struct pybpf_layout *layout)
{
	for (size_t i = 0; i < ARRAY_SIZE(offset_rules); i++) {
		for (size_t j = 0; j < i; j++) {
			const struct offset_rule *a = &offset_rules[j], *b = &offset_rules[i];
			unsigned int at_a = *layout_field(layout, a->out), at_b = *layout_field(layout, b->out);

			if (a->size_field != b->size_field || at_a == PYBPF_NO_OFFSET || at_b == PYBPF_NO_OFFSET)
				continue;
			if (at_a < at_b + b->width && at_b < at_a + a->width)
				return refuse(reader, "%s at %u and %s at %u overlap", a->name, at_a, b->name, at_b);
		}
	}
	return 0;
}

int debug_check_headers(const struct debug_reader *reader, const struct pybpf_layout *layout)
{
	uint64_t header = debug_value(reader, DEBUG_PYOBJECT_SIZE);
	/* PyVarObject: the header and ob_size. */
	uint64_t var_header = header + 8;

	if (layout->bytes_size != header || layout->str_length != header)
		return refuse(reader,
			      "bytes_object.ob_size is at %u and unicode_object.length at %u, and both "
			      "should be at %llu",
			      layout->bytes_size, layout->str_length, (unsigned long long)header);
	if (layout->bytes_data < var_header || layout->str_state < header)
		return refuse(reader,
			      "bytes_object.ob_sval at %u or unicode_object.state at %u is in a header of "
			      "%llu bytes",
			      layout->bytes_data, layout->str_state, (unsigned long long)header);
	if (layout->code_filename < var_header || layout->code_name < var_header ||
	    layout->code_qualname < var_header || layout->code_linetable < var_header ||
	    layout->code_firstlineno < var_header || layout->code_adaptive < var_header ||
	    layout->code_tlbc < var_header)
		return refuse(reader, "a field of code_object is in its header of %llu bytes",
			      (unsigned long long)var_header);
	return 0;
}

int debug_read_interp_head(const struct debug_reader *reader, uint32_t *out)
{
	uint64_t size = debug_value(reader, DEBUG_RUNTIME_STATE_SIZE);
	uint64_t head = debug_value(reader, DEBUG_RUNTIME_STATE_INTERPRETERS_HEAD);

	/* The table itself comes first in _PyRuntimeState. */
	if (!offset_is_inside(head, size, 8, 8) || head < reader->table->size)
		return refuse(reader, "runtime_state.interpreters_head is at %llu of %llu bytes, which cannot be",
			      (unsigned long long)head, (unsigned long long)size);
	*out = head;
	return 0;
}

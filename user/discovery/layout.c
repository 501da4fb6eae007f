// SPDX-License-Identifier: Apache-2.0
/*
 * Offsets of the fields of CPython's structs: checked-in tables to 3.12, the process's own _Py_DebugOffsets from 3.13.
 */
#include "discovery/layout.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/* The fields of _Py_DebugOffsets that are used, by their path in that struct. */
enum debug_field {
	DEBUG_NO_FIELD,
	DEBUG_RUNTIME_STATE_SIZE,
	DEBUG_RUNTIME_STATE_INTERPRETERS_HEAD,
	DEBUG_INTERPRETER_STATE_SIZE,
	DEBUG_INTERPRETER_STATE_NEXT,
	DEBUG_INTERPRETER_STATE_THREADS_HEAD,
	DEBUG_INTERPRETER_STATE_CODE_OBJECT_GENERATION,
	DEBUG_THREAD_STATE_SIZE,
	DEBUG_THREAD_STATE_NEXT,
	DEBUG_THREAD_STATE_INTERP,
	DEBUG_THREAD_STATE_THREAD_ID,
	DEBUG_THREAD_STATE_CURRENT_FRAME,
	DEBUG_THREAD_STATE_STATUS,
	DEBUG_THREAD_STATE_DATASTACK_CHUNK,
	DEBUG_INTERPRETER_FRAME_SIZE,
	DEBUG_INTERPRETER_FRAME_EXECUTABLE,
	DEBUG_INTERPRETER_FRAME_PREVIOUS,
	DEBUG_INTERPRETER_FRAME_INSTR_PTR,
	DEBUG_INTERPRETER_FRAME_OWNER,
	DEBUG_INTERPRETER_FRAME_TLBC_INDEX,
	DEBUG_CODE_OBJECT_SIZE,
	DEBUG_CODE_OBJECT_FILENAME,
	DEBUG_CODE_OBJECT_NAME,
	DEBUG_CODE_OBJECT_QUALNAME,
	DEBUG_CODE_OBJECT_LINETABLE,
	DEBUG_CODE_OBJECT_FIRSTLINENO,
	DEBUG_CODE_OBJECT_LOCALSPLUSNAMES,
	DEBUG_CODE_OBJECT_CO_CODE_ADAPTIVE,
	DEBUG_CODE_OBJECT_CO_TLBC,
	DEBUG_PYOBJECT_SIZE,
	DEBUG_PYOBJECT_OB_TYPE,
	DEBUG_BYTES_OBJECT_SIZE,
	DEBUG_BYTES_OBJECT_OB_SIZE,
	DEBUG_BYTES_OBJECT_OB_SVAL,
	DEBUG_UNICODE_OBJECT_SIZE,
	DEBUG_UNICODE_OBJECT_LENGTH,
	DEBUG_UNICODE_OBJECT_STATE,
	DEBUG_UNICODE_OBJECT_ASCIIOBJECT_SIZE,
	DEBUG_UNICODE_OBJECT_COMPACTUNICODEOBJECT_SIZE,
	DEBUG_FIELDS,
};

/* Offset in bytes of each field in the _Py_DebugOffsets of one minor version; 0: that version lacks the field. */
struct debug_table {
	uint16_t minor;
	uint16_t size;
	uint16_t executor; /* bytes from a thread state's datastack_chunk to its current_executor; 0: no such field */
	uint16_t at[DEBUG_FIELDS];
};

/* Offset of func_state.next_version in the PyInterpreterState of one build of 3.13; the sizes identify the build. */
struct code_counter {
	uint32_t interp_size, tstate_size;
	uint32_t next_version;
};

#include "discovery/layout_tables.h"

/* The head that every _Py_DebugOffsets has: cookie, version, free_threaded. */
#define DEBUG_COOKIE           "xdebugpy"
#define DEBUG_AT_VERSION       8
#define DEBUG_AT_FREE_THREADED 16
#define DEBUG_HEAD             24

/* First minor version with thread-local bytecode, and with tagged references in frames. */
#define MINOR_TLBC   14
#define MINOR_TAGGED 14
/* Py_TAG_BITS of the default build's pycore_stackref.h (3.14, 3.15). Free-threaded 3.14 uses the lowest bit
 * alone, and objects are aligned to 8 bytes at least, so that the mask is right there as well. */
#define STACKREF_TAG_MASK 3
/* From 3.12: FRAME_OWNED_BY_CSTACK (3.12, 3.13), FRAME_OWNED_BY_INTERPRETER (3.14+). */
#define FRAME_OWNER_NOT_PYTHON 3

/*
 * Limits in bytes, larger than any struct of CPython could sensibly be; _PyRuntimeState, which holds static objects,
 * has 0.5 MB.
 */
#define MAX_RUNTIME_SIZE (16 << 20)
#define MAX_STRUCT_SIZE  (4 << 20)

static bool layout_windows_fit(const struct pybpf_layout *layout)
{
	return layout->tstate_window <= PYBPF_TSTATE_WINDOW && layout->frame_window <= PYBPF_FRAME_WINDOW &&
	       layout->code_window <= PYBPF_CODE_WINDOW;
}

int layout_from_table(int major, int minor, bool debug_build, struct layout_build *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(layout_builds); i++) {
		const struct layout_build *build = &layout_builds[i];

		if (build->layout.major != major || build->layout.minor != minor ||
		    build->layout.debug_build != debug_build)
			continue;
		if (!layout_windows_fit(&build->layout))
			return -ENOENT;
		*out = *build;
		/*
		 * Nothing here changed within a minor series but 3.7's gilstate.tstate_current: 1392 up to
		 * 3.7.3, 1480 from 3.7.4 on, where PyGC_Head grew (bpo-27987, GH-13335). The row has the
		 * latter.
		 */
#ifndef __x86_64__
		/* It comes after the GIL's mutexes, whose size is the C library's: unknown elsewhere. */
		out->runtime_tstate_current = LAYOUT_NONE;
#endif
		return 0;
	}
	return -ENOENT;
}

bool layout_has_debug_offsets(const uint8_t *bytes, size_t len)
{
	return len >= strlen(DEBUG_COOKIE) && memcmp(bytes, DEBUG_COOKIE, strlen(DEBUG_COOKIE)) == 0;
}

/* One reading of a _Py_DebugOffsets. */
struct debug_reader {
	const uint8_t *bytes;
	size_t len;
	const struct debug_table *table;
	struct error *error;
	char version[16]; /* "3.14.2", for sentences */
};

__attribute__((format(printf, 2, 3))) static void debug_say_why(const struct debug_reader *reader, const char *fmt, ...)
{
	char found[192];
	va_list args;

	va_start(args, fmt);
	vsnprintf(found, sizeof(found), fmt, args);
	va_end(args);
	error_set(reader->error, -EINVAL, "the debug offsets of Python %s are refused: %s", reader->version, found);
}

/* A macro, because static analysers do not look into variadic functions and would not see that it is never 0. */
#define refuse(reader, ...) (debug_say_why(reader, __VA_ARGS__), -EINVAL)

static uint64_t read_u64(const uint8_t *bytes)
{
	uint64_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

/* The value of a field that the table has; debug_check_length() made sure that it lies within the bytes. */
static uint64_t debug_value(const struct debug_reader *reader, enum debug_field field)
{
	return read_u64(reader->bytes + reader->table->at[field]);
}

static int debug_check_length(const struct debug_reader *reader)
{
	if (reader->len < reader->table->size)
		return refuse(reader, "they have %zu bytes, and %u were expected", reader->len, reader->table->size);
	return 0;
}

/* The table of this minor version; for a newer one, the newest known. */
static const struct debug_table *debug_table_find(unsigned int minor)
{
	const struct debug_table *found = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(debug_tables); i++)
		if (debug_tables[i].minor <= minor)
			found = &debug_tables[i];
	return found;
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

static int debug_check_sizes(const struct debug_reader *reader)
{
	for (size_t i = 0; i < ARRAY_SIZE(size_rules); i++) {
		const struct size_rule *rule = &size_rules[i];
		uint64_t size = debug_value(reader, rule->field);

		if (size < 16 || size > rule->max || size % 8 != 0)
			return refuse(reader, "%s.size is %llu, which cannot be", rule->name, (unsigned long long)size);
	}
	return 0;
}

/* Returns whether a field of this width and alignment at this offset lies within a struct of this size. */
static bool offset_is_inside(uint64_t value, uint64_t size, unsigned int width, unsigned int align)
{
	return size >= width && value <= size - width && value % align == 0;
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

static int debug_read_offsets(const struct debug_reader *reader, struct pybpf_layout *layout)
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

/* Refuses fields of one struct that overlap: they show that the table is not the expected one. */
static int debug_check_overlaps(const struct debug_reader *reader, struct pybpf_layout *layout)
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

/*
 * Checks what holds in every CPython with such a table (tools/gen/layout_probe.c asserts it): a field that follows the
 * object's header starts right behind it, and no field of an object lies within the header. This finds a shifted table.
 */
static int debug_check_headers(const struct debug_reader *reader, const struct pybpf_layout *layout)
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

/* Reads the fields of strings that the table has, and derives those that it lacks. */
static int debug_read_strings(const struct debug_reader *reader, struct pybpf_layout *layout)
{
	uint64_t size = debug_value(reader, DEBUG_UNICODE_OBJECT_SIZE);
	uint64_t ascii = debug_value(reader, DEBUG_UNICODE_OBJECT_ASCIIOBJECT_SIZE);
	/* PyCompactUnicodeObject adds utf8_length and utf8, and only 3.15's table says so. */
	uint64_t compact = ascii + 16;

	if (reader->table->at[DEBUG_UNICODE_OBJECT_COMPACTUNICODEOBJECT_SIZE])
		compact = debug_value(reader, DEBUG_UNICODE_OBJECT_COMPACTUNICODEOBJECT_SIZE);
	/* Compared one by one, so that no sum of untrusted numbers can wrap around. */
	if (ascii > size || compact > size || ascii >= compact || ascii % 8 != 0 || compact % 8 != 0 ||
	    ascii < layout->str_state + 4u)
		return refuse(reader,
			      "unicode_object has %llu bytes, %llu of them for ASCII and %llu when compact, "
			      "which cannot be",
			      (unsigned long long)size, (unsigned long long)ascii, (unsigned long long)compact);
	layout->str_ascii_data = ascii;
	layout->str_compact_data = compact;
	/* The hash lies between length and state; a newer Python may put more there. */
	layout->str_hash = PYBPF_NO_OFFSET;
	if (layout->str_state == layout->str_length + 16)
		layout->str_hash = layout->str_length + 8;
	return 0;
}

/*
 * Derives the offset of co_version, which no table has. In 3.12 to 3.15 it comes right before co_localsplusnames
 * (tools/gen/layout_probe.c asserts it); in a newer version it is unknown.
 */
static int debug_read_code_version(const struct debug_reader *reader, struct pybpf_layout *layout)
{
	uint64_t size = debug_value(reader, DEBUG_CODE_OBJECT_SIZE);
	uint64_t localsplusnames = debug_value(reader, DEBUG_CODE_OBJECT_LOCALSPLUSNAMES);

	layout->code_version = PYBPF_NO_OFFSET;
	if (layout->minor != reader->table->minor)
		return 0;
	if (!offset_is_inside(localsplusnames, size, 8, 8) ||
	    localsplusnames < debug_value(reader, DEBUG_PYOBJECT_SIZE) + 8 + 4)
		return refuse(reader, "code_object.localsplusnames is at %llu of %llu bytes, which cannot be",
			      (unsigned long long)localsplusnames, (unsigned long long)size);
	layout->code_version = localsplusnames - 4;
	return 0;
}

/*
 * Finds the interpreter's counter of code objects. The counter is read with each sample, and a wrong offset would go
 * unnoticed: 3.13's table does not have it, so a build of 3.13 with other sizes than the headers' does without the
 * counter.
 */
static int debug_read_code_guard(const struct debug_reader *reader, struct pybpf_layout *layout)
{
	uint64_t size = debug_value(reader, DEBUG_INTERPRETER_STATE_SIZE), generation;

	layout->interp_code_guard = 0;
	layout->code_guard_size = 0;
	if (layout->minor != reader->table->minor)
		return 0;
	if (!reader->table->at[DEBUG_INTERPRETER_STATE_CODE_OBJECT_GENERATION]) {
		for (size_t i = 0; i < ARRAY_SIZE(code_counters); i++) {
			if (code_counters[i].interp_size != size ||
			    code_counters[i].tstate_size != debug_value(reader, DEBUG_THREAD_STATE_SIZE))
				continue;
			layout->interp_code_guard = code_counters[i].next_version;
			layout->code_guard_size = 4;
		}
		return 0;
	}
	generation = debug_value(reader, DEBUG_INTERPRETER_STATE_CODE_OBJECT_GENERATION);
	if (!offset_is_inside(generation, size, 8, 8) || !generation)
		return refuse(reader,
			      "interpreter_state.code_object_generation is at %llu of %llu bytes, which cannot be",
			      (unsigned long long)generation, (unsigned long long)size);
	layout->interp_code_guard = (uint32_t)generation;
	layout->code_guard_size = 8;
	return 0;
}

/*
 * Derives, as for co_version, the offsets of the data stack's top and limit, which follow its chunk, and of the current
 * executor.
 */
static int debug_read_datastack(const struct debug_reader *reader, struct pybpf_layout *layout)
{
	uint64_t size = debug_value(reader, DEBUG_THREAD_STATE_SIZE);
	uint64_t chunk = debug_value(reader, DEBUG_THREAD_STATE_DATASTACK_CHUNK);
	unsigned int executor = reader->table->executor;

	layout->tstate_datastack_top = 0;
	layout->tstate_executor = 0;
	if (layout->minor != reader->table->minor)
		return 0;
	if (!offset_is_inside(chunk, size, executor ? executor + 8 : 24, 8))
		return refuse(reader, "thread_state.datastack_chunk is at %llu of %llu bytes, which cannot be",
			      (unsigned long long)chunk, (unsigned long long)size);
	layout->tstate_datastack_top = chunk + 8;
	if (executor)
		layout->tstate_executor = chunk + executor;
	return 0;
}

/* Derives likewise the offset of a frame's function, which follows its previous frame. */
static int debug_read_function(const struct debug_reader *reader, struct pybpf_layout *layout)
{
	uint64_t size = debug_value(reader, DEBUG_INTERPRETER_FRAME_SIZE);

	layout->frame_mark = PYBPF_NO_OFFSET;
	if (layout->minor != reader->table->minor)
		return 0;
	if (!offset_is_inside(layout->frame_previous, size, 16, 8))
		return refuse(reader, "interpreter_frame.previous is at %u of %llu bytes, which cannot be",
			      layout->frame_previous, (unsigned long long)size);
	layout->frame_mark = layout->frame_previous + 8;
	return 0;
}

static int debug_read_interp_head(const struct debug_reader *reader, uint32_t *out)
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

/* Grows a window so that it covers a field; PYBPF_NO_OFFSET needs no room. */
static void window_cover(uint16_t *window, uint16_t offset, unsigned int width)
{
	unsigned int end = (offset + width + 7) / 8 * 8;

	/* An end beyond 16 bits is above every limit, too. */
	if (offset != PYBPF_NO_OFFSET && end > *window)
		*window = end < UINT16_MAX ? end : UINT16_MAX;
}

static int debug_set_windows(const struct debug_reader *reader, struct pybpf_layout *layout)
{
	window_cover(&layout->tstate_window, layout->tstate_next, 8);
	window_cover(&layout->tstate_window, layout->tstate_interp, 8);
	window_cover(&layout->tstate_window, layout->tstate_thread_id, 8);
	window_cover(&layout->tstate_window, layout->tstate_frame, 8);
	window_cover(&layout->tstate_window, layout->tstate_status, 4);
	window_cover(&layout->tstate_window, layout->tstate_datastack_top, 16);
	if (layout->tstate_executor)
		window_cover(&layout->tstate_window, layout->tstate_executor, 8);
	window_cover(&layout->frame_window, layout->frame_code, 8);
	window_cover(&layout->frame_window, layout->frame_previous, 8);
	window_cover(&layout->frame_window, layout->frame_position, 8);
	window_cover(&layout->frame_window, layout->frame_owner, 1);
	window_cover(&layout->frame_window, layout->frame_tlbc_index, 4);
	window_cover(&layout->frame_window, layout->frame_mark, 8);
	window_cover(&layout->code_window, layout->code_type, 8);
	window_cover(&layout->code_window, layout->code_filename, 8);
	window_cover(&layout->code_window, layout->code_name, 8);
	window_cover(&layout->code_window, layout->code_qualname, 8);
	window_cover(&layout->code_window, layout->code_linetable, 8);
	window_cover(&layout->code_window, layout->code_firstlineno, 4);
	window_cover(&layout->code_window, layout->code_version, 4);
	if (!layout_windows_fit(layout))
		return refuse(reader,
			      "thread state, frame and code object need windows of %u, %u and %u bytes, "
			      "above the limits of %u, %u and %u",
			      layout->tstate_window, layout->frame_window, layout->code_window, PYBPF_TSTATE_WINDOW,
			      PYBPF_FRAME_WINDOW, PYBPF_CODE_WINDOW);
	return 0;
}

/* Reads cookie, version and free_threaded, and chooses the table. */
static int debug_read_head(struct debug_reader *reader, struct layout_build *build)
{
	uint64_t version, free_threaded;

	if (reader->len < DEBUG_HEAD)
		return refuse(reader, "they have only %zu bytes", reader->len);
	if (!layout_has_debug_offsets(reader->bytes, reader->len))
		return refuse(reader, "they do not begin with " DEBUG_COOKIE);
	version = read_u64(reader->bytes + DEBUG_AT_VERSION);
	if (version >> 24 != 3)
		return refuse(reader, "their version is %#llx, which is no Python 3", (unsigned long long)version);
	snprintf(reader->version, sizeof(reader->version), "3.%u.%u", (unsigned int)(version >> 16 & 0xff),
		 (unsigned int)(version >> 8 & 0xff));
	/* The release level: alpha, beta, candidate or final. */
	if (!strchr("abcf", "0123456789abcdef"[version >> 4 & 0xf]))
		return refuse(reader, "their version is %#llx, which names no release", (unsigned long long)version);
	build->version_hex = version;
	build->layout.major = 3;
	build->layout.minor = version >> 16 & 0xff;
	reader->table = debug_table_find(build->layout.minor);
	if (!reader->table)
		return refuse(reader, "Python has them from 3.%u on", debug_tables[0].minor);
	free_threaded = read_u64(reader->bytes + DEBUG_AT_FREE_THREADED);
	if (free_threaded > 1)
		return refuse(reader, "free_threaded is %llu, neither 0 nor 1", (unsigned long long)free_threaded);
	build->layout.free_threaded = free_threaded;
	return 0;
}

/* Sets the fields that follow from the version alone. */
static void debug_set_kinds(struct pybpf_layout *layout)
{
	layout->tstate_cframe = PYBPF_NO_OFFSET;
	layout->cframe_previous = PYBPF_NO_OFFSET;
	layout->cframe_frame = PYBPF_NO_OFFSET;
	layout->frame_entry = PYBPF_NO_OFFSET;
	layout->owner_not_python = FRAME_OWNER_NOT_PYTHON;
	layout->code_tag_mask = layout->minor >= MINOR_TAGGED ? STACKREF_TAG_MASK : 0;
	layout->position_kind = PYBPF_POS_INSTR_PTR;
	layout->string_kind = PYBPF_STR_UNICODE;
	layout->line_kind = PYBPF_LINES_PEP657;
	/* Free-threaded 3.14+ has a whole byte of `interned` before the kind, for atomic access (unicodeobject.h). */
	layout->str_kind_shift = layout->free_threaded && layout->minor >= MINOR_TLBC ? 8 : 2;
	/* debug_build stays 0: the offsets already are the debug build's own. */
}

static void debug_set_origin(const struct debug_reader *reader, struct layout_build *build)
{
	snprintf(build->origin, sizeof(build->origin), "_Py_DebugOffsets of Python %s%s%s", reader->version,
		 build->layout.free_threaded ? "t" : "",
		 build->layout.minor != reader->table->minor ? ", newer than those known" : "");
}

int layout_from_debug_offsets(const uint8_t *bytes, size_t len, struct layout_build *out, struct error *error)
{
	struct debug_reader reader = {.bytes = bytes, .len = len, .error = error, .version = "?"};
	struct layout_build build = {.runtime_tstate_current = LAYOUT_NONE};
	int err;

	err = debug_read_head(&reader, &build);
	if (!err)
		err = debug_check_length(&reader);
	if (!err)
		err = debug_check_sizes(&reader);
	if (!err)
		err = debug_read_offsets(&reader, &build.layout);
	if (!err)
		err = debug_check_overlaps(&reader, &build.layout);
	if (!err)
		err = debug_check_headers(&reader, &build.layout);
	if (!err)
		err = debug_read_strings(&reader, &build.layout);
	if (!err)
		err = debug_read_code_version(&reader, &build.layout);
	if (!err)
		err = debug_read_code_guard(&reader, &build.layout);
	if (!err)
		err = debug_read_datastack(&reader, &build.layout);
	if (!err)
		err = debug_read_function(&reader, &build.layout);
	if (!err)
		err = debug_set_windows(&reader, &build.layout);
	if (!err)
		err = debug_read_interp_head(&reader, &build.runtime_interp_head);
	if (err)
		return err;
	debug_set_kinds(&build.layout);
	debug_set_origin(&reader, &build);
	*out = build;
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* The parts of reading a _Py_DebugOffsets (3.13 and later); no other room includes this. */
#ifndef CPYTHON_DEBUG_OFFSETS_H
#define CPYTHON_DEBUG_OFFSETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "cpython/layout.h"

/* The fields of _Py_DebugOffsets that are used, if only to check others, by their path in that struct. */
enum debug_field {
	DEBUG_NO_FIELD,
	DEBUG_RUNTIME_STATE_SIZE,
	DEBUG_RUNTIME_STATE_FINALIZING,
	DEBUG_RUNTIME_STATE_INTERPRETERS_HEAD,
	DEBUG_INTERPRETER_STATE_SIZE,
	DEBUG_INTERPRETER_STATE_ID,
	DEBUG_INTERPRETER_STATE_NEXT,
	DEBUG_INTERPRETER_STATE_THREADS_HEAD,
	DEBUG_INTERPRETER_STATE_THREADS_MAIN,
	DEBUG_INTERPRETER_STATE_CEVAL_GIL,
	DEBUG_INTERPRETER_STATE_GC,
	DEBUG_INTERPRETER_STATE_IMPORTS_MODULES,
	DEBUG_INTERPRETER_STATE_SYSDICT,
	DEBUG_INTERPRETER_STATE_BUILTINS,
	DEBUG_INTERPRETER_STATE_CODE_OBJECT_GENERATION,
	DEBUG_THREAD_STATE_SIZE,
	DEBUG_THREAD_STATE_PREV,
	DEBUG_THREAD_STATE_NEXT,
	DEBUG_THREAD_STATE_INTERP,
	DEBUG_THREAD_STATE_THREAD_ID,
	DEBUG_THREAD_STATE_NATIVE_THREAD_ID,
	DEBUG_THREAD_STATE_CURRENT_FRAME,
	DEBUG_THREAD_STATE_STATUS,
	DEBUG_THREAD_STATE_DATASTACK_CHUNK,
	DEBUG_THREAD_STATE_CURRENT_EXCEPTION,
	DEBUG_INTERPRETER_FRAME_SIZE,
	DEBUG_INTERPRETER_FRAME_EXECUTABLE,
	DEBUG_INTERPRETER_FRAME_PREVIOUS,
	DEBUG_INTERPRETER_FRAME_INSTR_PTR,
	DEBUG_INTERPRETER_FRAME_OWNER,
	DEBUG_INTERPRETER_FRAME_LOCALSPLUS,
	DEBUG_INTERPRETER_FRAME_TLBC_INDEX,
	DEBUG_CODE_OBJECT_SIZE,
	DEBUG_CODE_OBJECT_FILENAME,
	DEBUG_CODE_OBJECT_NAME,
	DEBUG_CODE_OBJECT_QUALNAME,
	DEBUG_CODE_OBJECT_LINETABLE,
	DEBUG_CODE_OBJECT_FIRSTLINENO,
	DEBUG_CODE_OBJECT_ARGCOUNT,
	DEBUG_CODE_OBJECT_LOCALSPLUSNAMES,
	DEBUG_CODE_OBJECT_LOCALSPLUSKINDS,
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
	DEBUG_GC_SIZE,
	DEBUG_GC_COLLECTING,
	DEBUG_GC_FRAME,
	DEBUG_INTERPRETER_FRAME_STACKPOINTER,
	DEBUG_GEN_OBJECT_SIZE,
	DEBUG_GEN_OBJECT_GI_IFRAME,
	DEBUG_GEN_OBJECT_GI_FRAME_STATE,
	DEBUG_FIELDS,
};

/* Offset in bytes of each field in the _Py_DebugOffsets of one minor version; 0: that version lacks the field. */
struct debug_table {
	uint16_t minor;
	uint16_t size;
	uint16_t executor; /* bytes from a thread state's datastack_chunk to its current_executor; 0: no such field */
	uint16_t frame_to_exc_info; /* bytes from a thread state's current_frame to its exc_info */
	uint16_t at[DEBUG_FIELDS];
};

/* Offset of func_state.next_version in the PyInterpreterState of one build of 3.13; the sizes identify the build. */
struct code_counter {
	uint32_t interp_size, tstate_size;
	uint32_t next_version;
};

/* One reading of a _Py_DebugOffsets. */
struct debug_reader {
	const uint8_t *bytes;
	size_t len;
	const struct debug_table *table;
	struct error *error;
	char version[16]; /* "3.14.2", for sentences */
};

/* Puts a sentence that ends with what was found into the reader's error. */
void debug_say_why(const struct debug_reader *reader, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A macro, because static analysers do not look into variadic functions and would not see that it is never 0. */
#define refuse(reader, ...) (debug_say_why(reader, __VA_ARGS__), -EINVAL)

static inline uint64_t read_u64(const uint8_t *bytes)
{
	uint64_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

/* The value of a field that the table has; debug_check_length() made sure that it lies within the bytes. */
static inline uint64_t debug_value(const struct debug_reader *reader, enum debug_field field)
{
	return read_u64(reader->bytes + reader->table->at[field]);
}

/* Returns whether a field of this width and alignment at this offset lies within a struct of this size. */
static inline bool offset_is_inside(uint64_t value, uint64_t size, unsigned int width, unsigned int align)
{
	return size >= width && value <= size - width && value % align == 0;
}

/* First minor version with thread-local bytecode. */
#define MINOR_TLBC 14

/* layout.c */

/* Returns whether the layout's windows are within the limits of pybpf.h. */
bool layout_windows_fit(const struct pybpf_layout *layout);
/* Returns the table of the minor version; for a newer one, the newest known; NULL for one before 3.13. */
const struct debug_table *debug_table_find(unsigned int minor);
/* Returns the first minor version that has a table. */
unsigned int debug_table_first_minor(void);
/* Returns the offset of the counter of code objects of a build of 3.13 with these sizes, or 0. */
uint32_t debug_table_code_counter(uint64_t interp_size, uint64_t tstate_size);

/*
 * Each of the functions below returns 0, or -EINVAL with a sentence in the reader's error.
 *
 * debug_fields.c: the offsets that the table has.
 */

int debug_check_sizes(const struct debug_reader *reader);
int debug_read_offsets(const struct debug_reader *reader, struct pybpf_layout *layout);
int debug_read_interp_head(const struct debug_reader *reader, uint32_t *out);
/* Refuses fields of one struct that overlap: they show that the table is not the expected one. */
int debug_check_overlaps(const struct debug_reader *reader, struct pybpf_layout *layout);
/*
 * Checks what holds in every CPython with such a table (tools/gen/layout_probe.c asserts it): a field that follows the
 * object's header starts right behind it, and no field of an object lies within the header. This finds a shifted table.
 */
int debug_check_headers(const struct debug_reader *reader, const struct pybpf_layout *layout);

/* debug_relations.c: fields by other ones. */

/*
 * Refuses a table whose fields do not stand to each other as in every CPython with such a table
 * (tools/gen/layout_probe.c asserts it). This finds a field that is wrong by itself, and one that was put between
 * others.
 */
int debug_check_relations(const struct debug_reader *reader, const struct pybpf_layout *layout);
/* Takes out of the layout what other fields of the table contradict, and profiles can do without. */
void debug_drop_doubtful(const struct debug_reader *reader, struct pybpf_layout *layout);

/* debug_derive.c: the offsets that the table lacks. */

/* Reads the fields of strings that the table has, and derives those that it lacks. */
int debug_read_strings(const struct debug_reader *reader, struct pybpf_layout *layout);
/*
 * Derives the offset of co_version, which no table has. In 3.12 to 3.15 it comes right before co_localsplusnames
 * (tools/gen/layout_probe.c asserts it); in a newer version it is unknown.
 */
int debug_read_code_version(const struct debug_reader *reader, struct pybpf_layout *layout);
/*
 * Finds the interpreter's counter of code objects. The counter is read with each sample, and a wrong offset would go
 * unnoticed: 3.13's table does not have it, so a build of 3.13 with other sizes than the headers' does without the
 * counter.
 */
int debug_read_code_guard(const struct debug_reader *reader, struct pybpf_layout *layout);
/* Finds the pointer to the GIL in an interpreter. */
int debug_read_gil(const struct debug_reader *reader, struct pybpf_layout *layout);
/* Finds sys.modules and the state of the garbage collection in an interpreter. */
int debug_read_interpreter(const struct debug_reader *reader, struct pybpf_layout *layout);
/*
 * Derives, as for co_version, where a thread state has the exceptions that it raises and handles, from where it has its
 * frame.
 */
int debug_read_exception(const struct debug_reader *reader, struct pybpf_layout *layout);
/*
 * Derives, as for co_version, the offsets of the data stack's top and limit, which follow its chunk, and of the current
 * executor.
 */
int debug_read_datastack(const struct debug_reader *reader, struct pybpf_layout *layout);
/* Reads where a generator has its frame, and a suspended frame the end of its stack, from 3.14 on. */
int debug_read_generator(const struct debug_reader *reader, struct pybpf_layout *layout);
/* Derives likewise the offset of a frame's function, which follows its previous frame. */
int debug_read_function(const struct debug_reader *reader, struct pybpf_layout *layout);

#endif

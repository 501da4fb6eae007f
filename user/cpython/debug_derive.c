// SPDX-License-Identifier: Apache-2.0
/* Derives offsets that a _Py_DebugOffsets lacks from those that it has. */
#include "cpython/debug_offsets.h"

#include <errno.h>

int debug_read_strings(const struct debug_reader *reader, struct pybpf_layout *layout)
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

int debug_read_code_version(const struct debug_reader *reader, struct pybpf_layout *layout)
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

int debug_read_code_guard(const struct debug_reader *reader, struct pybpf_layout *layout)
{
	uint64_t size = debug_value(reader, DEBUG_INTERPRETER_STATE_SIZE), generation;

	layout->interp_code_guard = 0;
	layout->code_guard_size = 0;
	if (layout->minor != reader->table->minor)
		return 0;
	if (!reader->table->at[DEBUG_INTERPRETER_STATE_CODE_OBJECT_GENERATION]) {
		layout->interp_code_guard =
			debug_table_code_counter(size, debug_value(reader, DEBUG_THREAD_STATE_SIZE));
		layout->code_guard_size = layout->interp_code_guard ? 4 : 0;
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

int debug_read_gil(const struct debug_reader *reader, struct pybpf_layout *layout)
{
	uint64_t size = debug_value(reader, DEBUG_INTERPRETER_STATE_SIZE);
	uint64_t gil = debug_value(reader, DEBUG_INTERPRETER_STATE_CEVAL_GIL);

	if (!offset_is_inside(gil, size, 8, 8))
		return refuse(reader, "interpreter_state.ceval_gil is at %llu of %llu bytes, which cannot be",
			      (unsigned long long)gil, (unsigned long long)size);
	layout->interp_gil = (uint32_t)gil;
	return 0;
}

/* Puts the offset of a field of an interpreter into *out, if the field is inside. Returns 0 or -EINVAL. */
static int read_interpreter_field(const struct debug_reader *reader, const char *name, uint64_t at, unsigned int width,
				  uint32_t *out)
{
	uint64_t size = debug_value(reader, DEBUG_INTERPRETER_STATE_SIZE);

	if (!offset_is_inside(at, size, width, width) || !at)
		return refuse(reader, "%s is at %llu of the %llu bytes of an interpreter, which cannot be", name,
			      (unsigned long long)at, (unsigned long long)size);
	*out = (uint32_t)at;
	return 0;
}

int debug_read_interpreter(const struct debug_reader *reader, struct pybpf_layout *layout)
{
	uint64_t gc = debug_value(reader, DEBUG_INTERPRETER_STATE_GC), gc_size = debug_value(reader, DEBUG_GC_SIZE);
	uint64_t collecting = debug_value(reader, DEBUG_GC_COLLECTING);
	int err;

	layout->interp_gc_frame = 0;
	err = read_interpreter_field(reader, "imports_modules",
				     debug_value(reader, DEBUG_INTERPRETER_STATE_IMPORTS_MODULES), 8,
				     &layout->interp_modules);
	if (!err && (!collecting || !offset_is_inside(collecting, gc_size, 4, 4)))
		return refuse(reader, "gc.collecting is at %llu of %llu bytes, which cannot be",
			      (unsigned long long)collecting, (unsigned long long)gc_size);
	err = err ?: read_interpreter_field(reader, "gc.collecting", gc + collecting, 4, &layout->interp_collecting);
	if (err || !reader->table->at[DEBUG_GC_FRAME])
		return err;
	return read_interpreter_field(reader, "gc.frame", gc + debug_value(reader, DEBUG_GC_FRAME), 8,
				      &layout->interp_gc_frame);
}

int debug_read_exception(const struct debug_reader *reader, struct pybpf_layout *layout)
{
	uint64_t size = debug_value(reader, DEBUG_THREAD_STATE_SIZE);
	uint64_t handled = layout->tstate_frame + (uint64_t)reader->table->frame_to_exc_info;

	layout->tstate_handled = 0;
	layout->tstate_raised = 0;
	layout->handled_value = 0;
	if (layout->minor != reader->table->minor)
		return 0;
	if (!offset_is_inside(handled, size, 8, 8))
		return refuse(reader, "thread_state.current_frame is at %u of %llu bytes, which cannot be",
			      layout->tstate_frame, (unsigned long long)size);
	layout->tstate_handled = (uint16_t)handled;
	layout->tstate_raised = (uint16_t)(handled - 8);
	return 0;
}

int debug_read_datastack(const struct debug_reader *reader, struct pybpf_layout *layout)
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

int debug_read_function(const struct debug_reader *reader, struct pybpf_layout *layout)
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

int debug_read_generator(const struct debug_reader *reader, struct pybpf_layout *layout)
{
	uint64_t size, frame_size = debug_value(reader, DEBUG_INTERPRETER_FRAME_SIZE), frame, state, stack;

	layout->frame_stack = 0;
	layout->gen_frame = 0;
	layout->gen_state = 0;
	if (!reader->table->at[DEBUG_GEN_OBJECT_SIZE])
		return 0;
	size = debug_value(reader, DEBUG_GEN_OBJECT_SIZE);
	frame = debug_value(reader, DEBUG_GEN_OBJECT_GI_IFRAME);
	state = debug_value(reader, DEBUG_GEN_OBJECT_GI_FRAME_STATE);
	stack = debug_value(reader, DEBUG_INTERPRETER_FRAME_STACKPOINTER);
	if (size >= PYBPF_NO_OFFSET || !offset_is_inside(frame, size, 8, 8) || !offset_is_inside(state, size, 1, 1) ||
	    state < debug_value(reader, DEBUG_PYOBJECT_SIZE) || !frame || !offset_is_inside(stack, frame_size, 8, 8))
		return refuse(reader,
			      "a generator of %llu bytes has its frame at %llu and its state at %llu, and a frame its "
			      "stack at %llu, which cannot be",
			      (unsigned long long)size, (unsigned long long)frame, (unsigned long long)state,
			      (unsigned long long)stack);
	layout->frame_stack = (uint16_t)stack;
	layout->gen_frame = (uint16_t)frame;
	layout->gen_state = (uint16_t)state;
	return 0;
}

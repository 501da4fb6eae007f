// SPDX-License-Identifier: Apache-2.0
/*
 * Checks the frames of a Python that is newer than those known. Its debug offsets say where a frame has its owner and
 * its position, but not what these mean: other values of the owner would make the walk pass over functions, and a
 * position that is no address would give false lines.
 */
#include <errno.h>
#include <string.h>

#include "cpython/facts.h"
#include "cpython/structs.h"
#include "discovery/validate.h"

/* Frames nearest the leaf of a thread, and frames of all threads. */
#define MAX_FRAMES_OF_THREAD 64
#define MAX_FRAMES           256
/* _Py_CODEUNIT */
#define UNIT 2

/* A frame as it was read. */
struct frame {
	uint64_t addr;
	uint8_t bytes[PYBPF_FRAME_WINDOW];
};

static uint64_t frame_u64(const struct frame *frame, uint16_t offset)
{
	uint64_t value;

	memcpy(&value, frame->bytes + offset, sizeof(value));
	return value;
}

static int read_frame(const struct validation *v, uint64_t addr, struct frame *out)
{
	out->addr = addr;
	return validate_read(v, addr, out->bytes, v->python->build.layout.frame_window);
}

/* Returns whether the object is a code object: its type is the one with this name. */
static bool is_code(const struct validation *v, uint64_t object)
{
	const struct pybpf_layout *layout = &v->python->build.layout;
	uint64_t type, name;
	char text[5] = "";

	if (!validate_is_address(object) || validate_read(v, object + layout->code_type, &type, sizeof(type)))
		return false;
	if (v->python->code_type_addr)
		return type == v->python->code_type_addr;
	return !validate_read(v, type + cpython_header_size(layout) + PYBPF_TYPE_NAME, &name, sizeof(name)) &&
	       !validate_read(v, name, text, sizeof(text)) && !memcmp(text, "code", sizeof(text));
}

/* Finds where the bytecode begins that the frame runs: the code object's own, or a copy of it (free-threaded). */
static bool find_bytecode(const struct validation *v, const struct frame *frame, uint64_t code, uint64_t *begin)
{
	const struct pybpf_layout *layout = &v->python->build.layout;
	uint64_t array;
	int64_t count;
	int32_t index = 0;

	if (layout->frame_tlbc_index != PYBPF_NO_OFFSET)
		memcpy(&index, frame->bytes + layout->frame_tlbc_index, sizeof(index));
	*begin = code + layout->code_adaptive;
	if (!index)
		return true;
	return !validate_read(v, code + layout->code_tlbc, &array, sizeof(array)) &&
	       !validate_read(v, array, &count, sizeof(count)) && index > 0 && index < count &&
	       !validate_read(v, array + 8 + 8 * (uint64_t)index, begin, sizeof(*begin));
}

/* Returns whether the position is an address in the bytecode. Python frames are made with that of the first unit. */
static bool is_inside(const struct validation *v, const struct frame *frame, uint64_t code)
{
	const struct pybpf_layout *layout = &v->python->build.layout;
	uint64_t instr = frame_u64(frame, layout->frame_position), begin;
	int64_t units; /* ob_size */

	return !validate_read(v, code + cpython_header_size(layout), &units, sizeof(units)) && units > 0 &&
	       units <= INT32_MAX && find_bytecode(v, frame, code, &begin) && instr % UNIT == 0 &&
	       instr - begin < (uint64_t)units * UNIT;
}

/* Returns what in the frame contradicts the layout, or NULL; *value: what is there. */
static const char *find_contradiction(const struct validation *v, const struct frame *frame, bool *is_function,
				      uint64_t *value)
{
	const struct pybpf_layout *layout = &v->python->build.layout;
	uint64_t code = frame_u64(frame, layout->frame_code) & ~(uint64_t)layout->code_tag_mask;
	uint8_t owner = frame->bytes[layout->frame_owner];

	*is_function = owner < layout->owner_not_python;
	*value = owner;
	/* Other frames have None in place of a code object (3.13+). */
	if (owner > CPYTHON_LAST_OWNER || is_code(v, code) != *is_function)
		return "a frame's owner";
	*value = frame_u64(frame, layout->frame_position);
	return *is_function && !is_inside(v, frame, code) ? "a frame's position" : NULL;
}

/* Returns whether the frame is as it was: a frame that is being made has fields of an earlier one in its place. */
static bool is_unchanged(const struct validation *v, const struct frame *frame)
{
	struct frame again;

	return !read_frame(v, frame->addr, &again) &&
	       !memcmp(again.bytes, frame->bytes, v->python->build.layout.frame_window);
}

static bool is_inside_window(const struct pybpf_layout *layout, uint16_t offset, size_t size)
{
	return offset + size <= layout->frame_window;
}

/* The layout may come from whoever has taken over the asking process. */
static bool are_inside_window(const struct pybpf_layout *layout)
{
	return layout->frame_window <= PYBPF_FRAME_WINDOW && is_inside_window(layout, layout->frame_code, 8) &&
	       is_inside_window(layout, layout->frame_previous, 8) &&
	       is_inside_window(layout, layout->frame_position, 8) &&
	       is_inside_window(layout, layout->frame_owner, 1) &&
	       (layout->frame_tlbc_index == PYBPF_NO_OFFSET || is_inside_window(layout, layout->frame_tlbc_index, 4));
}

int validate_thread_frames(struct validation *v, uint64_t tstate)
{
	const struct pybpf_layout *layout = &v->python->build.layout;
	uint64_t addr = tstate + layout->tstate_frame, next, value;
	const char *what;
	struct frame frame;
	bool is_function;
	int err = validate_read(v, addr, &next, sizeof(next));

	if (!cpython_is_newer(layout))
		return 0;
	if (!are_inside_window(layout))
		return validate_contradict(v, "a frame's size", tstate, layout->frame_window);
	for (int i = 0; !err && next && i < MAX_FRAMES_OF_THREAD && v->frames_looked < MAX_FRAMES; i++) {
		if (!validate_is_address(next))
			return validate_contradict(v, "a frame's address", addr, next);
		err = read_frame(v, next, &frame);
		if (err)
			break;
		v->frames_looked++;
		what = find_contradiction(v, &frame, &is_function, &value);
		if (what && is_unchanged(v, &frame))
			return validate_contradict(v, what, frame.addr, value);
		/* The thread runs meanwhile: what is behind this frame is not its stack. */
		if (what)
			return 0;
		v->frames += is_function;
		addr = next + layout->frame_previous;
		next = frame_u64(&frame, layout->frame_previous);
	}
	return err ? validate_unreadable(v, "a frame", addr, err) : 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Generators, coroutines and asynchronous generators that do not run: where their frame is, and what they await. As
 * _PyGen_yf() in Objects/genobject.c of each version.
 */
#include <errno.h>
#include <string.h>

#include "symbols/task_reader.h"

/* Values of gi_frame_state (enum _framestate in pycore_frame.h). */
enum {
	CREATED_312 = -2, /* to 3.12, and PyFrameObject.f_state of 3.10 */
	SUSPENDED_312 = -1,
	CREATED_314 = -3, /* 3.13 and 3.14 */
	SUSPENDED_314 = -2,
	YIELD_FROM_314 = -1,
	EXECUTING_314 = 0, /* and before */
	CREATED_315 = 0,
	SUSPENDED_315 = 1,
	YIELD_FROM_315 = 2,
	YIELD_FROM_LOCKED_315 = 3, /* free-threaded: another thread looks at what it awaits */
	EXECUTING_315 = 4,
};
#define MINOR_NEW_STATES  15
#define MINOR_YIELD_STATE 13 /* first one whose state tells whether something is awaited */

/*
 * PyGenObject of 3.11 and of 3.12 and 3.13, from the end of its header on (_PyGenObject_HEAD in cpython/genobject.h):
 * gi_frame_state and gi_iframe; 3.11 has gi_code before. _PyInterpreterFrame.stacktop and localsplus (pycore_frame.h).
 */
#define GEN_STATE_311  59
#define GEN_FRAME_311  64
#define GEN_STATE_313  51
#define GEN_FRAME_313  56
#define FRAME_STACKTOP 64
#define FRAME_LOCALS   72
/* Most values on the stack of a frame. */
#define MAX_STACK 65536

/* PyGenObject to 3.10, likewise: gi_frame, and to 3.9 gi_running. */
#define GEN_FRAME_310 0
#define GEN_RUNNING   8
/* PyFrameObject, likewise (frameobject.h): f_stacktop to 3.9; f_valuestack, f_stackdepth and f_state of 3.10. */
#define FRAME_STACKTOP_39 56
#define FRAME_VALUES_310  48
#define FRAME_DEPTH_310   64
#define FRAME_STATE_310   92
#define YIELD_FROM        72 /* its opcode, to 3.10 */

static int state_of(const struct pybpf_layout *l, int8_t state)
{
	const bool renumbered = l->minor >= MINOR_NEW_STATES;

	if (l->minor < MINOR_YIELD_STATE) {
		if (state == CREATED_312 || state == SUSPENDED_312)
			return state == CREATED_312 ? TASK_GEN_CREATED : TASK_GEN_YIELDED;
		return state == EXECUTING_314 ? TASK_GEN_RUNS : TASK_GEN_ENDED;
	}
	if (state == (renumbered ? CREATED_315 : CREATED_314))
		return TASK_GEN_CREATED;
	if (state == (renumbered ? SUSPENDED_315 : SUSPENDED_314))
		return TASK_GEN_YIELDED;
	if (state == (renumbered ? YIELD_FROM_315 : YIELD_FROM_314) || (renumbered && state == YIELD_FROM_LOCKED_315))
		return TASK_GEN_AWAITS;
	return state == (renumbered ? EXECUTING_315 : EXECUTING_314) ? TASK_GEN_RUNS : TASK_GEN_ENDED;
}

static int read_state(struct task_reader *r, uint64_t addr, enum task_gen_state *out)
{
	int8_t state;

	if (task_read_at(r, addr, &state, sizeof(state)))
		return -EFAULT;
	*out = (enum task_gen_state)state_of(&r->place->layout, state);
	return 0;
}

/* 3.14+: what is awaited is on top of the frame's stack, and below an index that belongs to it since 3.15. */
static int read_new(struct task_reader *r, uint64_t generator, struct task_gen *out)
{
	const struct pybpf_layout *l = &r->place->layout;
	uint64_t from_end = (l->minor >= MINOR_NEW_STATES ? 2 : 1) * sizeof(uint64_t), end;

	out->frame = generator + l->gen_frame;
	if (read_state(r, generator + l->gen_state, &out->state))
		return -EFAULT;
	if (out->state != TASK_GEN_AWAITS)
		return 0;
	end = task_pointer_at(r, out->frame + l->frame_stack);
	out->awaited = end ? task_pointer_at(r, end - from_end) & ~(uint64_t)l->code_tag_mask : 0;
	return 0;
}

/* In 3.11 and 3.12 the next instruction tells: RESUME, with 2 or 3 behind an await or yield from. */
static bool awaits_by_resume(struct task_reader *r, uint64_t frame)
{
	uint64_t previous = task_pointer_at(r, frame + r->place->layout.frame_position);
	uint8_t next[2];

	return previous && !task_read_at(r, previous + sizeof(next), next, sizeof(next)) && (next[1] & 3) >= 2;
}

static int read_313(struct task_reader *r, uint64_t generator, struct task_gen *out)
{
	const struct pybpf_layout *l = &r->place->layout;
	uint64_t fields = generator + task_head_size(r);
	int32_t top;

	out->frame = fields + (l->minor == 11 ? GEN_FRAME_311 : GEN_FRAME_313);
	if (read_state(r, fields + (l->minor == 11 ? GEN_STATE_311 : GEN_STATE_313), &out->state))
		return -EFAULT;
	if (out->state == TASK_GEN_YIELDED && l->minor < MINOR_YIELD_STATE && awaits_by_resume(r, out->frame))
		out->state = TASK_GEN_AWAITS;
	if (out->state == TASK_GEN_AWAITS && !task_read_at(r, out->frame + FRAME_STACKTOP, &top, sizeof(top)) &&
	    top > 0 && top <= MAX_STACK)
		out->awaited = task_pointer_at(r, out->frame + FRAME_LOCALS + 8ull * (unsigned)(top - 1));
	return 0;
}

/* Returns whether the instruction after the last one of a frame is YIELD_FROM, which is executed anew each time. */
static bool awaits_by_opcode(struct task_reader *r, uint64_t frame, int32_t last)
{
	const struct pybpf_layout *l = &r->place->layout;
	uint64_t code = task_pointer_at(r, frame + l->frame_code), bytes = task_pointer_at(r, code + l->code_bytecode);
	int64_t next = l->minor == 10 ? 2 * ((int64_t)last + 1) : (int64_t)last + 2;
	uint8_t opcode;

	return code && bytes && last >= 0 &&
	       !task_read_at(r, bytes + l->bytes_data + (uint64_t)next, &opcode, sizeof(opcode)) &&
	       opcode == YIELD_FROM;
}

/* To 3.9: f_stacktop is 0 while the frame runs. */
static int read_state_39(struct task_reader *r, uint64_t generator, struct task_gen *out, int32_t last)
{
	uint64_t top = task_pointer_at(r, out->frame + task_head_size(r) + FRAME_STACKTOP_39);
	uint8_t runs;

	if (task_read_at(r, generator + task_head_size(r) + GEN_RUNNING, &runs, sizeof(runs)))
		return -EFAULT;
	out->state = runs ? TASK_GEN_RUNS : !top ? TASK_GEN_ENDED : last < 0 ? TASK_GEN_CREATED : TASK_GEN_YIELDED;
	out->awaited = top ? task_pointer_at(r, top - sizeof(top)) : 0;
	return 0;
}

static int read_state_310(struct task_reader *r, struct task_gen *out)
{
	uint64_t fields = out->frame + task_head_size(r), values = task_pointer_at(r, fields + FRAME_VALUES_310);
	int32_t depth;

	if (read_state(r, fields + FRAME_STATE_310, &out->state) ||
	    task_read_at(r, fields + FRAME_DEPTH_310, &depth, sizeof(depth)))
		return -EFAULT;
	out->awaited = values && depth > 0 && depth <= MAX_STACK
			       ? task_pointer_at(r, values + 8ull * (unsigned)(depth - 1))
			       : 0;
	return 0;
}

static int read_310(struct task_reader *r, uint64_t generator, struct task_gen *out)
{
	const struct pybpf_layout *l = &r->place->layout;
	int32_t last;
	int err;

	out->frame = task_pointer_at(r, generator + task_head_size(r) + GEN_FRAME_310);
	out->state = TASK_GEN_ENDED;
	if (!out->frame)
		return 0;
	task_look_ahead(r, out->frame);
	if (task_read_at(r, out->frame + l->frame_position, &last, sizeof(last)))
		return -EFAULT;
	err = l->minor == 10 ? read_state_310(r, out) : read_state_39(r, generator, out, last);
	if (!err && out->state == TASK_GEN_YIELDED && awaits_by_opcode(r, out->frame, last))
		out->state = TASK_GEN_AWAITS;
	return err;
}

int task_read_gen(struct task_reader *r, uint64_t generator, struct task_gen *out)
{
	*out = (struct task_gen){.state = TASK_GEN_ENDED};
	if (r->place->layout.minor >= 14)
		return read_new(r, generator, out);
	return r->place->layout.minor >= 11 ? read_313(r, generator, out) : read_310(r, generator, out);
}

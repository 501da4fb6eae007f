// SPDX-License-Identifier: Apache-2.0
/*
 * Generators, coroutines and asynchronous generators that do not run: where their frame is, and what they await. As
 * _PyGen_yf() in Objects/genobject.c of each version.
 */
#include <errno.h>
#include <string.h>

#include "cpython/facts.h"
#include "symbols/objects/py_frame.h"
#include "symbols/tasks/task_reader.h"

/* From _PyInterpreterFrame.stacktop to localsplus, in 3.11 to 3.13 (pycore_frame.h). */
#define STACKTOP_BEFORE_LOCALS 8
/* Most values on the stack of a frame. */
#define MAX_STACK 65536

/* The opcode, to 3.10. */
#define YIELD_FROM 72

static const struct cpython_generator *facts_of(const struct task_reader *r)
{
	return cpython_facts(&r->place->layout)->generator;
}

static enum task_gen_state state_of(const struct cpython_generator *facts, int8_t state)
{
	if (state == facts->created)
		return TASK_GEN_CREATED;
	if (state == facts->suspended)
		return TASK_GEN_YIELDED;
	if (facts->tells_await && (state == facts->awaits || state == facts->awaits_locked))
		return TASK_GEN_AWAITS;
	return state == facts->executing ? TASK_GEN_RUNS : TASK_GEN_ENDED;
}

static int read_state(struct task_reader *r, uint64_t addr, enum task_gen_state *out)
{
	int8_t state;

	if (task_read_at(r, addr, &state, sizeof(state)))
		return -EFAULT;
	*out = state_of(facts_of(r), state);
	return 0;
}

/* What is awaited is near the top of the frame's stack. */
static int read_by_layout(struct task_reader *r, uint64_t generator, struct task_gen *out)
{
	const struct pybpf_layout *l = &r->place->layout;
	uint64_t top;

	out->frame = generator + l->gen_frame;
	if (read_state(r, generator + l->gen_state, &out->state))
		return -EFAULT;
	if (out->state != TASK_GEN_AWAITS)
		return 0;
	top = task_pointer_at(r, out->frame + l->frame_stack);
	out->awaited = top ? task_pointer_at(r, top - facts_of(r)->awaited_below_top) & ~(uint64_t)l->code_tag_mask : 0;
	return 0;
}

/* In 3.11 and 3.12 the next instruction tells: RESUME, with 2 or 3 behind an await or yield from. */
static bool awaits_by_resume(struct task_reader *r, uint64_t frame)
{
	uint64_t previous = task_pointer_at(r, frame + r->place->layout.frame_position);
	uint8_t next[2];

	return previous && !task_read_at(r, previous + sizeof(next), next, sizeof(next)) && (next[1] & 3) >= 2;
}

static int read_inside(struct task_reader *r, uint64_t generator, struct task_gen *out)
{
	const struct cpython_generator *facts = facts_of(r);
	uint64_t fields = generator + task_head_size(r);
	uint64_t locals;
	int32_t top;

	out->frame = fields + facts->frame;
	locals = out->frame + py_frame_locals(&r->place->layout);
	if (read_state(r, fields + facts->state, &out->state))
		return -EFAULT;
	if (out->state == TASK_GEN_YIELDED && !facts->tells_await && awaits_by_resume(r, out->frame))
		out->state = TASK_GEN_AWAITS;
	if (out->state == TASK_GEN_AWAITS && !task_read_at(r, locals - STACKTOP_BEFORE_LOCALS, &top, sizeof(top)) &&
	    top > 0 && top <= MAX_STACK)
		out->awaited = task_pointer_at(r, locals + 8ull * (unsigned)(top - 1));
	return 0;
}

/* Returns whether the instruction after the last one of a frame is YIELD_FROM, which is executed anew each time. */
static bool awaits_by_opcode(struct task_reader *r, uint64_t frame, int32_t last)
{
	const struct pybpf_layout *l = &r->place->layout;
	uint64_t code = task_pointer_at(r, frame + l->frame_code), bytes = task_pointer_at(r, code + l->code_bytecode);
	int64_t next = facts_of(r)->kind == CPYTHON_GENERATOR_F_STATE ? 2 * ((int64_t)last + 1) : (int64_t)last + 2;
	uint8_t opcode;

	return code && bytes && last >= 0 &&
	       !task_read_at(r, bytes + l->bytes_data + (uint64_t)next, &opcode, sizeof(opcode)) &&
	       opcode == YIELD_FROM;
}

/* To 3.9: f_stacktop is 0 while the frame runs. */
static int read_state_39(struct task_reader *r, uint64_t generator, struct task_gen *out, int32_t last)
{
	uint64_t top = task_pointer_at(r, out->frame + task_head_size(r) + PYBPF_FRAME_STACKTOP);
	uint8_t runs;

	if (task_read_at(r, generator + task_head_size(r) + PYBPF_GEN_RUNNING, &runs, sizeof(runs)))
		return -EFAULT;
	out->state = runs ? TASK_GEN_RUNS : !top ? TASK_GEN_ENDED : last < 0 ? TASK_GEN_CREATED : TASK_GEN_YIELDED;
	out->awaited = top ? task_pointer_at(r, top - sizeof(top)) : 0;
	return 0;
}

static int read_state_310(struct task_reader *r, struct task_gen *out)
{
	uint64_t fields = out->frame + task_head_size(r), values = task_pointer_at(r, fields + PYBPF_FRAME_VALUESTACK);
	int32_t depth;

	if (read_state(r, fields + PYBPF_FRAME_STATE, &out->state) ||
	    task_read_at(r, fields + PYBPF_FRAME_STACKDEPTH, &depth, sizeof(depth)))
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

	out->frame = task_pointer_at(r, generator + task_head_size(r) + PYBPF_GEN_FRAME);
	out->state = TASK_GEN_ENDED;
	if (!out->frame)
		return 0;
	task_look_ahead(r, out->frame);
	if (task_read_at(r, out->frame + l->frame_position, &last, sizeof(last)))
		return -EFAULT;
	err = facts_of(r)->kind == CPYTHON_GENERATOR_F_STATE ? read_state_310(r, out)
							     : read_state_39(r, generator, out, last);
	if (!err && out->state == TASK_GEN_YIELDED && awaits_by_opcode(r, out->frame, last))
		out->state = TASK_GEN_AWAITS;
	return err;
}

int task_read_gen(struct task_reader *r, uint64_t generator, struct task_gen *out)
{
	*out = (struct task_gen){.state = TASK_GEN_ENDED};
	switch (facts_of(r)->kind) {
	case CPYTHON_GENERATOR_IN_LAYOUT:
		return read_by_layout(r, generator, out);
	case CPYTHON_GENERATOR_INSIDE:
		return read_inside(r, generator, out);
	default:
		return read_310(r, generator, out);
	}
}

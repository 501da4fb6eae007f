// SPDX-License-Identifier: Apache-2.0
#include "native/flow_place.h"

#include "native/cfi.h"
#include "pybpf_native.h"

#define WORD 8
/* No function has a larger frame: what claims to is something else. */
#define DEPTH_MAX  (1 << 24)
#define KEEPER_MAX (PYBPF_KEPT_MAX * WORD)

bool flow_is_at_begin(const struct flow_place *p)
{
	return p->depth == WORD && !p->changed;
}

/* Not every store to where the stack pointer is kept is seen: the return address has to lie behind a call. */
static uint32_t keeper_rule(const struct flow_place *p, int64_t saved)
{
	if (p->keeper % WORD || p->kept % WORD || p->kept > KEEPER_MAX || saved % WORD || saved > KEEPER_MAX)
		return PYBPF_NATIVE_NONE;
	return PYBPF_NATIVE_SP_KEPT | PYBPF_RULE_CHECKED | (uint32_t)(p->keeper / WORD) << PYBPF_RULE_OFFSET_SHIFT |
	       (uint32_t)(p->kept / WORD) << PYBPF_KEPT_SHIFT | (uint32_t)(saved / WORD) << PYBPF_KEPT_BP_SHIFT;
}

uint32_t flow_rule(const struct flow_place *p)
{
	int64_t saved = p->saved == FLOW_UNKNOWN ? 0 : p->saved;
	uint32_t rule = PYBPF_NATIVE_NONE;

	if (p->is_root)
		return PYBPF_NATIVE_END;
	if (p->changed && !saved)
		return PYBPF_NATIVE_NONE;
	if (p->frame != FLOW_UNKNOWN)
		rule = cfi_rule(true, p->frame, saved);
	else if (p->keeper != FLOW_UNKNOWN)
		rule = keeper_rule(p, saved);
	/* Only the stack pointer's offset may be large. */
	if (p->depth != FLOW_UNKNOWN && PYBPF_RULE_KIND(rule) != PYBPF_NATIVE_BP)
		rule = cfi_rule(false, p->depth, saved);
	return PYBPF_RULE_KIND(rule) == PYBPF_NATIVE_EXPRESSION ? PYBPF_NATIVE_NONE : rule;
}

static void forget_keeper(struct flow_place *p)
{
	p->keeper = p->kept = FLOW_UNKNOWN;
}

static bool is_lost(const struct flow_place *p)
{
	return p->depth == FLOW_UNKNOWN && p->frame == FLOW_UNKNOWN &&
	       (p->keeper == FLOW_UNKNOWN || p->saved == FLOW_UNKNOWN);
}

/* The stack pointer goes down, from anywhere. */
static enum flow_step move_keeper(struct flow_place *p, int64_t bytes)
{
	int64_t keeper = p->keeper + bytes;

	if (p->keeper == FLOW_UNKNOWN)
		return FLOW_GOES_ON;
	if (keeper < 0 || keeper > KEEPER_MAX)
		forget_keeper(p);
	else
		p->keeper = (int16_t)keeper;
	return is_lost(p) ? FLOW_IS_LOST : FLOW_GOES_ON;
}

static enum flow_step move(struct flow_place *p, int64_t bytes)
{
	if (p->depth == FLOW_UNKNOWN)
		return move_keeper(p, bytes);
	if (p->depth + bytes < WORD || p->depth + bytes > DEPTH_MAX)
		return FLOW_IS_NONE;
	p->depth += (int32_t)bytes;
	return FLOW_GOES_ON;
}

/* The stack pointer is anything now; the frame pointer may tell the frame. */
static enum flow_step lose_depth(struct flow_place *p)
{
	p->depth = FLOW_UNKNOWN;
	forget_keeper(p);
	return is_lost(p) ? FLOW_IS_LOST : FLOW_GOES_ON;
}

/* The frame pointer's register gets another value. */
static enum flow_step lose_frame(struct flow_place *p)
{
	p->frame = FLOW_UNKNOWN;
	p->changed = 1;
	return is_lost(p) || p->saved == FLOW_UNKNOWN ? FLOW_IS_LOST : FLOW_GOES_ON;
}

static void set_depth(struct flow_place *p, int32_t depth)
{
	p->depth = depth;
	forget_keeper(p);
}

static void have_callers_frame(struct flow_place *p)
{
	p->frame = p->saved = FLOW_UNKNOWN;
	p->changed = 0;
}

/*
 * The caller's frame pointer is saved because it will be changed; whether it has been is not told apart, since paths
 * meet again.
 */
static void save_frame(struct flow_place *p, int32_t below)
{
	if (p->changed || p->saved != FLOW_UNKNOWN)
		return;
	p->saved = below;
	p->changed = 1;
}

static enum flow_step push(struct flow_place *p, bool is_bp)
{
	enum flow_step step = move(p, WORD);

	if (is_bp)
		save_frame(p, p->depth);
	return step;
}

static enum flow_step pop(struct flow_place *p, unsigned number)
{
	if (number == X86_SP)
		return FLOW_IS_LOST;
	if (number == X86_BP && (p->depth == FLOW_UNKNOWN || p->depth != p->saved))
		return FLOW_IS_LOST;
	if (number == X86_BP)
		have_callers_frame(p);
	return move(p, -WORD);
}

static enum flow_step leave(struct flow_place *p)
{
	if (p->frame == FLOW_UNKNOWN)
		return FLOW_IS_LOST;
	set_depth(p, p->frame);
	return pop(p, X86_BP);
}

/* Returns whether an operand in memory is at a known place in the frame, and how far it is below the CFA. */
static bool is_in_frame(const struct flow_place *p, const struct x86_instruction *i, int32_t *below)
{
	int32_t from = i->base == X86_SP ? p->depth : i->base == X86_BP ? p->frame : FLOW_UNKNOWN;

	*below = (int32_t)((int64_t)from - i->displacement);
	return i->mod != 3 && i->index == X86_NO_REGISTER && from != FLOW_UNKNOWN && i->displacement > -DEPTH_MAX &&
	       i->displacement < DEPTH_MAX;
}

/* lea to the stack pointer or the frame pointer. */
static enum flow_step take_address(struct flow_place *p, const struct x86_instruction *i)
{
	int32_t below;
	bool known = is_in_frame(p, i, &below);

	if (i->reg == X86_SP) {
		if (!known)
			return lose_depth(p);
		if (below < WORD)
			return FLOW_IS_NONE;
		set_depth(p, below);
		return FLOW_GOES_ON;
	}
	if (!known || below <= 0 || below % WORD || p->saved == FLOW_UNKNOWN)
		return lose_frame(p);
	p->frame = below;
	p->changed = 1;
	return FLOW_GOES_ON;
}

/* mov from one register to another. */
static enum flow_step copy(struct flow_place *p, unsigned to, unsigned from)
{
	if (to == X86_BP && from == X86_SP && p->saved != FLOW_UNKNOWN && p->depth != FLOW_UNKNOWN) {
		p->frame = p->depth;
		p->changed = 1;
		return FLOW_GOES_ON;
	}
	if (to == X86_SP && from == X86_BP && p->frame != FLOW_UNKNOWN) {
		set_depth(p, p->frame);
		return FLOW_GOES_ON;
	}
	return to == X86_SP ? lose_depth(p) : to == X86_BP ? lose_frame(p) : FLOW_GOES_ON;
}

/* A place that is as far above the stack pointer, of which no more is known. */
static bool is_above_any(const struct flow_place *p, const struct x86_instruction *i)
{
	return p->depth == FLOW_UNKNOWN && i->mod != 3 && i->base == X86_SP && i->index == X86_NO_REGISTER &&
	       i->displacement >= 0 && i->displacement <= KEEPER_MAX;
}

static bool is_keeper(const struct flow_place *p, const struct x86_instruction *i)
{
	return is_above_any(p, i) && p->keeper == i->displacement;
}

/* mov between the frame pointer and memory. */
static enum flow_step keep(struct flow_place *p, const struct x86_instruction *i, bool loads)
{
	int32_t below;
	bool known = is_in_frame(p, i, &below);

	if (!loads) {
		if (known && below > WORD)
			save_frame(p, below);
		if (is_above_any(p, i) && p->frame != FLOW_UNKNOWN) {
			p->keeper = (int16_t)i->displacement;
			p->kept = p->frame;
		}
		return FLOW_GOES_ON;
	}
	if (is_keeper(p, i)) {
		p->frame = p->kept;
		return FLOW_GOES_ON;
	}
	if (known && below == p->saved && p->depth != FLOW_UNKNOWN) {
		have_callers_frame(p);
		return FLOW_GOES_ON;
	}
	return lose_frame(p);
}

static enum flow_step move_data(struct flow_place *p, const struct x86_instruction *i)
{
	bool loads = i->opcode == 0x8b;

	if (i->mod == 3)
		return copy(p, loads ? i->reg : i->rm, loads ? i->rm : i->reg);
	if (i->reg == X86_BP)
		return keep(p, i, loads);
	if (is_keeper(p, i) && i->reg == X86_SP && loads) {
		set_depth(p, p->kept);
		return FLOW_GOES_ON;
	}
	if (is_keeper(p, i) && !loads) {
		forget_keeper(p);
		return is_lost(p) ? FLOW_IS_LOST : FLOW_GOES_ON;
	}
	return loads && i->reg == X86_SP ? lose_depth(p) : FLOW_GOES_ON;
}

/* Arithmetic of the stack pointer with an immediate. */
static enum flow_step compute(struct flow_place *p, const struct x86_instruction *i)
{
	switch (i->reg & 7) {
	case 0:
		return move(p, -i->immediate);
	case 5:
		return move(p, i->immediate);
	case 7:
		return FLOW_GOES_ON;
	default:
		return lose_depth(p);
	}
}

/* xor %ebp, %ebp where the caller's is not saved: the outermost function (System V ABI for x86-64, 3.4.1). */
static bool begins_program(const struct flow_place *p, const struct x86_instruction *i)
{
	return (i->opcode == 0x31 || i->opcode == 0x33) && i->mod == 3 && i->reg == X86_BP && i->rm == X86_BP &&
	       !p->changed && p->saved == FLOW_UNKNOWN;
}

static enum flow_step other(struct flow_place *p, const struct x86_instruction *i)
{
	if (i->map == X86_ONE_BYTE && begins_program(p, i)) {
		p->is_root = 1;
		return FLOW_GOES_ON;
	}
	if (x86_writes(i, X86_SP))
		return lose_depth(p);
	return x86_writes(i, X86_BP) ? lose_frame(p) : FLOW_GOES_ON;
}

static enum flow_step step_one_byte(struct flow_place *p, const struct x86_instruction *i)
{
	uint8_t op = i->opcode;

	if (op >= 0x50 && op < 0x60) {
		unsigned number = (op & 7u) | i->extension;

		return i->has_66 ? FLOW_IS_LOST : op < 0x58 ? push(p, number == X86_BP) : pop(p, number);
	}
	switch (op) {
	case 0x68: /* push */
	case 0x6a:
	case 0x9c:
		return i->has_66 ? FLOW_IS_LOST : move(p, WORD);
	case 0x9d: /* popf */
		return move(p, -WORD);
	case 0x8f: /* pop */
		return i->mod == 3 ? pop(p, i->rm) : move(p, -WORD);
	case 0xff:
		return (i->reg & 7) == 6 ? move(p, WORD) : other(p, i);
	case 0xc8: /* enter */
		return FLOW_IS_LOST;
	case 0xc9:
		return leave(p);
	case 0xe8: /* a call of the next instruction pushes its address */
		return i->immediate ? FLOW_GOES_ON : FLOW_IS_LOST;
	case 0x81:
	case 0x83:
		return i->wide && i->mod == 3 && i->rm == X86_SP ? compute(p, i) : other(p, i);
	case 0x89:
	case 0x8b:
		return i->wide ? move_data(p, i) : other(p, i);
	case 0x8d:
		return i->wide && (i->reg == X86_SP || i->reg == X86_BP) ? take_address(p, i) : other(p, i);
	default:
		return other(p, i);
	}
}

enum flow_step flow_step(struct flow_place *p, const struct x86_instruction *i)
{
	if (p->is_root)
		return FLOW_GOES_ON;
	if (i->is_vex || i->is_evex || i->map != X86_0F)
		return i->map == X86_ONE_BYTE ? step_one_byte(p, i) : other(p, i);
	switch (i->opcode) {
	case 0xa0: /* push fs, gs */
	case 0xa8:
		return move(p, WORD);
	case 0xa1:
	case 0xa9:
		return move(p, -WORD);
	default:
		return other(p, i);
	}
}

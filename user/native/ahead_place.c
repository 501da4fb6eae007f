// SPDX-License-Identifier: Apache-2.0
#include "native/ahead_place.h"

#include "native/cfi.h"
#include "pybpf_native.h"

#define WORD 8
/* No function has a larger frame: what claims to is something else. */
#define DISTANCE_MAX (1 << 24)

static const struct ahead_value nothing = {AHEAD_NOTHING, 0};

static struct ahead_value add(struct ahead_value value, int64_t bytes)
{
	int64_t offset = value.offset + bytes;

	if (value.base == AHEAD_NOTHING || bytes < -DISTANCE_MAX || bytes > DISTANCE_MAX || offset < -DISTANCE_MAX ||
	    offset > DISTANCE_MAX)
		return nothing;
	return (struct ahead_value){value.base, (int32_t)offset};
}

static bool is_same(struct ahead_value one, struct ahead_value other)
{
	return one.base == other.base && one.offset == other.offset;
}

static bool is_frame_of_begin(const struct ahead_frame *bp)
{
	return !bp->is_loaded && bp->value.base == AHEAD_BP && !bp->value.offset;
}

static bool is_same_frame(const struct ahead_frame *one, const struct ahead_frame *other)
{
	return one->is_loaded == other->is_loaded && is_same(one->value, other->value);
}

static bool is_overwritten(const struct ahead_place *p, struct ahead_value at)
{
	return at.base == p->written.base && at.offset < p->written.offset;
}

static void set_bp(struct ahead_place *p, struct ahead_value value)
{
	p->bp = (struct ahead_frame){value, false};
}

static struct ahead_value bp_value(const struct ahead_place *p)
{
	return p->bp.is_loaded ? nothing : p->bp.value;
}

static void load_bp(struct ahead_place *p, struct ahead_value from)
{
	if (from.base != AHEAD_NOTHING && is_same(from, p->kept_at)) {
		p->bp = p->kept;
		p->kept_at = nothing;
		return;
	}
	if (is_overwritten(p, from))
		from = nothing;
	p->bp = (struct ahead_frame){from, from.base != AHEAD_NOTHING};
}

static void store_bp(struct ahead_place *p, struct ahead_value to)
{
	if (p->kept_at.base != AHEAD_NOTHING || p->bp.value.base == AHEAD_NOTHING)
		return;
	p->kept_at = to;
	p->kept = p->bp;
}

/* The stack pointer goes down: what lies below it until then is overwritten. */
static void lower(struct ahead_place *p, int64_t bytes)
{
	if (p->sp.base != p->written.base || p->sp.offset > p->written.offset)
		p->written = p->sp;
	p->sp = add(p->sp, -bytes);
}

static bool pop(struct ahead_place *p, unsigned number)
{
	struct ahead_value from = p->sp;

	if (number == X86_SP)
		return false;
	p->sp = add(p->sp, WORD);
	if (number == X86_BP)
		load_bp(p, from);
	return true;
}

static bool push(struct ahead_place *p, bool is_bp)
{
	lower(p, WORD);
	if (is_bp)
		store_bp(p, p->sp);
	return true;
}

/* Returns what an operand in memory, or the address that lea takes, is. */
static struct ahead_value address_of(const struct ahead_place *p, const struct x86_instruction *i)
{
	struct ahead_value base = i->base == X86_SP ? p->sp : i->base == X86_BP ? bp_value(p) : nothing;

	return i->mod == 3 || i->index != X86_NO_REGISTER ? nothing : add(base, i->displacement);
}

static bool other(struct ahead_place *p, const struct x86_instruction *i)
{
	if (x86_writes(i, X86_SP))
		p->sp = nothing;
	if (x86_writes(i, X86_BP))
		set_bp(p, nothing);
	return true;
}

/* mov; to and from are registers where it is not between one and memory. */
static bool move_data(struct ahead_place *p, const struct x86_instruction *i)
{
	bool loads = i->opcode == 0x8b;
	unsigned to = loads ? i->reg : i->rm, from = loads ? i->rm : i->reg;

	if (i->mod != 3 && i->reg == X86_BP && loads)
		load_bp(p, address_of(p, i));
	else if (i->mod != 3 && i->reg == X86_BP)
		store_bp(p, address_of(p, i));
	else if (i->mod == 3 && to == X86_BP && from == X86_SP)
		set_bp(p, p->sp);
	else if (i->mod == 3 && to == X86_SP && from == X86_BP)
		p->sp = bp_value(p);
	else
		return other(p, i);
	return true;
}

static bool take_address(struct ahead_place *p, const struct x86_instruction *i)
{
	if (i->reg == X86_SP)
		p->sp = address_of(p, i);
	else if (i->reg == X86_BP)
		set_bp(p, address_of(p, i));
	return true;
}

/* Arithmetic with an immediate. */
static bool compute(struct ahead_place *p, const struct x86_instruction *i)
{
	unsigned kind = i->reg & 7;

	if (i->mod != 3 || i->rm != X86_SP || !i->wide || (kind != 0 && kind != 5))
		return kind == 7 || other(p, i);
	lower(p, kind ? i->immediate : -i->immediate);
	return true;
}

static bool leave(struct ahead_place *p)
{
	p->sp = bp_value(p);
	return pop(p, X86_BP);
}

static bool step_one_byte(struct ahead_place *p, const struct x86_instruction *i)
{
	uint8_t op = i->opcode;

	if (op >= 0x50 && op < 0x60) {
		unsigned number = (op & 7u) | i->extension;

		return !i->has_66 && (op < 0x58 ? push(p, number == X86_BP) : pop(p, number));
	}
	switch (op) {
	case 0x68: /* push */
	case 0x6a:
	case 0x9c:
		return !i->has_66 && push(p, false);
	case 0x9d: /* popf */
		p->sp = add(p->sp, WORD);
		return true;
	case 0x8f:
		return i->mod == 3 ? pop(p, i->rm) : pop(p, X86_NO_REGISTER);
	case 0xff:
		return (i->reg & 7) == 6 ? push(p, i->mod == 3 && i->rm == X86_BP) : other(p, i);
	case 0xc8: /* enter */
		return false;
	case 0xc9:
		return leave(p);
	case 0x81:
	case 0x83:
		return compute(p, i);
	case 0x89:
	case 0x8b:
		return i->wide ? move_data(p, i) : other(p, i);
	case 0x8d:
		return i->wide ? take_address(p, i) : other(p, i);
	default:
		return other(p, i);
	}
}

bool ahead_step(struct ahead_place *p, const struct x86_instruction *i)
{
	if (i->map == X86_ONE_BYTE && !i->is_vex && !i->is_evex)
		return step_one_byte(p, i);
	/* push and pop of fs and gs are in no compiler's code. */
	if (i->map == X86_0F && !i->is_vex && !i->is_evex && ((i->opcode & 0xf6) == 0xa0))
		return false;
	return other(p, i);
}

/*
 * Where the caller's frame pointer is at `now`, below the CFA; 0: in its register. Returns false where that is not
 * known.
 */
static bool find_saved(const struct ahead_place *now, const struct ahead_place *end, struct ahead_value cfa,
		       int64_t *below)
{
	struct ahead_value at = nothing;

	*below = 0;
	if (!end->bp.is_loaded && !is_frame_of_begin(&end->bp))
		return false;
	if (is_same_frame(&now->bp, &end->bp))
		return true;
	if (is_same_frame(&now->kept, &end->bp) && now->kept_at.base != AHEAD_NOTHING)
		at = now->kept_at;
	else if (end->bp.is_loaded && !is_overwritten(now, end->bp.value))
		at = end->bp.value;
	*below = (int64_t)cfa.offset - at.offset;
	return at.base == cfa.base && *below > 0;
}

uint32_t ahead_rule(const struct ahead_place *now, const struct ahead_place *end)
{
	struct ahead_value cfa = add(end->sp, WORD), bp = bp_value(now);
	int64_t below, offset;
	uint32_t rule;
	bool by_bp;

	if (cfa.base == AHEAD_NOTHING || !find_saved(now, end, cfa, &below))
		return PYBPF_NATIVE_NONE;
	by_bp = now->sp.base != cfa.base;
	if (by_bp && bp.base != cfa.base)
		return PYBPF_NATIVE_NONE;
	offset = (int64_t)cfa.offset - (by_bp ? bp.offset : now->sp.offset);
	if (offset <= 0 || offset % WORD || below % WORD)
		return PYBPF_NATIVE_NONE;
	rule = cfi_rule(by_bp, offset, below);
	return PYBPF_RULE_KIND(rule) == PYBPF_NATIVE_EXPRESSION ? PYBPF_NATIVE_NONE : rule | PYBPF_RULE_CHECKED;
}

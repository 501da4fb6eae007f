// SPDX-License-Identifier: Apache-2.0
/* See dead_code.h. */
#include "kernel/dead_code.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* What is known of an instruction. */
enum {
	IS_TARGET = 1,  /* a jump may lead here */
	IS_START = 2,   /* of a function */
	IS_REACHED = 4, /* it may run */
	IS_KEPT = 8,
};

/* What a register holds. */
struct value {
	enum {
		VALUE_UNKNOWN,
		VALUE_NUMBER,
		VALUE_PLACE, /* the address of a constant, as an offset in its map */
	} kind;
	uint64_t number;
};

struct pass {
	struct kernel_code *code;
	const struct kernel_constants *constants;
	uint8_t *marks;   /* by instruction */
	uint32_t *places; /* by instruction: its place in what remains. While paths are followed: those to go on with */
	uint32_t nr_paths;
	bool changed;
};

static const struct value unknown;

static bool is_wide(const struct bpf_insn *i)
{
	return i->code == (BPF_LD | BPF_IMM | BPF_DW);
}

static bool is_jump(const struct bpf_insn *i)
{
	return (BPF_CLASS(i->code) == BPF_JMP || BPF_CLASS(i->code) == BPF_JMP32) && BPF_OP(i->code) != BPF_CALL &&
	       BPF_OP(i->code) != BPF_EXIT;
}

static bool is_always_taken(const struct bpf_insn *i)
{
	return i->code == (BPF_JMP | BPF_JA);
}

static bool is_exit(const struct bpf_insn *i)
{
	return i->code == (BPF_JMP | BPF_EXIT);
}

/* A call of a function of the program, or the address of one. */
static bool names_function(const struct bpf_insn *i)
{
	return (i->code == (BPF_JMP | BPF_CALL) && i->src_reg == BPF_PSEUDO_CALL) ||
	       (is_wide(i) && i->src_reg == BPF_PSEUDO_FUNC);
}

/* Returns where the jump at this place leads, or where the function is that is named there. */
static uint32_t target_of(const struct pass *p, uint32_t at)
{
	const struct bpf_insn *i = &p->code->instructions[at];

	return (uint32_t)((int64_t)at + 1 + (is_jump(i) ? i->off : i->imm));
}

/* Jumps of a later version of the instruction set than programs are compiled for are not known. */
static bool is_known(const struct pass *p, uint32_t at)
{
	const struct bpf_insn *i = &p->code->instructions[at];

	if (is_jump(i) && !is_always_taken(i) && (BPF_OP(i->code) == BPF_JA || BPF_OP(i->code) > BPF_JSLE))
		return false;
	if (is_wide(i) && at + 1 >= p->code->nr_instructions)
		return false;
	return !(is_jump(i) || names_function(i)) || target_of(p, at) < p->code->nr_instructions;
}

/* Returns whether all instructions are known, with the targets of jumps and functions marked. */
static bool mark_targets(struct pass *p)
{
	memset(p->marks, 0, p->code->nr_instructions);
	p->marks[0] = IS_START;
	for (uint32_t at = 0; at < p->code->nr_instructions; at++) {
		const struct bpf_insn *i = &p->code->instructions[at];

		if (!is_known(p, at))
			return false;
		if (is_jump(i))
			p->marks[target_of(p, at)] |= IS_TARGET;
		else if (names_function(i))
			p->marks[target_of(p, at)] |= IS_START;
		at += is_wide(i);
	}
	return true;
}

static struct value load_wide(const struct pass *p, const struct bpf_insn *i)
{
	if (!i->src_reg)
		return (struct value){VALUE_NUMBER, (uint32_t)i->imm | (uint64_t)(uint32_t)i[1].imm << 32};
	if (i->src_reg == BPF_PSEUDO_MAP_VALUE && i->imm == p->constants->fd)
		return (struct value){VALUE_PLACE, (uint32_t)i[1].imm};
	return unknown;
}

/* Programs run on this machine, so that the order of bytes is the same. */
static struct value load_constant(const struct pass *p, const struct bpf_insn *i, struct value address)
{
	static const uint8_t sizes[] = {[BPF_W >> 3] = 4, [BPF_H >> 3] = 2, [BPF_B >> 3] = 1, [BPF_DW >> 3] = 8};
	uint64_t offset = address.number + (uint64_t)(int64_t)i->off, size = sizes[BPF_SIZE(i->code) >> 3];
	struct value value = {.kind = VALUE_NUMBER};

	if (BPF_MODE(i->code) != BPF_MEM || address.kind != VALUE_PLACE || offset > p->constants->size ||
	    size > p->constants->size - offset)
		return unknown;
	memcpy(&value.number, (const uint8_t *)p->constants->bytes + offset, size);
	return value;
}

static struct value compute(const struct bpf_insn *i, struct value before)
{
	bool is_32 = BPF_CLASS(i->code) == BPF_ALU;
	uint64_t operand = is_32 ? (uint32_t)i->imm : (uint64_t)(int64_t)i->imm;

	if (BPF_SRC(i->code) != BPF_K || i->off)
		return unknown;
	if (BPF_OP(i->code) == BPF_MOV)
		return (struct value){VALUE_NUMBER, operand};
	if (BPF_OP(i->code) == BPF_AND && before.kind == VALUE_NUMBER)
		return (struct value){VALUE_NUMBER, before.number & operand};
	return unknown;
}

static void forget_after_call(struct value *registers)
{
	for (int i = BPF_REG_0; i <= BPF_REG_5; i++)
		registers[i] = unknown;
}

/* Follows what the instruction does to the registers. */
static void follow(const struct pass *p, const struct bpf_insn *i, struct value *registers)
{
	switch (BPF_CLASS(i->code)) {
	case BPF_LD:
		if (is_wide(i))
			registers[i->dst_reg] = load_wide(p, i);
		else
			forget_after_call(registers);
		break;
	case BPF_LDX:
		registers[i->dst_reg] = load_constant(p, i, registers[i->src_reg]);
		break;
	case BPF_ALU:
	case BPF_ALU64:
		registers[i->dst_reg] = compute(i, registers[i->dst_reg]);
		break;
	case BPF_STX:
		/* An atomic one may return a value, in one of these. */
		if (BPF_MODE(i->code) != BPF_MEM)
			registers[BPF_REG_0] = registers[i->src_reg] = registers[i->dst_reg] = unknown;
		break;
	case BPF_JMP:
		if (BPF_OP(i->code) == BPF_CALL)
			forget_after_call(registers);
		break;
	}
}

/* A branch whose condition is known becomes a jump that is always taken, or one to the next instruction. */
static void decide(struct pass *p, struct bpf_insn *i, const struct value *registers)
{
	bool is_32 = BPF_CLASS(i->code) == BPF_JMP32, is_equal;
	uint64_t operand = is_32 ? (uint32_t)i->imm : (uint64_t)(int64_t)i->imm;
	uint64_t number = registers[i->dst_reg].number;

	if (BPF_SRC(i->code) != BPF_K || registers[i->dst_reg].kind != VALUE_NUMBER ||
	    (BPF_OP(i->code) != BPF_JEQ && BPF_OP(i->code) != BPF_JNE))
		return;
	is_equal = (is_32 ? (uint32_t)number : number) == operand;
	*i = (struct bpf_insn){.code = BPF_JMP | BPF_JA, .off = is_equal == (BPF_OP(i->code) == BPF_JEQ) ? i->off : 0};
	p->changed = true;
}

/* Nothing is known where paths meet. */
static void decide_branches(struct pass *p)
{
	struct value registers[MAX_BPF_REG] = {};

	for (uint32_t at = 0; at < p->code->nr_instructions; at++) {
		struct bpf_insn *i = &p->code->instructions[at];

		if (p->marks[at])
			memset(registers, 0, sizeof(registers));
		if (is_jump(i) && !is_always_taken(i))
			decide(p, i, registers);
		else
			follow(p, i, registers);
		at += is_wide(i);
	}
}

static void add_path(struct pass *p, uint32_t at)
{
	if (at < p->code->nr_instructions && !(p->marks[at] & IS_REACHED)) {
		p->marks[at] |= IS_REACHED;
		p->places[p->nr_paths++] = at;
	}
}

/* Each instruction is added once at most, so that there is room for all. */
static void mark_reached(struct pass *p)
{
	p->nr_paths = 0;
	add_path(p, 0);
	while (p->nr_paths) {
		uint32_t at = p->places[--p->nr_paths];
		const struct bpf_insn *i = &p->code->instructions[at];

		if (is_jump(i) || names_function(i))
			add_path(p, target_of(p, at));
		if (!is_always_taken(i) && !is_exit(i))
			add_path(p, at + 1 + is_wide(i));
	}
}

/* A jump to the next instruction goes, too, unless a function begins with it, as lines are told of its beginning. */
static bool is_kept(const struct pass *p, uint32_t at)
{
	const struct bpf_insn *i = &p->code->instructions[at];

	return p->marks[at] & IS_REACHED && (!is_always_taken(i) || i->off || p->marks[at] & IS_START);
}

/* Decides what remains, and where. Returns how many instructions. */
static uint32_t place(struct pass *p)
{
	uint32_t kept = 0;

	for (uint32_t at = 0; at < p->code->nr_instructions; at++) {
		bool wide = is_wide(&p->code->instructions[at]);

		p->places[at] = kept;
		if (is_kept(p, at)) {
			p->marks[at] |= IS_KEPT;
			kept += 1 + wide;
		}
		at += wide;
	}
	return kept;
}

static void move(struct pass *p)
{
	for (uint32_t at = 0; at < p->code->nr_instructions; at++) {
		const struct bpf_insn *from = &p->code->instructions[at];
		struct bpf_insn *to = &p->code->instructions[p->places[at]];
		bool wide = is_wide(from);
		uint32_t target = is_jump(from) || names_function(from) ? target_of(p, at) : 0;

		if (p->marks[at] & IS_KEPT) {
			memmove(to, from, (1 + wide) * sizeof(*to));
			if (is_jump(to))
				to->off = (int16_t)(p->places[target] - p->places[at] - 1);
			else if (names_function(to))
				to->imm = (int32_t)(p->places[target] - p->places[at] - 1);
		}
		at += wide;
	}
}

/* Keeps what is told of the instructions that remain. */
static void move_infos(struct pass *p)
{
	struct kernel_code *code = p->code;
	uint32_t functions = 0, lines = 0;

	for (uint32_t i = 0; i < code->nr_functions; i++) {
		struct bpf_func_info info = code->functions[i];

		if (info.insn_off >= code->nr_instructions || !(p->marks[info.insn_off] & IS_KEPT))
			continue;
		info.insn_off = p->places[info.insn_off];
		code->functions[functions++] = info;
	}
	for (uint32_t i = 0; i < code->nr_lines; i++) {
		struct bpf_line_info info = code->lines[i];

		if (info.insn_off >= code->nr_instructions || !(p->marks[info.insn_off] & IS_KEPT))
			continue;
		info.insn_off = p->places[info.insn_off];
		code->lines[lines++] = info;
	}
	code->nr_functions = functions;
	code->nr_lines = lines;
}

/* Decides branches, and removes what they no longer lead to. Returns whether a further pass may find more. */
static bool pass(struct pass *p)
{
	uint32_t kept;

	p->changed = false;
	if (!mark_targets(p))
		return false;
	decide_branches(p);
	mark_reached(p);
	kept = place(p);
	p->changed |= kept < p->code->nr_instructions;
	move(p);
	move_infos(p);
	p->code->nr_instructions = kept;
	return p->changed;
}

int kernel_remove_dead_code(struct kernel_code *code, const struct kernel_constants *constants)
{
	struct pass p = {.code = code, .constants = constants};
	int err = 0;

	p.marks = malloc(code->nr_instructions);
	p.places = calloc(code->nr_instructions, sizeof(*p.places));
	if (!p.marks || !p.places)
		err = -ENOMEM;
	while (!err && pass(&p))
		;
	free(p.marks);
	free(p.places);
	return err;
}

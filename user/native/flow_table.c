// SPDX-License-Identifier: Apache-2.0
/*
 * What compilers make of a switch, in position-independent code and not:
 *
 *	cmp    $LAST,%index             cmp    $LAST,%index
 *	ja     default                  ja     default
 *	lea    table(%rip),%base        jmp    *table(,%index,8)
 *	movslq (%base,%index,4),%to
 *	add    %base,%to
 *	jmp    *%to
 *
 * with others between them, and with values that are moved from register to register. They are followed back from the
 * jump on the way that was taken to it.
 */
#include "native/flow_table.h"

#include <stdlib.h>
#include <string.h>

/* A value whose origin is looked for. */
struct traced {
	unsigned number; /* of its register; X86_NO_REGISTER: it lies in memory, or is not looked for */
	bool is_memory;
	struct x86_instruction load; /* if is_memory: that took it from there */
};

struct search {
	struct traced base, index;
	struct traced compared; /* another register that was compared; the index may be a copy of it */
	size_t compared_count;  /* what that tells */
	bool has_bound; /* a jump that passed by here, or was taken, tells that what was compared is small enough */
	bool is_closed; /* it allows the number that is compared with */
	struct flow_table *out;
};

static unsigned alu_group(const struct x86_instruction *i)
{
	return i->reg & 7;
}

static bool is_plain(const struct x86_instruction *i, enum x86_map map)
{
	return i->map == map && !i->is_vex && !i->is_evex;
}

/* Returns whether a value is in a register that the instruction writes, or may. */
static bool is_lost(const struct traced *value, const struct x86_instruction *i)
{
	unsigned number = value->number;
	/* What is written without being an operand: rax, rcx, rdx, rsi, rdi. */
	bool is_implicit = number <= 2 || number == 6 || number == 7;
	bool is_volatile = is_implicit || (number >= 8 && number <= 11);
	uint8_t op = i->opcode;

	if (number == X86_NO_REGISTER)
		return false;
	if (x86_is_call(i))
		return is_volatile;
	if (x86_writes(i, number))
		return true;
	if (is_plain(i, X86_ONE_BYTE)) {
		if (op >= 0x58 && op < 0x60)
			return ((op & 7u) | i->extension) == number;
		return is_implicit &&
		       (op == 0x98 || op == 0x99 || (op >= 0xa4 && op <= 0xaf && op != 0xa8 && op != 0xa9) ||
			op == 0xd7 || ((op == 0xf6 || op == 0xf7) && alu_group(i) >= 4));
	}
	return is_implicit && is_plain(i, X86_0F) &&
	       (op == 0x01 || op == 0x05 || (op >= 0x31 && op <= 0x34) || op == 0xa2 || op == 0xb0 || op == 0xb1 ||
		op == 0xc7);
}

/* Returns whether the instruction only moves what is in one register, or a part of it, to another. */
static bool is_copy(const struct x86_instruction *i, unsigned *to, unsigned *from)
{
	bool stores = is_plain(i, X86_ONE_BYTE) && i->opcode == 0x89;

	if (!i->has_modrm || i->mod != 3 ||
	    !(stores || (is_plain(i, X86_ONE_BYTE) && (i->opcode == 0x8b || i->opcode == 0x63)) ||
	      (is_plain(i, X86_0F) && (i->opcode == 0xb6 || i->opcode == 0xb7))))
		return false;
	*to = stores ? i->rm : i->reg;
	*from = stores ? i->reg : i->rm;
	return true;
}

/* Returns whether the instruction only takes a number from memory. */
static bool is_load(const struct x86_instruction *i)
{
	return i->has_modrm && i->mod != 3 &&
	       ((is_plain(i, X86_ONE_BYTE) && (i->opcode == 0x8b || i->opcode == 0x63)) ||
		(is_plain(i, X86_0F) && (i->opcode == 0xb6 || i->opcode == 0xb7)));
}

static bool is_same_memory(const struct x86_instruction *a, const struct x86_instruction *b)
{
	return a->mod != 3 && b->mod != 3 && a->base == b->base && a->index == b->index && a->scale == b->scale &&
	       a->displacement == b->displacement && a->base != X86_IP;
}

/* What an instruction compares with a number, or masks. */
struct with_number {
	bool is_memory;
	unsigned number; /* of the register, if it is not memory */
	uint64_t with;
};

/* accumulator: the opcode for %al; group: the one in ModRM of the others. */
static bool is_with_number(const struct x86_instruction *i, uint8_t accumulator, unsigned group,
			   struct with_number *out)
{
	bool is_byte = i->opcode == accumulator || i->opcode == 0x80, has_modrm = i->opcode >= 0x80;
	uint64_t mask = is_byte ? UINT8_MAX : i->has_66 && !i->wide ? UINT16_MAX : UINT32_MAX;

	if (!is_plain(i, X86_ONE_BYTE) ||
	    !(i->opcode == accumulator || i->opcode == accumulator + 1 ||
	      ((i->opcode == 0x80 || i->opcode == 0x81 || i->opcode == 0x83) && alu_group(i) == group)))
		return false;
	*out = (struct with_number){has_modrm && i->mod != 3, has_modrm ? i->rm : 0, (uint64_t)i->immediate & mask};
	return true;
}

static bool is_of_index(const struct search *s, const struct x86_instruction *i, const struct with_number *of)
{
	if (s->index.is_memory)
		return of->is_memory && is_same_memory(i, &s->index.load);
	return !of->is_memory && s->index.number == of->number;
}

/* cmp: takes what it and the jump behind it tell. */
static void take_comparison(struct search *s, const struct x86_instruction *i, const struct with_number *of)
{
	size_t count = (size_t)of->with + s->is_closed;

	if (!s->has_bound)
		return;
	if (is_of_index(s, i, of)) {
		s->out->count = count;
	} else if (!of->is_memory && s->compared.number == X86_NO_REGISTER) {
		s->compared.number = of->number;
		s->compared_count = count;
	}
}

/* Notes what a conditional jump says of what was compared before it: ja, jae, jb, jbe. */
static void take_condition(struct search *s, const struct flow_passed *passed)
{
	unsigned condition = passed->i.opcode & 15u;

	if (passed->i.map == X86_ONE_BYTE && passed->i.opcode >= 0xe0)
		return;
	if (passed->jumped ? condition == 2 || condition == 6 : condition == 7 || condition == 3) {
		s->has_bound = true;
		s->is_closed = condition == 6 || condition == 7;
	}
}

/* Returns whether the instruction leaves the flags as they are; of others that do, some are not known here. */
static bool leaves_flags(const struct x86_instruction *i)
{
	uint8_t op = i->opcode;

	if (is_plain(i, X86_0F))
		return op == 0x1f || (op >= 0x10 && op < 0x18) || op == 0x28 || op == 0x29 ||
		       (op >= 0x40 && op < 0x50) || op == 0x6e || op == 0x6f || op == 0x7e || op == 0x7f ||
		       op == 0xb6 || op == 0xb7 || op == 0xbe || op == 0xbf || op == 0xd6 || op == 0xef;
	return is_plain(i, X86_ONE_BYTE) &&
	       ((op >= 0x50 && op < 0x60) || op == 0x63 || (op >= 0x88 && op <= 0x8d) || op == 0x90 ||
		(op >= 0xb0 && op < 0xc0) || op == 0xc6 || op == 0xc7 || op == 0xe9 || op == 0xeb);
}

/* Takes one instruction more on the way back, in search of the number of entries. Returns false if it is lost. */
static bool trace_index(struct search *s, const struct flow_passed *passed)
{
	const struct x86_instruction *i = &passed->i;
	struct with_number of;
	unsigned to, from;

	if (s->out->count)
		return true;
	if (x86_is_conditional(i)) {
		take_condition(s, passed);
		return true;
	}
	if (is_with_number(i, 0x3c, 7, &of))
		take_comparison(s, i, &of);
	else if (is_with_number(i, 0x24, 4, &of) && is_of_index(s, i, &of) && !(of.with & (of.with + 1)))
		s->out->count = (size_t)of.with + 1;
	if (s->out->count)
		return true;
	if (!leaves_flags(i))
		s->has_bound = false;
	/* What was compared is the index itself. */
	if (is_copy(i, &to, &from) && ((to == s->index.number && from == s->compared.number) ||
				       (to == s->compared.number && from == s->index.number && !s->index.is_memory))) {
		s->out->count = s->compared_count;
		return true;
	}
	if (is_lost(&s->compared, i))
		s->compared.number = X86_NO_REGISTER;
	if (!is_lost(&s->index, i))
		return true;
	if (is_copy(i, &to, &from) && to == s->index.number) {
		s->index.number = from;
		return true;
	}
	if (s->index.is_memory || !is_load(i) || i->reg != s->index.number)
		return false;
	s->index = (struct traced){.number = i->base, .is_memory = true, .load = *i};
	return i->base != X86_NO_REGISTER;
}

/* Likewise, in search of where the table is. */
static bool trace_base(struct search *s, const struct flow_passed *passed)
{
	const struct x86_instruction *i = &passed->i;
	unsigned to, from;

	if (s->out->address || !is_lost(&s->base, i))
		return true;
	if (is_copy(i, &to, &from) && to == s->base.number && i->wide) {
		s->base.number = from;
		return true;
	}
	if (!is_plain(i, X86_ONE_BYTE) || i->opcode != 0x8d || !i->wide || i->base != X86_IP)
		return false;
	s->out->address = passed->next_pc + (uint64_t)(int64_t)i->displacement;
	return s->out->address;
}

/* add to a register: sets the other one. */
static bool is_sum(const struct x86_instruction *i, unsigned sum, unsigned *other)
{
	bool is_to_rm = i->opcode == 0x01 && i->rm == sum, is_to_reg = i->opcode == 0x03 && i->reg == sum;

	if (!is_plain(i, X86_ONE_BYTE) || !i->wide || i->mod != 3 || !(is_to_rm || is_to_reg))
		return false;
	*other = is_to_rm ? i->reg : i->rm;
	return true;
}

static bool is_entry(const struct x86_instruction *i, unsigned number, unsigned base)
{
	return is_plain(i, X86_ONE_BYTE) && i->opcode == 0x63 && i->wide && i->mod != 3 && i->reg == number &&
	       i->base == base && i->index != X86_NO_REGISTER && i->scale == 4 && !i->displacement;
}

/* Finds where the entry is taken from the table. Returns the number of instructions up to there, or 0. */
static size_t find_entry(struct search *s, const struct flow_passed *passed, size_t count)
{
	struct traced sum = {.number = passed[0].i.rm}, other = {.number = X86_NO_REGISTER};
	size_t at = 1;

	for (; at < count && other.number == X86_NO_REGISTER; at++) {
		if (!is_sum(&passed[at].i, sum.number, &other.number) && is_lost(&sum, &passed[at].i))
			return 0;
	}
	for (; at < count; at++) {
		const struct x86_instruction *i = &passed[at].i;
		bool to_sum = is_entry(i, sum.number, other.number);

		if (to_sum || is_entry(i, other.number, sum.number)) {
			s->base.number = i->base;
			s->index.number = i->index;
			return at + 1;
		}
		/* The table's address may be taken behind it. */
		if (is_lost(&sum, i) || is_lost(&other, i))
			return 0;
	}
	return 0;
}

bool flow_table_find(const struct flow_passed *passed, size_t count, struct flow_table *out)
{
	struct search s = {.base.number = X86_NO_REGISTER,
			   .index.number = X86_NO_REGISTER,
			   .compared.number = X86_NO_REGISTER,
			   .out = out};
	const struct x86_instruction *jump = &passed[0].i;
	size_t at = 1;

	memset(out, 0, sizeof(*out));
	if (jump->mod == 3) {
		at = find_entry(&s, passed, count);
	} else if (jump->base == X86_NO_REGISTER && jump->index != X86_NO_REGISTER && jump->scale == 8) {
		out->is_absolute = true;
		out->address = (uint64_t)(int64_t)jump->displacement;
		s.index.number = jump->index;
	} else {
		return false;
	}
	for (; at && at < count && !(out->address && out->count); at++) {
		if (!trace_index(&s, &passed[at]) || !trace_base(&s, &passed[at]))
			return false;
	}
	return out->address && out->count && out->count <= FLOW_TABLE_MAX;
}

bool flow_table_read(struct elf_file *elf, const struct flow_table *table, uint64_t *targets)
{
	size_t entry = table->is_absolute ? sizeof(uint64_t) : sizeof(int32_t), size = table->count * entry;
	uint8_t *bytes = malloc(size);
	bool is_whole = bytes && elf_file_read(elf, table->address, bytes, size) == (ssize_t)size;

	for (size_t k = 0; is_whole && k < table->count; k++) {
		int32_t distance;

		if (table->is_absolute) {
			memcpy(&targets[k], bytes + k * entry, entry);
			continue;
		}
		memcpy(&distance, bytes + k * entry, entry);
		targets[k] = table->address + (uint64_t)(int64_t)distance;
	}
	free(bytes);
	return is_whole;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Functions are found by symbols, by calls, and by addresses that are taken; the latter may be anything, and count only
 * if what is there returns as a function does. All are followed twice: the first time to know where functions begin, so
 * that none is taken for the rest of one before it, whose last call does not return.
 */
#include "native/flow.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "native/flow_code.h"
#include "native/flow_place.h"
#include "native/flow_rows.h"
#include "native/flow_table.h"
#include "native/x86.h"
#include "pybpf_native.h"

/* Most instructions of a function; those of CPython's evaluation loop are some 20,000. */
#define INSTRUCTIONS_MAX 100000
/* Places by which they are found, a power of 2. */
#define SLOTS_BITS 18
/* Most instructions that are followed in one go; those of OpenCV's library, the most that were met, are 3 million. */
#define ALL_INSTRUCTIONS_MAX 20000000

/* Most times that all instructions of a function are gone through; loops within each other take one more each. */
#define PASSES_MAX 1000

#define NO_INSTRUCTION UINT32_MAX

/* How a function ends, or may. */
enum end {
	END_NONE,
	END_RIGHT, /* it returns, another function does that in its place, or it calls one that never does */
	END_WRONG, /* likewise, but with more on the stack than it found there */
};

/* An instruction of the function that is followed. */
struct walked {
	uint64_t pc;
	struct flow_place place;
	uint32_t next, target; /* that follow it: indexes, or NO_INSTRUCTION */
	uint32_t from;         /* which led to it first; NO_INSTRUCTION */
	uint32_t table;        /* of a jump by a table: index of the first of its entries in flow.entries */
	uint32_t nr_entries;
	uint8_t length; /* 0: not decoded yet, or not known */
	uint8_t end;    /* enum end */
	bool is_call;   /* next follows only if what is called returns */
	bool returns;   /* it leads to an end that is right */
	bool is_reached;
	uint8_t pad[7];
};

struct slot {
	uint32_t turn, index;
};

struct flow {
	struct flow_code code;
	uint64_t entry;
	uint64_t left; /* instructions that may still be followed */
	/* The function that is followed. */
	struct walked *walked; /* in the order in which they were met */
	size_t room;
	uint32_t nr_walked;
	uint32_t turn;      /* slots of another one are empty */
	struct slot *slots; /* by hash */
	uint32_t *calls;    /* instructions whose next one is not followed yet */
	size_t nr_calls, calls_room;
	uint32_t *anew; /* instructions that are to be followed again, with less known */
	size_t nr_anew, anew_room;
	uint32_t *entries; /* what tables lead to: instructions */
	size_t nr_entries, entries_room;
	struct flow_passed *passed; /* FLOW_TABLE_PATH_MAX: on the way to a jump by a table */
	uint64_t *targets;          /* FLOW_TABLE_MAX */
	bool is_entry, is_wrong, has_root;
	bool is_final;
	struct flow_rows *out;
	int err; /* 0 or -ENOMEM */
};

static struct walked *walked_at(const struct flow *f, uint32_t index)
{
	return &f->walked[index];
}

/* Returns the slot that has the instruction, or is free for it. */
static struct slot *slot_of(const struct flow *f, uint64_t pc)
{
	uint32_t at = (uint32_t)(pc * 0x9e3779b97f4a7c15u >> (64 - SLOTS_BITS));

	while (f->slots[at].turn == f->turn && f->walked[f->slots[at].index].pc != pc)
		at = (at + 1) % (1u << SLOTS_BITS);
	return &f->slots[at];
}

static bool is_known(const struct flow *f, uint64_t pc)
{
	return slot_of(f, pc)->turn == f->turn;
}

/* Adds an instruction. Returns its index, or NO_INSTRUCTION. */
static uint32_t add(struct flow *f, uint32_t from, uint64_t pc, const struct flow_place *place, struct slot *slot)
{
	if (f->nr_walked == INSTRUCTIONS_MAX || !f->left) {
		f->is_wrong = true;
		return NO_INSTRUCTION;
	}
	if (array_reserve(&f->walked, &f->room, f->nr_walked + 1, sizeof(*f->walked))) {
		f->err = -ENOMEM;
		return NO_INSTRUCTION;
	}
	f->left--;
	f->walked[f->nr_walked] = (struct walked){
		.pc = pc, .place = *place, .from = from, .next = NO_INSTRUCTION, .target = NO_INSTRUCTION};
	*slot = (struct slot){f->turn, f->nr_walked};
	return f->nr_walked++;
}

/*
 * An instruction is met again: its place must be the same, but the frame pointer may be any register on one of the
 * ways, where something else tells the frame, and nothing else may where it does. Then it is on all, and what follows
 * is followed anew.
 */
static void meet(struct flow *f, uint32_t index, const struct flow_place *place)
{
	struct flow_place *known = &walked_at(f, index)->place, now = *place;
	bool is_same_keeper = known->keeper == now.keeper && known->kept == now.kept;
	bool is_told = known->depth != FLOW_UNKNOWN || (is_same_keeper && known->keeper != FLOW_UNKNOWN);

	if (!is_same_keeper && known->frame == now.frame && known->frame != FLOW_UNKNOWN)
		now.keeper = now.kept = FLOW_UNKNOWN;
	if (is_told && known->frame != now.frame)
		now.frame = FLOW_UNKNOWN;
	if (!memcmp(known, &now, sizeof(now)))
		return;
	if (now.frame == FLOW_UNKNOWN)
		known->frame = FLOW_UNKNOWN;
	if (now.keeper == FLOW_UNKNOWN)
		known->keeper = known->kept = FLOW_UNKNOWN;
	f->is_wrong |= memcmp(known, &now, sizeof(now)) != 0;
	if (!walked_at(f, index)->length)
		return;
	if (array_reserve(&f->anew, &f->anew_room, f->nr_anew + 1, sizeof(*f->anew)))
		f->err = -ENOMEM;
	else
		f->anew[f->nr_anew++] = index;
}

/* Goes to an instruction with a place. Returns its index, or NO_INSTRUCTION. */
static uint32_t go_to(struct flow *f, uint32_t from, uint64_t pc, const struct flow_place *place)
{
	struct slot *slot = slot_of(f, pc);

	if (slot->turn != f->turn)
		return add(f, from, pc, place, slot);
	meet(f, slot->index, place);
	return slot->index;
}

/* The next instruction. Another function may begin there, where a call does not return. */
static void fall_through(struct flow *f, uint32_t from, uint64_t pc, const struct flow_place *place)
{
	uint32_t next = NO_INSTRUCTION;

	if (flow_code_gap(&f->code, pc) && !flow_code_begin_at(&f->code, pc))
		next = go_to(f, from, pc, place);
	walked_at(f, from)->next = next;
}

static void end_with(struct flow *f, uint32_t from, const struct flow_place *place)
{
	/* Assembly may use the frame pointer without saving it, and then set it to 0. */
	f->is_wrong |= place->is_root;
	walked_at(f, from)->end = flow_is_at_begin(place) ? END_RIGHT : END_WRONG;
}

static void jump(struct flow *f, uint32_t from, uint64_t target, const struct flow_place *place)
{
	const struct eh_frame_function *covered = flow_code_covered(&f->code, target);
	uint32_t to;

	/* Another function, in place of a call of it. */
	if (!place->is_root &&
	    ((covered && covered->start == target) || flow_code_begin_at(&f->code, target) >= FLOW_BEGIN_FUNCTION)) {
		end_with(f, from, place);
		return;
	}
	if (!flow_code_gap(&f->code, target))
		return;
	to = go_to(f, from, target, place);
	walked_at(f, from)->target = to;
}

static bool decode(const struct flow *f, const struct walked *one, struct x86_instruction *i)
{
	const struct flow_gap *gap = flow_code_gap(&f->code, one->pc);

	return x86_decode(gap->code + (one->pc - gap->start), (size_t)(gap->end - one->pc), i);
}

/* Takes the instructions that lead to one, from it on back. Returns how many. */
static size_t take_passed(struct flow *f, uint32_t index)
{
	uint32_t after = NO_INSTRUCTION;
	size_t count = 0;

	for (; index != NO_INSTRUCTION && count < FLOW_TABLE_PATH_MAX; count++) {
		const struct walked *one = walked_at(f, index);
		struct flow_passed *passed = &f->passed[count];

		if (!decode(f, one, &passed->i))
			break;
		passed->next_pc = one->pc + passed->i.length;
		passed->jumped = after != NO_INSTRUCTION && walked_at(f, after)->pc != passed->next_pc;
		after = index;
		index = one->from;
	}
	return count;
}

/* Returns whether a jump by a register, or by memory, is one within the function, and sets its targets then. */
static bool find_targets(struct flow *f, uint32_t from, size_t *count)
{
	const struct flow_gap *gap = flow_code_gap(&f->code, walked_at(f, from)->pc);
	struct flow_table table;

	if (!flow_table_find(f->passed, take_passed(f, from), &table) || table.count > f->left ||
	    !flow_table_read(f->code.elf, &table, f->targets))
		return false;
	for (size_t k = 0; k < table.count; k++) {
		if (f->targets[k] < gap->start || f->targets[k] >= gap->end)
			return false;
	}
	*count = table.count;
	return true;
}

/* A jump by a table, or to another function. */
static void jump_by_table(struct flow *f, uint32_t from, const struct flow_place *place)
{
	const struct walked *one = walked_at(f, from);
	size_t count = 0;

	for (uint32_t k = 0; k < one->nr_entries; k++)
		meet(f, f->entries[one->table + k], place);
	if (one->nr_entries || !find_targets(f, from, &count))
		return;
	if (array_reserve(&f->entries, &f->entries_room, f->nr_entries + count, sizeof(*f->entries))) {
		f->err = -ENOMEM;
		return;
	}
	walked_at(f, from)->table = (uint32_t)f->nr_entries;
	walked_at(f, from)->nr_entries = (uint32_t)count;
	f->left -= count;
	for (size_t k = 0; k < count && !f->err && !f->is_wrong; k++)
		f->entries[f->nr_entries++] = go_to(f, from, f->targets[k], place);
}

/* What follows a call is looked at last: it may not return, and then that is any other code. */
static void call(struct flow *f, uint32_t from, uint64_t target, const struct flow_place *place)
{
	if (target && flow_code_begin_at(&f->code, target) == FLOW_BEGIN_ENDLESS) {
		walked_at(f, from)->end = END_RIGHT;
		return;
	}
	if (walked_at(f, from)->is_call) {
		if (walked_at(f, from)->next != NO_INSTRUCTION)
			meet(f, walked_at(f, from)->next, place);
		return;
	}
	if (array_reserve(&f->calls, &f->calls_room, f->nr_calls + 1, sizeof(*f->calls))) {
		f->err = -ENOMEM;
		return;
	}
	walked_at(f, from)->is_call = true;
	f->calls[f->nr_calls++] = from;
}

/*
 * A call returns if there is no other way to what follows it, or another way leads there with the same place; a call
 * that does not return can be followed by anything else.
 */
static void return_from(struct flow *f, uint32_t from)
{
	const struct walked *one = walked_at(f, from);
	struct flow_place place = one->place, known;
	uint64_t pc = one->pc + one->length;

	if (is_known(f, pc)) {
		known = walked_at(f, slot_of(f, pc)->index)->place;
		known.frame = place.frame;
		known.keeper = place.keeper;
		known.kept = place.kept;
		if (memcmp(&known, &place, sizeof(place)))
			return;
	}
	fall_through(f, from, pc, &place);
}

/* Follows an instruction that is no jump. pc: of the next one. */
static void follow_other(struct flow *f, uint32_t from, const struct x86_instruction *i, uint64_t pc,
			 struct flow_place *place)
{
	switch (flow_step(place, i)) {
	case FLOW_IS_NONE:
		f->is_wrong = true;
		return;
	case FLOW_IS_LOST:
		return;
	case FLOW_GOES_ON:
		break;
	}
	f->has_root |= place->is_root;
	if (i->map == X86_ONE_BYTE && i->opcode == 0x8d && i->base == X86_IP)
		flow_code_note(&f->code, pc + (uint64_t)(int64_t)i->displacement, FLOW_BEGIN_PERHAPS);
	if (!x86_is_call(i))
		fall_through(f, from, pc, place);
	/* What begins a program calls what ends it. */
	else if (!f->is_entry || !place->is_root)
		call(f, from, i->opcode == 0xe8 ? pc + (uint64_t)i->immediate : 0, place);
}

static void follow_one_byte(struct flow *f, uint32_t from, const struct x86_instruction *i, uint64_t pc,
			    struct flow_place *place)
{
	switch (i->opcode) {
	case 0xc2: /* ret */
	case 0xc3:
		end_with(f, from, place);
		break;
	case 0xca: /* far returns, int3, hlt */
	case 0xcb:
	case 0xcf:
	case 0xcc:
	case 0xf4:
		break;
	case 0xe9:
	case 0xeb:
		jump(f, from, pc + (uint64_t)i->immediate, place);
		break;
	case 0xff:
		if ((i->reg & 7) == 4)
			jump_by_table(f, from, place);
		else if ((i->reg & 7) != 5)
			follow_other(f, from, i, pc, place);
		break;
	default:
		follow_other(f, from, i, pc, place);
	}
}

static void follow(struct flow *f, uint32_t index)
{
	struct walked *one = walked_at(f, index);
	struct flow_place place = one->place;
	struct x86_instruction i;
	uint64_t pc;

	if (!decode(f, one, &i)) {
		f->is_wrong = true;
		return;
	}
	one->length = i.length;
	one->end = END_NONE;
	one->target = NO_INSTRUCTION;
	one->next = one->is_call ? one->next : NO_INSTRUCTION;
	pc = one->pc + i.length;
	if (x86_is_undefined(&i))
		return;
	if (x86_is_conditional(&i)) {
		jump(f, index, pc + (uint64_t)i.immediate, &place);
		fall_through(f, index, pc, &place);
	} else if (i.map == X86_ONE_BYTE) {
		follow_one_byte(f, index, &i, pc, &place);
	} else {
		follow_other(f, index, &i, pc, &place);
	}
}

static bool leads_to_return(const struct flow *f, uint32_t index)
{
	return index != NO_INSTRUCTION && walked_at(f, index)->returns;
}

static bool table_leads_to_return(const struct flow *f, const struct walked *one)
{
	for (uint32_t k = 0; k < one->nr_entries; k++) {
		if (leads_to_return(f, f->entries[one->table + k]))
			return true;
	}
	return false;
}

/* Finds the instructions that lead to a right end. */
static void find_returning(struct flow *f)
{
	bool more = true;

	for (int pass = 0; more && !f->is_wrong; pass++) {
		more = false;
		f->is_wrong = pass == PASSES_MAX;
		for (uint32_t i = f->nr_walked; i-- > 0;) {
			struct walked *one = walked_at(f, i);

			if (!one->returns && (one->end == END_RIGHT || leads_to_return(f, one->next) ||
					      leads_to_return(f, one->target) || table_leads_to_return(f, one)))
				one->returns = more = true;
		}
	}
}

static bool reach(struct flow *f, uint32_t index)
{
	struct walked *one = index == NO_INSTRUCTION ? NULL : walked_at(f, index);

	if (!one || one->is_reached)
		return false;
	one->is_reached = true;
	return true;
}

/*
 * Finds the instructions that are certainly the function's: what follows a call is if it leads to a return, which it
 * can only if the stack is as the call's function left it.
 */
static void find_reached(struct flow *f)
{
	bool more = reach(f, 0);

	for (int pass = 0; more && !f->is_wrong; pass++) {
		more = false;
		f->is_wrong = pass == PASSES_MAX;
		for (uint32_t i = 0; i < f->nr_walked; i++) {
			const struct walked *one = walked_at(f, i);

			if (!one->is_reached)
				continue;
			if (!one->is_call || leads_to_return(f, one->next))
				more |= reach(f, one->next);
			more |= reach(f, one->target);
			for (uint32_t k = 0; k < one->nr_entries; k++)
				more |= reach(f, f->entries[one->table + k]);
		}
	}
	for (uint32_t i = 0; i < f->nr_walked; i++)
		f->is_wrong |= walked_at(f, i)->is_reached && walked_at(f, i)->end == END_WRONG;
}

static int compare_instructions(const void *a, const void *b)
{
	const struct walked *one = a, *other = b;

	return one->pc < other->pc ? -1 : one->pc > other->pc;
}

static int add_row(struct flow *f, const struct walked *one, bool is_certain)
{
	struct flow_rows *out = f->out;
	struct flow_row *last = out->count ? &out->rows[out->count - 1] : NULL;
	uint32_t rule = flow_rule(&one->place);
	bool is_begin = flow_code_begin_at(&f->code, one->pc) != FLOW_BEGIN_NONE;

	if (!one->is_reached || !one->length || rule == PYBPF_NATIVE_NONE || (f->has_root && rule != PYBPF_NATIVE_END))
		return 0;
	/* That nothing else has been put there shows where it is taken back. */
	if (PYBPF_RULE_KIND(rule) == PYBPF_NATIVE_SP_KEPT && !one->returns)
		return 0;
	if (last && last->end == one->pc && last->rule == rule && last->is_certain == is_certain && !is_begin) {
		last->end += one->length;
		return 0;
	}
	if (array_reserve(&out->rows, &out->room, out->count + 1, sizeof(*out->rows)))
		return -ENOMEM;
	out->rows[out->count++] = (struct flow_row){one->pc, one->pc + one->length, rule, is_certain, is_begin};
	return 0;
}

/* The instructions' order is lost. */
static void add_rows(struct flow *f, bool is_certain)
{
	qsort(f->walked, f->nr_walked, sizeof(*f->walked), compare_instructions);
	for (uint32_t i = 0; i < f->nr_walked && !f->err; i++)
		f->err = add_row(f, walked_at(f, i), is_certain);
}

/* What a function calls begins a function, if it is one. */
static void note_calls(struct flow *f)
{
	for (uint32_t k = 0; k < f->nr_walked; k++) {
		const struct walked *one = walked_at(f, k);
		struct x86_instruction i;

		if (one->is_reached && one->length && decode(f, one, &i) && i.map == X86_ONE_BYTE && i.opcode == 0xe8)
			flow_code_note(&f->code, one->pc + i.length + (uint64_t)i.immediate, FLOW_BEGIN_FUNCTION);
	}
}

static void follow_function(struct flow *f, uint64_t start)
{
	bool is_certain = flow_code_begin_at(&f->code, start) >= FLOW_BEGIN_FUNCTION;
	struct flow_place place = FLOW_PLACE_BEGIN;
	uint32_t at = 0;

	f->is_wrong = false;
	f->nr_calls = 0;
	f->nr_entries = f->nr_anew = 0;
	f->has_root = false;
	f->is_entry = start == f->entry;
	f->nr_walked = 0;
	f->turn++;
	go_to(f, NO_INSTRUCTION, start, &place);
	while (!f->err && !f->is_wrong && (f->nr_anew || at < f->nr_walked || f->nr_calls)) {
		if (f->nr_anew)
			follow(f, f->anew[--f->nr_anew]);
		else if (at < f->nr_walked)
			follow(f, at++);
		else
			return_from(f, f->calls[--f->nr_calls]);
	}
	if (!f->err && !f->is_wrong) {
		find_returning(f);
		find_reached(f);
	}
	if (!f->err && !f->is_wrong && (is_certain || walked_at(f, 0)->returns || f->has_root)) {
		note_calls(f);
		if (f->is_final)
			add_rows(f, is_certain);
	}
}

static void follow_all(struct flow *f, bool is_final)
{
	f->is_final = is_final;
	f->left = ALL_INSTRUCTIONS_MAX;
	for (size_t i = 0; i < f->code.nr_starts && !f->err && !f->code.err; i++)
		follow_function(f, f->code.starts[i]);
}

int flow_make_rows(struct elf_file *elf, const struct eh_frame_function *covered, size_t count, struct flow_rows *out)
{
	struct flow f = {.entry = elf_file_entry(elf), .out = out};

	memset(out, 0, sizeof(*out));
#ifndef __x86_64__
	return 0; /* of which --native is; a file is one of this machine's */
#endif
	flow_code_open(&f.code, elf, covered, count);
	f.slots = calloc(1u << SLOTS_BITS, sizeof(*f.slots));
	f.passed = calloc(FLOW_TABLE_PATH_MAX, sizeof(*f.passed));
	f.targets = calloc(FLOW_TABLE_MAX, sizeof(*f.targets));
	if (!f.slots || !f.passed || !f.targets)
		f.err = -ENOMEM;
	if (f.code.nr_gaps && !f.code.err && !f.err) {
		flow_code_find_starts(&f.code);
		follow_all(&f, false);
		follow_all(&f, true);
		flow_rows_settle(out);
	}
	f.err = f.err ? f.err : f.code.err;
	flow_code_close(&f.code);
	free(f.walked);
	free(f.slots);
	free(f.calls);
	free(f.entries);
	free(f.anew);
	free(f.passed);
	free(f.targets);
	return f.err;
}

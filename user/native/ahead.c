// SPDX-License-Identifier: Apache-2.0
/*
 * Follows all paths from the instruction, those behind a call last: what is reached without a call certainly belongs to
 * the function. The returns that are reached behind the fewest calls decide, if they agree.
 */
#include "native/ahead.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "native/ahead_place.h"
#include "native/x86.h"
#include "pybpf_native.h"

/* Most instructions that are looked at for one. */
#define STEPS_MAX 4096
/* Places by which they are found, a power of 2, and twice as many. */
#define SLOTS 8192
/* Most calls on the way to a return. */
#define CALLS_MAX 64
/* Bytes of the longest instruction. */
#define INSTRUCTION_MAX 15
/* Code that is kept, each page in a place of its own. */
#define PAGE       4096u
#define PAGES_KEPT 16

#define NO_STEP UINT32_MAX

struct step {
	uint64_t pc;
	struct ahead_place place; /* before it */
	uint32_t before;          /* by which step it was reached */
	uint8_t length;           /* 0: it could not be read */
	uint8_t calls;            /* on the way to it */
	bool goes_on;             /* to the instruction behind it, and is no call */
	bool is_shown;            /* its row is wanted */
};

struct kept_page {
	uint64_t number;
	size_t size;
	bool is_there;
	uint8_t bytes[PAGE];
};

struct ahead {
	const struct ahead_code *code;
	struct step steps[STEPS_MAX];
	uint32_t nr_steps;
	uint32_t slots[SLOTS];       /* step + 1; 0: empty */
	uint32_t waiting[STEPS_MAX]; /* calls whose next instructions have not been looked at */
	uint32_t nr_waiting;
	uint32_t calls; /* on the way to what is looked at now */
	/* The return that decides. */
	uint32_t end;
	uint32_t rule; /* of the start */
	bool is_wrong; /* returns, or ways, contradict each other */
	struct kept_page pages[PAGES_KEPT];
};

static const struct kept_page *page_at(struct ahead *a, uint64_t address)
{
	struct kept_page *page = &a->pages[address / PAGE % PAGES_KEPT];

	if (!page->is_there || page->number != address / PAGE) {
		page->number = address / PAGE;
		page->is_there = true;
		page->size = a->code->read(a->code->arg, page->number * PAGE, page->bytes, PAGE);
	}
	return page;
}

static size_t fetch(struct ahead *a, uint64_t address, uint8_t *out, size_t size)
{
	size_t done = 0;

	while (done < size) {
		const struct kept_page *page = page_at(a, address + done);
		size_t at = (size_t)((address + done) % PAGE), left = at < page->size ? page->size - at : 0;
		size_t part = left < size - done ? left : size - done;

		if (!part)
			break;
		memcpy(out + done, page->bytes + at, part);
		done += part;
	}
	return done;
}

static uint32_t *slot_of(struct ahead *a, uint64_t pc)
{
	uint32_t at = (uint32_t)(pc * 0x9e3779b97f4a7c15u >> 32) % SLOTS;

	while (a->slots[at] && a->steps[a->slots[at] - 1].pc != pc)
		at = (at + 1) % SLOTS;
	return &a->slots[at];
}

/* Goes to an instruction, unless it was reached before. One function has one depth of the stack at each of its own. */
static void go_to(struct ahead *a, uint64_t pc, const struct ahead_place *place, uint32_t before)
{
	uint32_t *slot = slot_of(a, pc);
	const struct step *known = *slot ? &a->steps[*slot - 1] : NULL;

	if (known) {
		a->is_wrong |= known->calls == a->calls && known->place.sp.base == place->sp.base &&
			       known->place.sp.offset != place->sp.offset;
		return;
	}
	if (a->nr_steps == STEPS_MAX)
		return;
	a->steps[a->nr_steps] = (struct step){.pc = pc, .place = *place, .before = before, .calls = (uint8_t)a->calls};
	*slot = ++a->nr_steps;
}

/* The function returns. Returns whose stack pointer, or frame pointer, is not known say nothing. */
static void end_at(struct ahead *a, uint32_t index)
{
	uint32_t rule = ahead_rule(&a->steps[0].place, &a->steps[index].place);

	if (PYBPF_RULE_KIND(rule) == PYBPF_NATIVE_NONE)
		return;
	a->is_wrong |= a->end != NO_STEP && a->rule != rule;
	a->end = index;
	a->rule = rule;
}

static void follow_other(struct ahead *a, uint32_t index, const struct x86_instruction *i)
{
	struct step *step = &a->steps[index];
	struct ahead_place place = step->place;

	if (x86_is_call(i)) {
		/* A call of the next instruction pushes its address. */
		if (i->opcode != 0xe8 || i->immediate)
			a->waiting[a->nr_waiting++] = index;
		return;
	}
	if (!ahead_step(&place, i))
		return;
	step->goes_on = true;
	go_to(a, step->pc + step->length, &place, index);
}

static void follow(struct ahead *a, uint32_t index)
{
	struct step *step = &a->steps[index];
	const struct ahead_place place = step->place;
	uint8_t code[INSTRUCTION_MAX];
	struct x86_instruction i;

	if (!x86_decode(code, fetch(a, step->pc, code, sizeof(code)), &i))
		return;
	step->length = i.length;
	if (x86_is_undefined(&i))
		return;
	if (x86_is_conditional(&i)) {
		step->goes_on = true;
		go_to(a, step->pc + i.length, &place, index);
		go_to(a, step->pc + i.length + (uint64_t)i.immediate, &place, index);
		return;
	}
	if (i.map != X86_ONE_BYTE || i.is_vex || i.is_evex) {
		follow_other(a, index, &i);
		return;
	}
	switch (i.opcode) {
	case 0xc2: /* ret */
	case 0xc3:
		end_at(a, index);
		break;
	case 0xe9: /* jmp */
	case 0xeb:
		go_to(a, step->pc + i.length + (uint64_t)i.immediate, &place, index);
		break;
	case 0xca: /* far returns, int3, hlt */
	case 0xcb:
	case 0xcf:
	case 0xcc:
	case 0xf4:
		break;
	case 0xff:
		/* A jump to what is not known. */
		if ((i.reg & 7) != 4 && (i.reg & 7) != 5)
			follow_other(a, index, &i);
		break;
	default:
		follow_other(a, index, &i);
	}
}

/* Goes on behind the calls that were met. Returns whether there were any. */
static bool pass_calls(struct ahead *a)
{
	uint32_t count = a->nr_waiting;
	bool more = count && a->calls < CALLS_MAX;

	a->calls++;
	a->nr_waiting = 0;
	for (uint32_t i = 0; i < count && more; i++) {
		const struct step *call = &a->steps[a->waiting[i]];
		const struct ahead_place place = call->place;

		go_to(a, call->pc + call->length, &place, a->waiting[i]);
	}
	return more;
}

static void search(struct ahead *a, uint64_t start)
{
	const struct ahead_place begin = AHEAD_PLACE_BEGIN;
	uint32_t at = 0;

	a->end = NO_STEP;
	go_to(a, start, &begin, NO_STEP);
	do {
		while (at < a->nr_steps && !a->is_wrong)
			follow(a, at++);
	} while (a->end == NO_STEP && !a->is_wrong && pass_calls(a));
}

/*
 * Returns whether other code begins behind a call, which then never returns: what aligns a function, and what is
 * mostly its first instruction. Nobody pushes anything, nor makes room, right behind a call.
 */
static bool is_another_begin(struct ahead *a, uint64_t pc)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	uint8_t code[INSTRUCTION_MAX];
	size_t size = fetch(a, pc, code, sizeof(code));
	struct x86_instruction i;

	if (size >= sizeof(endbr64) && !memcmp(code, endbr64, sizeof(endbr64)))
		return true;
	if (!x86_decode(code, size, &i))
		return true;
	if (i.is_vex || i.is_evex)
		return false;
	if (i.map == X86_0F)
		return i.opcode == 0x1f;
	return i.map == X86_ONE_BYTE &&
	       ((i.opcode >= 0x50 && i.opcode < 0x58) || (i.opcode == 0x90 && !i.extension) || i.opcode == 0xcc ||
		((i.opcode == 0x83 || i.opcode == 0x81) && i.mod == 3 && i.rm == X86_SP && (i.reg & 7) == 5));
}

/* The last bytes of calls: e8 rel32, and ff /2 with each length of its operand. */
static bool ends_a_call(struct ahead *a, uint64_t pc)
{
	static const uint8_t lengths[] = {2, 3, 4, 6, 7};
	uint8_t code[8];

	if (fetch(a, pc - sizeof(code), code, sizeof(code)) < sizeof(code))
		return false;
	for (size_t i = 0; i < sizeof(lengths); i++) {
		const uint8_t *at = code + sizeof(code) - lengths[i];

		if (at[0] == 0xff && (at[1] >> 3 & 7) == 2)
			return true;
	}
	return code[3] == 0xe8;
}

/* What is reached without a call is the function's, and so is the way to the return. */
static void choose_shown(struct ahead *a)
{
	for (uint32_t i = 0; i < a->nr_steps; i++)
		a->steps[i].is_shown = !a->steps[i].calls;
	for (uint32_t i = a->end; i != NO_STEP; i = a->steps[i].before)
		a->steps[i].is_shown = true;
}

static int compare_steps(const void *a, const void *b)
{
	const struct step *one = a, *other = b;

	return one->pc < other->pc ? -1 : one->pc > other->pc;
}

/* A row ends where another function may begin: frames are named by where their rows do. */
static int add_rows(struct ahead *a, uint64_t start, bool is_exact, struct ahead_rows *out)
{
	const struct ahead_place end = a->steps[a->end].place;
	const struct step *last = NULL;

	qsort(a->steps, a->nr_steps, sizeof(a->steps[0]), compare_steps);
	for (uint32_t i = 0; i < a->nr_steps; i++) {
		const struct step *step = &a->steps[i];
		uint32_t rule = ahead_rule(&step->place, &end);
		struct ahead_row *row = last ? &out->rows[out->count - 1] : NULL;

		if (!step->is_shown || !step->length || PYBPF_RULE_KIND(rule) == PYBPF_NATIVE_NONE)
			continue;
		if (row && last->goes_on && row->end == step->pc && row->rule == rule && step->pc != start) {
			row->end += step->length;
		} else {
			if (array_reserve(&out->rows, &out->room, out->count + 1, sizeof(*out->rows)))
				return -ENOMEM;
			/* The call before it is looked up by its last byte. */
			out->rows[out->count++] =
				(struct ahead_row){.start = step->pc - (step->pc == start && !is_exact),
						   .end = step->pc + step->length,
						   .rule = rule};
		}
		last = step;
	}
	return 0;
}

int ahead_add_rows(const struct ahead_code *code, uint64_t address, bool is_exact, struct ahead_rows *out)
{
	struct ahead *a = calloc(1, sizeof(*a));
	int err = 0;

	if (!a)
		return -ENOMEM;
	a->code = code;
	/* A signal interrupts anywhere: then the address of a caller is an instruction's, too. */
	is_exact = is_exact || !ends_a_call(a, address + 1);
	if (is_exact || !is_another_begin(a, address + 1)) {
		search(a, address + !is_exact);
		if (a->end != NO_STEP && !a->is_wrong) {
			choose_shown(a);
			err = add_rows(a, address + !is_exact, is_exact, out);
		}
	}
	free(a);
	return err;
}

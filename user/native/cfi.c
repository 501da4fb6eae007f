// SPDX-License-Identifier: Apache-2.0
/* Only what x86-64's rules need is kept of a row: the CFA, the frame pointer, the return address. */
#include "native/cfi.h"

#include <errno.h>
#include <string.h>

#include "pybpf_native.h"

/* DWARF's numbers of registers (System V ABI for x86-64, figure 3.36). */
#define REGISTER_BP 6
#define REGISTER_SP 7

#define WORD 8

enum place {
	PLACE_SAME, /* the register has it still */
	PLACE_SAVED,
	PLACE_UNDEFINED,
	PLACE_DEREF,    /* *frame pointer */
	PLACE_REGISTER, /* another register */
	PLACE_OTHER,
};

struct saved {
	enum place place;
	int64_t offset; /* from the CFA; REGISTER: its number */
};

enum cfa_kind {
	CFA_REGISTER,
	CFA_PLT,
	CFA_DEREF,
	CFA_SP_DEREF,
	CFA_SP_INDEXED, /* of the register */
	CFA_OTHER,
};

struct state {
	enum cfa_kind cfa;
	uint64_t cfa_register;
	int64_t cfa_offset; /* CFA_PLT: from which byte of 16 on it is one word more; DEREF, SP_INDEXED: of the
			       frame or stack pointer */
	struct saved bp, return_address;
};

/* Compilers nest DW_CFA_remember_state once or twice. */
#define STATES_MAX 8

struct machine {
	const struct cfi_common *common;
	struct state now, initial, remembered[STATES_MAX];
	unsigned nr_remembered;
	uint64_t pc, address; /* address: where a program that began at `begin` lies */
	const uint8_t *begin;
	cfi_take_row *take;
	void *arg;
	uint32_t last_rule;
	bool has_last;
};

/* breg7 8, breg16 0, lit15, and, litN, ge, lit3, shl, plus: what linkers write for procedure linkage tables. */
static bool is_plt(struct dwarf_cursor expression, int64_t *from)
{
	static const uint8_t before[] = {0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a}, after[] = {0x2a, 0x33, 0x24, 0x22};
	const uint8_t *at = expression.at;

	if (expression.end - at != sizeof(before) + 1 + sizeof(after) || memcmp(at, before, sizeof(before)) != 0 ||
	    memcmp(at + sizeof(before) + 1, after, sizeof(after)) != 0)
		return false;
	*from = at[sizeof(before)] - 0x30; /* DW_OP_lit0 */
	return *from >= 0 && *from < 16;
}

/* breg6 N, deref: a function that has aligned its stack keeps the CFA there. */
static bool is_deref(struct dwarf_cursor expression, int64_t *offset)
{
	if (dwarf_read_unsigned(&expression, 1) != 0x70 + REGISTER_BP)
		return false;
	*offset = dwarf_read_sleb(&expression);
	return dwarf_read_unsigned(&expression, 1) == 0x06 && !expression.failed && expression.at == expression.end;
}

/* breg7 N, deref, plus_uconst 8: where OpenSSL's assembly has aligned its stack, the caller's stack pointer is kept
 * there. */
static bool is_sp_deref(struct dwarf_cursor expression, int64_t *offset)
{
	uint64_t deref, plus;

	if (dwarf_read_unsigned(&expression, 1) != 0x70 + REGISTER_SP)
		return false;
	*offset = dwarf_read_sleb(&expression);
	deref = dwarf_read_unsigned(&expression, 1);
	plus = dwarf_read_unsigned(&expression, 1);
	return deref == 0x06 && plus == 0x23 && dwarf_read_uleb(&expression) == WORD && !expression.failed &&
	       expression.at == expression.end;
}

/* breg7 N, bregR 0, lit8, mul, plus, deref, plus_uconst 8: likewise, behind as many words as the register says. */
static bool is_sp_indexed(struct dwarf_cursor expression, int64_t *offset, uint64_t *number)
{
	static const uint8_t after[] = {0x00, 0x38, 0x1e, 0x22, 0x06, 0x23, WORD};

	if (dwarf_read_unsigned(&expression, 1) != 0x70 + REGISTER_SP)
		return false;
	*offset = dwarf_read_sleb(&expression);
	*number = dwarf_read_unsigned(&expression, 1) - 0x70;
	return !expression.failed && *number < 16 && expression.end - expression.at == sizeof(after) &&
	       !memcmp(expression.at, after, sizeof(after));
}

/* breg6 0 */
static bool is_at_bp(struct dwarf_cursor expression)
{
	return dwarf_read_unsigned(&expression, 1) == 0x70 + REGISTER_BP && dwarf_read_sleb(&expression) == 0 &&
	       !expression.failed && expression.at == expression.end;
}

static void set_cfa_expression(struct machine *m, struct dwarf_cursor expression)
{
	struct state *s = &m->now;

	if (is_plt(expression, &s->cfa_offset))
		s->cfa = CFA_PLT;
	else if (is_deref(expression, &s->cfa_offset))
		s->cfa = CFA_DEREF;
	else if (is_sp_indexed(expression, &s->cfa_offset, &s->cfa_register))
		s->cfa = CFA_SP_INDEXED;
	else
		s->cfa = is_sp_deref(expression, &s->cfa_offset) ? CFA_SP_DEREF : CFA_OTHER;
}

/* Returns where a register's place is kept, or NULL for one of no interest. */
static struct saved *saved_of(struct machine *m, struct state *state, uint64_t number)
{
	if (number == REGISTER_BP)
		return &state->bp;
	return number == m->common->return_column ? &state->return_address : NULL;
}

static void save(struct machine *m, uint64_t number, enum place place, int64_t offset)
{
	struct saved *saved = saved_of(m, &m->now, number);

	if (saved)
		*saved = (struct saved){place, offset};
}

static void restore(struct machine *m, uint64_t number)
{
	struct saved *saved = saved_of(m, &m->now, number);

	if (saved)
		*saved = *saved_of(m, &m->initial, number);
}

static bool fits(int64_t offset)
{
	return offset % WORD == 0 && offset / WORD >= -PYBPF_RULE_OFFSET_MAX && offset / WORD <= PYBPF_RULE_OFFSET_MAX;
}

static uint32_t offset_bits(int64_t words, unsigned shift)
{
	return ((uint32_t)words & 0xfffu) << shift;
}

static uint32_t wide_rule(const struct state *s)
{
	int64_t below = s->bp.place == PLACE_SAVED ? -s->bp.offset : 0;

	if (s->cfa_register != REGISTER_SP || s->cfa_offset < 0 || s->cfa_offset % WORD ||
	    s->cfa_offset / WORD > PYBPF_WIDE_OFFSET_MAX || below % WORD || below < 0 ||
	    below / WORD > PYBPF_WIDE_BELOW_MAX || s->bp.place > PLACE_SAVED)
		return PYBPF_NATIVE_EXPRESSION;
	return PYBPF_NATIVE_SP_WIDE | (uint32_t)(s->cfa_offset / WORD) << PYBPF_RULE_OFFSET_SHIFT |
	       (uint32_t)(below / WORD) << PYBPF_WIDE_BP_SHIFT;
}

static bool bp_fits(const struct state *s)
{
	return s->bp.place != PLACE_SAVED || fits(s->bp.offset);
}

static uint32_t bp_bits(const struct state *s)
{
	if (s->bp.place == PLACE_SAVED)
		return PYBPF_NATIVE_BP_SAVED << PYBPF_RULE_BP_SHIFT |
		       offset_bits(s->bp.offset / WORD, PYBPF_RULE_BP_OFFSET_SHIFT);
	return s->bp.place == PLACE_SAME ? 0 : PYBPF_NATIVE_BP_LOST << PYBPF_RULE_BP_SHIFT;
}

/* By a register that is not kept from one function to its caller; kind: REGISTER, SP_INDEXED or RETURN. */
static uint32_t other_register_rule(const struct state *s, uint32_t kind, uint64_t number)
{
	/* By DWARF's numbers: rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15 (arch/x86/include/asm/ptrace.h). */
	static const uint8_t places[] = {10, 12, 11, 5, 13, 14, 4, 15, 9, 8, 7, 6, 3, 2, 1, 0};
	uint32_t place = PYBPF_RULE_NO_REGISTER;

	if (number < sizeof(places) && s->cfa_offset >= 0 && s->cfa_offset % WORD == 0 &&
	    s->cfa_offset / WORD <= PYBPF_RULE_REGISTER_OFFSET_MAX && bp_fits(s))
		place = places[number];
	if (place == PYBPF_RULE_NO_REGISTER)
		return kind | place << PYBPF_RULE_REGISTER_SHIFT;
	return kind | place << PYBPF_RULE_REGISTER_SHIFT |
	       (uint32_t)(s->cfa_offset / WORD) << PYBPF_RULE_REGISTER_OFFSET_SHIFT | bp_bits(s);
}

static uint32_t register_rule(const struct state *s)
{
	uint32_t rule = s->cfa_register == REGISTER_SP ? PYBPF_NATIVE_SP : PYBPF_NATIVE_BP;

	if (s->cfa_register != REGISTER_SP && s->cfa_register != REGISTER_BP)
		return other_register_rule(s, PYBPF_NATIVE_REGISTER, s->cfa_register);
	if (!fits(s->cfa_offset) || !bp_fits(s))
		return wide_rule(s);
	return rule | offset_bits(s->cfa_offset / WORD, PYBPF_RULE_OFFSET_SHIFT) | bp_bits(s);
}

uint32_t cfi_rule(bool by_bp, int64_t offset, int64_t saved_below)
{
	const struct state s = {
		.cfa = CFA_REGISTER,
		.cfa_register = by_bp ? REGISTER_BP : REGISTER_SP,
		.cfa_offset = offset,
		.bp = {saved_below ? PLACE_SAVED : PLACE_SAME, -saved_below},
	};

	return register_rule(&s);
}

static uint32_t rule_of(const struct machine *m)
{
	const struct state *s = &m->now;

	if (m->common->is_signal)
		return PYBPF_NATIVE_SIGNAL;
	if (s->return_address.place == PLACE_UNDEFINED)
		return PYBPF_NATIVE_END;
	if (s->return_address.place == PLACE_REGISTER && s->cfa == CFA_REGISTER && s->cfa_register == REGISTER_SP &&
	    s->bp.place == PLACE_SAME)
		return other_register_rule(s, PYBPF_NATIVE_RETURN, (uint64_t)s->return_address.offset);
	if (s->return_address.place != PLACE_SAVED || s->return_address.offset != -WORD)
		return PYBPF_NATIVE_EXPRESSION;
	switch (s->cfa) {
	case CFA_REGISTER:
		return register_rule(s);
	case CFA_PLT:
		if (s->bp.place != PLACE_SAME)
			return PYBPF_NATIVE_EXPRESSION;
		return PYBPF_NATIVE_PLT | offset_bits(s->cfa_offset, PYBPF_RULE_OFFSET_SHIFT);
	case CFA_DEREF:
		if (s->bp.place == PLACE_DEREF && fits(s->cfa_offset))
			return PYBPF_NATIVE_DEREF | offset_bits(s->cfa_offset / WORD, PYBPF_RULE_OFFSET_SHIFT);
		return PYBPF_NATIVE_EXPRESSION;
	case CFA_SP_DEREF:
		if (fits(s->cfa_offset) && bp_fits(s))
			return PYBPF_NATIVE_SP_DEREF | offset_bits(s->cfa_offset / WORD, PYBPF_RULE_OFFSET_SHIFT) |
			       bp_bits(s);
		return PYBPF_NATIVE_EXPRESSION;
	case CFA_SP_INDEXED:
		return other_register_rule(s, PYBPF_NATIVE_SP_INDEXED, s->cfa_register);
	default:
		return PYBPF_NATIVE_EXPRESSION;
	}
}

/* The row that has begun ends at `until`. */
static int end_row(struct machine *m, uint64_t until)
{
	uint32_t rule = rule_of(m);
	int err = 0;

	if (until > m->pc && !(m->has_last && rule == m->last_rule)) {
		err = m->take(m->arg, m->pc, rule);
		m->last_rule = rule;
		m->has_last = true;
	}
	m->pc = until;
	return err;
}

static int remember(struct machine *m)
{
	if (m->nr_remembered == STATES_MAX)
		return -EBADMSG;
	m->remembered[m->nr_remembered++] = m->now;
	return 0;
}

static int recall(struct machine *m)
{
	if (!m->nr_remembered)
		return -EBADMSG;
	m->now = m->remembered[--m->nr_remembered];
	return 0;
}

static void set_cfa(struct machine *m, uint64_t number, int64_t offset)
{
	m->now.cfa = CFA_REGISTER;
	m->now.cfa_register = number;
	m->now.cfa_offset = offset;
}

/* What one call of the function before has done is an operand of the next: arguments have no order. */
static void save_at(struct machine *m, struct dwarf_cursor *c, bool has_sign, int64_t factor)
{
	uint64_t number = dwarf_read_uleb(c);
	int64_t offset = has_sign ? dwarf_read_sleb(c) : (int64_t)dwarf_read_uleb(c);

	save(m, number, PLACE_SAVED, (int64_t)((uint64_t)offset * (uint64_t)factor));
}

static void save_by_expression(struct machine *m, struct dwarf_cursor *c)
{
	uint64_t number = dwarf_read_uleb(c);
	struct dwarf_cursor expression = dwarf_take(c, dwarf_read_uleb(c));

	save(m, number, number == REGISTER_BP && is_at_bp(expression) ? PLACE_DEREF : PLACE_OTHER, 0);
}

/* Those of the next function that say how the CFA is found. */
static int run_cfa(struct machine *m, struct dwarf_cursor *c, uint8_t opcode)
{
	uint64_t number;

	switch (opcode) {
	case 0x0c: /* def_cfa */
		number = dwarf_read_uleb(c);
		set_cfa(m, number, (int64_t)dwarf_read_uleb(c));
		return 0;
	case 0x0d: /* def_cfa_register */
		set_cfa(m, dwarf_read_uleb(c), m->now.cfa_offset);
		return 0;
	case 0x0e: /* def_cfa_offset */
		m->now.cfa_offset = (int64_t)dwarf_read_uleb(c);
		return 0;
	case 0x0f: /* def_cfa_expression */
		set_cfa_expression(m, dwarf_take(c, dwarf_read_uleb(c)));
		return 0;
	case 0x12: /* def_cfa_sf */
		number = dwarf_read_uleb(c);
		set_cfa(m, number, (int64_t)((uint64_t)dwarf_read_sleb(c) * (uint64_t)m->common->data_factor));
		return 0;
	case 0x13: /* def_cfa_offset_sf */
		m->now.cfa_offset = (int64_t)((uint64_t)dwarf_read_sleb(c) * (uint64_t)m->common->data_factor);
		return 0;
	default:
		return -EBADMSG;
	}
}

/* The instructions whose operands are all behind the first byte (DWARF 5, table 7.29). */
static int run_extended(struct machine *m, struct dwarf_cursor *c, uint8_t opcode)
{
	const struct cfi_common *common = m->common;
	uint64_t number, at;

	switch (opcode) {
	case 0x00: /* nop */
		return 0;
	case 0x01: /* set_loc */
		at = m->address + (uint64_t)(c->at - m->begin);
		return end_row(m, dwarf_read_pointer(c, common->pointer_encoding, at));
	case 0x02: /* advance_loc1 */
		return end_row(m, m->pc + dwarf_read_unsigned(c, 1) * common->code_factor);
	case 0x03: /* advance_loc2 */
		return end_row(m, m->pc + dwarf_read_unsigned(c, 2) * common->code_factor);
	case 0x04: /* advance_loc4 */
		return end_row(m, m->pc + dwarf_read_unsigned(c, 4) * common->code_factor);
	case 0x05: /* offset_extended */
		save_at(m, c, false, common->data_factor);
		return 0;
	case 0x06: /* restore_extended */
		restore(m, dwarf_read_uleb(c));
		return 0;
	case 0x07: /* undefined */
		save(m, dwarf_read_uleb(c), PLACE_UNDEFINED, 0);
		return 0;
	case 0x08: /* same_value */
		save(m, dwarf_read_uleb(c), PLACE_SAME, 0);
		return 0;
	case 0x09: /* register */
		number = dwarf_read_uleb(c);
		save(m, number, PLACE_REGISTER, (int64_t)dwarf_read_uleb(c));
		return 0;
	case 0x0a: /* remember_state */
		return remember(m);
	case 0x0b: /* restore_state */
		return recall(m);
	case 0x10: /* expression */
		save_by_expression(m, c);
		return 0;
	case 0x11: /* offset_extended_sf */
		save_at(m, c, true, common->data_factor);
		return 0;
	case 0x14: /* val_offset */
		save(m, dwarf_read_uleb(c), PLACE_OTHER, 0);
		dwarf_read_uleb(c);
		return 0;
	case 0x15: /* val_offset_sf */
		save(m, dwarf_read_uleb(c), PLACE_OTHER, 0);
		dwarf_read_sleb(c);
		return 0;
	case 0x16: /* val_expression */
		save(m, dwarf_read_uleb(c), PLACE_OTHER, 0);
		dwarf_skip(c, dwarf_read_uleb(c));
		return 0;
	case 0x2e: /* GNU_args_size: what is pushed for a call; the CFA has rows of its own */
		dwarf_read_uleb(c);
		return 0;
	case 0x2f: /* GNU_negative_offset_extended */
		save_at(m, c, false, -common->data_factor);
		return 0;
	default:
		return run_cfa(m, c, opcode);
	}
}

static int run(struct machine *m, struct dwarf_cursor c)
{
	int err = 0;

	while (!err && c.at < c.end) {
		uint8_t opcode = *c.at++, low = opcode & 0x3f;

		switch (opcode >> 6) {
		case 1: /* advance_loc */
			err = end_row(m, m->pc + low * m->common->code_factor);
			break;
		case 2: /* offset */
			save(m, low, PLACE_SAVED, (int64_t)(dwarf_read_uleb(&c) * (uint64_t)m->common->data_factor));
			break;
		case 3: /* restore */
			restore(m, low);
			break;
		default:
			err = run_extended(m, &c, opcode);
		}
	}
	return err ? err : c.failed ? -EBADMSG : 0;
}

int cfi_make_rows(const struct cfi_common *common, struct dwarf_cursor program, uint64_t address, uint64_t start,
		  uint64_t end, cfi_take_row *take, void *arg)
{
	struct machine m = {
		.common = common, .pc = start, .address = address, .begin = program.at, .take = take, .arg = arg};
	int err;

	m.now.cfa = CFA_OTHER;
	/* A DW_CFA_advance_loc in the CIE's own program is invalid: it belongs to no function. */
	err = run(&m, common->program);
	if (!err && m.pc != start)
		return -EBADMSG;
	m.initial = m.now;
	err = err ? err : run(&m, program);
	if (!err && m.pc < end)
		err = end_row(&m, end);
	return err;
}

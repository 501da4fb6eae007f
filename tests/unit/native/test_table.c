// SPDX-License-Identifier: Apache-2.0
/* Tables of real files, row by row against what libdw makes of the same call frame information; and of damaged ones. */
#include <elfutils/libdw.h>
#include <dwarf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "native/eh_frame.h"
#include "native/flow.h"
#include "native/table.h"

#define BP 6
#define SP 7

static bool is_offset(const Dwarf_Op *ops, size_t count, int64_t *offset)
{
	*offset = 0;
	if (!count || ops[0].atom != DW_OP_call_frame_cfa)
		return false;
	if (count == 2 && ops[1].atom == DW_OP_plus_uconst)
		*offset = (int64_t)ops[1].number;
	return count == 1 || (count == 2 && ops[1].atom == DW_OP_plus_uconst);
}

/* What libdw says of the frame pointer: 's'ame, 'o'ffset from the CFA, 'd'ereferenced, 'x' anything else. */
static char bp_of(Dwarf_Frame *frame, int64_t *offset)
{
	Dwarf_Op room[3], *ops = NULL;
	size_t count = 0;

	assert_int_equal(dwarf_frame_register(frame, BP, room, &ops, &count), 0);
	*offset = 0;
	if (!count)
		return ops ? 'x' : 's';
	if (is_offset(ops, count, offset))
		return 'o';
	return count == 1 && ops[0].atom == DW_OP_breg0 + BP && !ops[0].number ? 'd' : 'x';
}

/* 'o': the return address is where all calls leave it; 'u': undefined; 'x': elsewhere. */
static char return_of(Dwarf_Frame *frame, int column)
{
	Dwarf_Op room[3], *ops = NULL;
	size_t count = 0;
	int64_t offset;

	assert_int_equal(dwarf_frame_register(frame, column, room, &ops, &count), 0);
	if (!count)
		return ops ? 'u' : 'x';
	return is_offset(ops, count, &offset) && offset == -8 ? 'o' : 'x';
}

static void check_bp(uint32_t rule, Dwarf_Frame *frame)
{
	int64_t offset;
	char bp = bp_of(frame, &offset);

	if (PYBPF_RULE_KIND(rule) == PYBPF_NATIVE_SP_WIDE) {
		assert_true(PYBPF_WIDE_BELOW(rule) ? bp == 'o' && -offset == (int64_t)PYBPF_WIDE_BELOW(rule) * 8
						   : bp == 's');
		return;
	}
	switch (PYBPF_RULE_BP(rule)) {
	case PYBPF_NATIVE_BP_SAME:
		assert_int_equal(bp, 's');
		break;
	case PYBPF_NATIVE_BP_SAVED:
		assert_int_equal(bp, 'o');
		assert_int_equal(offset, PYBPF_RULE_BP_OFFSET(rule) * 8);
		break;
	default:
		assert_true(bp == 'x' || bp == 'd');
	}
}

/* Whether the CFA is this register and an offset; expressions of the file name it by one byte, libdw's own by a number.
 */
static bool is_register(const Dwarf_Op *ops, size_t count, unsigned number)
{
	return count == 1 && ops[0].atom == DW_OP_bregx && ops[0].number == number;
}

/* Where DWARF's registers are in struct pt_regs, which begins with r15 (System V ABI for x86-64, figure 3.36). */
static uint32_t place_of(uint64_t number)
{
	static const char *const dwarf[] = {"ax", "dx", "cx", "bx", "si", "di", "bp", "sp",
					    "8",  "9",  "10", "11", "12", "13", "14", "15"},
				 *const kernel[] = {"15", "14", "13", "12", "bp", "bx", "11", "10",
						    "9",  "8",  "ax", "cx", "dx", "si", "di"};

	for (uint32_t i = 0; number < 16 && i < 15; i++) {
		if (!strcmp(dwarf[number], kernel[i]))
			return i;
	}
	return PYBPF_RULE_NO_REGISTER;
}

static void check_register(uint32_t rule, const Dwarf_Op *ops, size_t count, Dwarf_Frame *frame)
{
	assert_true(count == 1 && ops[0].atom == DW_OP_bregx && ops[0].number != SP && ops[0].number != BP);
	if (PYBPF_RULE_REGISTER(rule) == PYBPF_RULE_NO_REGISTER) {
		assert_true(ops[0].number > 15 || ops[0].number2 > 255u * 8 || ops[0].number2 % 8);
		return;
	}
	assert_int_equal(PYBPF_RULE_REGISTER(rule), place_of(ops[0].number));
	assert_int_equal(ops[0].number2, PYBPF_RULE_REGISTER_OFFSET(rule) * 8);
	check_bp(rule, frame);
}

/* vfork()'s, whose stack is its child's, too. */
static void check_return(uint32_t rule, const Dwarf_Op *ops, size_t count, Dwarf_Frame *frame, int column)
{
	Dwarf_Op mem[3], *place;
	size_t places;

	assert_true(is_register(ops, count, SP));
	assert_int_equal(ops[0].number2, PYBPF_RULE_REGISTER_OFFSET(rule) * 8);
	assert_int_equal(dwarf_frame_register(frame, column, mem, &place, &places), 0);
	assert_true(places == 1 && place[0].atom == DW_OP_regx);
	assert_int_equal(PYBPF_RULE_REGISTER(rule), place_of(place[0].number));
	check_bp(rule, frame);
}

/* The rule says of the pc what libdw says. */
static void check_rule(Dwarf_CFI *cfi, uint64_t pc, uint32_t rule, unsigned kinds[16])
{
	Dwarf_Frame *frame = NULL;
	Dwarf_Op *ops = NULL;
	size_t count = 0;
	Dwarf_Addr start, end;
	int64_t offset;
	bool signal;
	int column;

	kinds[PYBPF_RULE_KIND(rule)]++;
	if (dwarf_cfi_addrframe(cfi, pc, &frame)) {
		assert_int_equal(PYBPF_RULE_KIND(rule), PYBPF_NATIVE_NONE);
		return;
	}
	column = dwarf_frame_info(frame, &start, &end, &signal);
	assert_int_equal(dwarf_frame_cfa(frame, &ops, &count), 0);
	assert_int_equal(PYBPF_RULE_KIND(rule) == PYBPF_NATIVE_SIGNAL, signal);
	if (!signal)
		assert_int_equal(PYBPF_RULE_KIND(rule) == PYBPF_NATIVE_END, return_of(frame, column) == 'u');
	switch (PYBPF_RULE_KIND(rule)) {
	case PYBPF_NATIVE_SP:
	case PYBPF_NATIVE_BP:
		assert_true(is_register(ops, count, PYBPF_RULE_KIND(rule) == PYBPF_NATIVE_SP ? SP : BP));
		assert_int_equal(ops[0].number2, PYBPF_RULE_OFFSET(rule) * 8);
		check_bp(rule, frame);
		break;
	case PYBPF_NATIVE_SP_WIDE:
		assert_true(is_register(ops, count, SP));
		assert_int_equal(ops[0].number2, PYBPF_WIDE_OFFSET(rule) * 8);
		check_bp(rule, frame);
		break;
	case PYBPF_NATIVE_DEREF:
		assert_int_equal(count, 2);
		assert_true(ops[0].atom == DW_OP_breg0 + BP && ops[1].atom == DW_OP_deref);
		assert_int_equal(ops[0].number, (uint64_t)(int64_t)PYBPF_RULE_OFFSET(rule) * 8);
		assert_int_equal(bp_of(frame, &offset), 'd');
		break;
	case PYBPF_NATIVE_PLT:
		assert_true(count > 4 && ops[0].atom == DW_OP_breg0 + SP);
		break;
	case PYBPF_NATIVE_REGISTER:
		check_register(rule, ops, count, frame);
		break;
	case PYBPF_NATIVE_SP_DEREF:
		assert_int_equal(count, 3);
		assert_true(ops[0].atom == DW_OP_breg0 + SP && ops[1].atom == DW_OP_deref);
		assert_int_equal(ops[0].number, (uint64_t)(int64_t)PYBPF_RULE_OFFSET(rule) * 8);
		assert_true(ops[2].atom == DW_OP_plus_uconst && ops[2].number == 8);
		check_bp(rule, frame);
		break;
	case PYBPF_NATIVE_SP_INDEXED:
		assert_int_equal(count, 7);
		assert_true(ops[0].atom == DW_OP_breg0 + SP && ops[0].number == PYBPF_RULE_REGISTER_OFFSET(rule) * 8);
		assert_int_equal(PYBPF_RULE_REGISTER(rule), place_of(ops[1].atom - DW_OP_breg0));
		assert_true(!ops[1].number && ops[2].atom == DW_OP_lit8 && ops[3].atom == DW_OP_mul);
		assert_true(ops[4].atom == DW_OP_plus && ops[5].atom == DW_OP_deref);
		assert_true(ops[6].atom == DW_OP_plus_uconst && ops[6].number == 8);
		check_bp(rule, frame);
		break;
	case PYBPF_NATIVE_RETURN:
		check_return(rule, ops, count, frame, column);
		break;
	case PYBPF_NATIVE_EXPRESSION:
		assert_true(count > 1 || return_of(frame, column) == 'x' || bp_of(frame, &offset) != 's');
		break;
	default:
		assert_true(signal || PYBPF_RULE_KIND(rule) == PYBPF_NATIVE_END);
	}
	free(frame);
}

/* What aligns the next function has none. */
static bool has_frame(Dwarf_CFI *cfi, uint64_t pc)
{
	Dwarf_Frame *frame = NULL;
	bool found = !dwarf_cfi_addrframe(cfi, pc, &frame);

	free(frame);
	return found;
}

/* A row does not go on behind its function, but for what aligns the next one. */
static void check_end(Dwarf_CFI *cfi, const struct native_table *table, size_t i)
{
	const struct pybpf_native_row *row = &table->rows[i];

	if (i + 1 < table->count && PYBPF_RULE_KIND(row->rule) != PYBPF_NATIVE_NONE &&
	    row[1].pc - row->pc >= FLOW_PADDING_MAX)
		assert_true(has_frame(cfi, table->base + row[1].pc - FLOW_PADDING_MAX));
}

/* Each row where it begins, and where it ends. Returns their number. */
static size_t check_file(const char *path, unsigned kinds[16])
{
	int fd = open(path, O_RDONLY);
	struct native_table table;
	struct elf_file *elf;
	Dwarf_CFI *cfi;
	size_t count;
	Elf *other;

	if (fd < 0)
		return 0;
	assert_int_equal(elf_file_open(fd, &elf), 0);
	assert_int_equal(native_table_make(elf, false, &table), 0);
	elf_version(EV_CURRENT);
	other = elf_begin(fd, ELF_C_READ, NULL);
	cfi = dwarf_getcfi_elf(other);
	assert_non_null(cfi);
	for (size_t i = 0; i < table.count; i++) {
		uint64_t pc = table.base + table.rows[i].pc;

		assert_true(!i || table.rows[i].pc > table.rows[i - 1].pc);
		check_rule(cfi, pc, table.rows[i].rule, kinds);
		if (i + 1 < table.count && PYBPF_RULE_KIND(table.rows[i].rule) != PYBPF_NATIVE_NONE &&
		    has_frame(cfi, table.base + table.rows[i + 1].pc - 1))
			check_rule(cfi, table.base + table.rows[i + 1].pc - 1, table.rows[i].rule, kinds);
		if (!table.has_flow)
			check_end(cfi, &table, i);
	}
	count = table.count;
	dwarf_cfi_end(cfi);
	elf_end(other);
	native_table_free(&table);
	elf_file_free(elf);
	close(fd);
	return count;
}

static void test_rows_are_those_of_libdw(void **state)
{
	static const char *const paths[] = {
		"/lib/x86_64-linux-gnu/libc.so.6",
		"/usr/lib/x86_64-linux-gnu/libz.so.1",
		"/usr/bin/python3",
		"/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
	};
	unsigned kinds[16] = {0};
	size_t rows = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		rows += check_file(paths[i], kinds);
	/* On a machine that has none of these, nothing would have been compared. */
	if (rows < 1000)
		skip();
	assert_true(kinds[PYBPF_NATIVE_SP] > 1000 && kinds[PYBPF_NATIVE_BP] && kinds[PYBPF_NATIVE_END]);
	assert_true(kinds[PYBPF_NATIVE_SIGNAL] && kinds[PYBPF_NATIVE_PLT] && kinds[PYBPF_NATIVE_RETURN]);
	if (!access(paths[3], R_OK))
		assert_true(kinds[PYBPF_NATIVE_SP_DEREF] > 10 && kinds[PYBPF_NATIVE_REGISTER] > 100 &&
			    kinds[PYBPF_NATIVE_SP_INDEXED]);
}

/* A CIE and an FDE of 64 bytes at 0x1000, as gcc writes them; then a terminator. */
static const uint8_t section[] = {
	0x14, 0,    0, 0,    0,    0,    0,    0, 1,    'z',  'R', 0, 1, 0x78, 0x10, 1, 0x03, 0x0c, 7,
	8,    0x90, 1, 0,    0,    0x18, 0,    0, 0,    0x1c, 0,   0, 0, 0,    0x10, 0, 0,    0x40, 0,
	0,    0,    0, 0x41, 0x0e, 16,   0x86, 2, 0x43, 0x0d, 6,   0, 0, 0,    0,    0, 0,    0,
};

struct taken {
	uint64_t pc[8];
	uint32_t rule[8];
	size_t count;
};

static int take(void *arg, uint64_t pc, uint32_t rule)
{
	struct taken *t = arg;

	assert_true(t->count < 8);
	t->pc[t->count] = pc;
	t->rule[t->count++] = rule;
	return 0;
}

struct visit {
	struct eh_frame *section;
	struct taken taken;
	int err;
};

static int visit(void *arg, const struct eh_frame_function *function)
{
	struct visit *v = arg;

	v->err = eh_frame_rows(v->section, function, take, &v->taken);
	return 0;
}

static void check_prologue(const uint8_t *bytes)
{
	struct eh_frame of = {.bytes = bytes, .size = sizeof(section)};
	struct visit v = {.section = &of};

	assert_int_equal(eh_frame_functions(&of, visit, &v), 0);
	assert_int_equal(v.err, 0);
	assert_int_equal(v.taken.count, 3);
	assert_int_equal(v.taken.pc[0], 0x1000);
	assert_int_equal(v.taken.rule[0], PYBPF_NATIVE_SP | 1 << PYBPF_RULE_OFFSET_SHIFT);
	assert_int_equal(v.taken.pc[1], 0x1001);
	assert_int_equal(PYBPF_RULE_OFFSET(v.taken.rule[1]), 2);
	assert_int_equal(PYBPF_RULE_BP(v.taken.rule[1]), PYBPF_NATIVE_BP_SAVED);
	assert_int_equal(PYBPF_RULE_BP_OFFSET(v.taken.rule[1]), -2);
	assert_int_equal(v.taken.pc[2], 0x1004);
	assert_int_equal(PYBPF_RULE_KIND(v.taken.rule[2]), PYBPF_NATIVE_BP);
	assert_int_equal(PYBPF_RULE_OFFSET(v.taken.rule[2]), 2);
}

static void test_a_prologue(void **state)
{
	(void)state;
	check_prologue(section);
}

/* Where the frame pointer was saved is said in longer words, of registers with large numbers. */
static void test_other_words_for_a_prologue(void **state)
{
	static const uint8_t words[] = {0x05, 0x11}; /* offset_extended, offset_extended_sf */
	static const uint8_t offset[] = {0x86, 2, 0x43, 0x0d, 6, 0};
	uint8_t bytes[sizeof(section)], *at;

	(void)state;
	for (size_t i = 0; i < sizeof(words); i++) {
		memcpy(bytes, section, sizeof(section));
		at = memmem(bytes, sizeof(bytes), offset, sizeof(offset));
		assert_non_null(at);
		memcpy(at, (const uint8_t[]){words[i], 6, 2, 0x43, 0x0d, 6}, sizeof(offset));
		check_prologue(bytes);
	}
}

/* However a section is cut or its bytes are changed, nothing is read beyond it, and it ends. */
static void test_damage(void **state)
{
	(void)state;
	for (size_t size = 0; size < sizeof(section); size++) {
		uint8_t *cut = malloc(size + 1);
		struct eh_frame of = {.bytes = cut, .size = size};
		struct visit v = {.section = &of};

		memcpy(cut, section, size);
		eh_frame_functions(&of, visit, &v);
		free(cut);
	}
	for (size_t at = 0; at < sizeof(section); at++) {
		for (int bit = 0; bit < 8; bit++) {
			uint8_t *changed = malloc(sizeof(section));
			struct eh_frame of = {.bytes = changed, .size = sizeof(section)};
			struct visit v = {.section = &of};

			memcpy(changed, section, sizeof(section));
			changed[at] ^= (uint8_t)(1 << bit);
			eh_frame_functions(&of, visit, &v);
			free(changed);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_are_those_of_libdw),
		cmocka_unit_test(test_a_prologue),
		cmocka_unit_test(test_other_words_for_a_prologue),
		cmocka_unit_test(test_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

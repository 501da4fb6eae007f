// SPDX-License-Identifier: Apache-2.0
/* What is removed from a program is what its constants make unreachable; the rest does the same as before. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <linux/bpf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/dead_code.h"

#define CONSTANTS_FD 7

#define INSTRUCTION(c, d, s, o, i)                                                                                     \
	((struct bpf_insn){.code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i)})
#define MOV(d, i)   INSTRUCTION(BPF_ALU64 | BPF_MOV | BPF_K, d, 0, 0, i)
#define ADD(d, i)   INSTRUCTION(BPF_ALU64 | BPF_ADD | BPF_K, d, 0, 0, i)
#define AND32(d, i) INSTRUCTION(BPF_ALU | BPF_AND | BPF_K, d, 0, 0, i)
#define ADDRESS(d, fd, o)                                                                                              \
	INSTRUCTION(BPF_LD | BPF_IMM | BPF_DW, d, BPF_PSEUDO_MAP_VALUE, 0, fd), INSTRUCTION(0, 0, 0, 0, o)
#define FUNCTION(d, o)    INSTRUCTION(BPF_LD | BPF_IMM | BPF_DW, d, BPF_PSEUDO_FUNC, 0, o), INSTRUCTION(0, 0, 0, 0, 0)
#define LOAD(size, d, s)  INSTRUCTION(BPF_LDX | BPF_MEM | (size), d, s, 0, 0)
#define CONSTANT(d, o)    ADDRESS(d, CONSTANTS_FD, o), LOAD(BPF_B, d, d)
#define JUMP(o)           INSTRUCTION(BPF_JMP | BPF_JA, 0, 0, o, 0)
#define IF_EQUAL(d, i, o) INSTRUCTION(BPF_JMP32 | BPF_JEQ | BPF_K, d, 0, o, i)
#define IF_OTHER(d, i, o) INSTRUCTION(BPF_JMP | BPF_JNE | BPF_K, d, 0, o, i)
#define CALL(o)           INSTRUCTION(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, o)
#define HELPER(i)         INSTRUCTION(BPF_JMP | BPF_CALL, 0, 0, 0, i)
#define FETCH(d, s)       INSTRUCTION(BPF_STX | BPF_ATOMIC | BPF_DW, d, s, 0, BPF_ADD | BPF_FETCH)
#define EXIT              INSTRUCTION(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

/* The constants: false, true, and a number of 16 bits. */
static const uint8_t bytes[] = {0, 1, 0x34, 0x12};
static const struct kernel_constants constants = {CONSTANTS_FD, bytes, sizeof(bytes)};

/* Checks that of these instructions, those remain. */
static void check(const struct bpf_insn *before, size_t nr_before, const struct bpf_insn *after, size_t nr_after)
{
	struct bpf_insn *instructions = calloc(nr_before, sizeof(*instructions));
	struct kernel_code code = {.instructions = instructions, .nr_instructions = (uint32_t)nr_before};

	assert_non_null(instructions);
	memcpy(instructions, before, nr_before * sizeof(*before));
	assert_int_equal(kernel_remove_dead_code(&code, &constants), 0);
	assert_int_equal(code.nr_instructions, nr_after);
	assert_memory_equal(instructions, after, nr_after * sizeof(*after));
	free(instructions);
}

#define CHECK(before, after) check(before, sizeof(before) / sizeof(*(before)), after, sizeof(after) / sizeof(*(after)))

static void removes_what_a_constant_excludes(void **state)
{
	const struct bpf_insn before[] = {IF_EQUAL(6, 5, 10), CONSTANT(1, 0),    IF_EQUAL(1, 0, 1), HELPER(1),
					  CONSTANT(2, 1),     IF_OTHER(2, 0, 1), HELPER(2),         EXIT};
	const struct bpf_insn after[] = {IF_EQUAL(6, 5, 6), CONSTANT(1, 0), CONSTANT(2, 1), EXIT};

	(void)state;
	CHECK(before, after);
}

static void takes_a_constant_in_its_size(void **state)
{
	const struct bpf_insn before[] = {ADDRESS(1, CONSTANTS_FD, 2),
					  LOAD(BPF_H, 1, 1),
					  IF_EQUAL(1, 0x1234, 1),
					  HELPER(1),
					  AND32(1, 0x30),
					  IF_OTHER(1, 0x30, 1),
					  EXIT,
					  HELPER(2),
					  EXIT};
	const struct bpf_insn after[] = {ADDRESS(1, CONSTANTS_FD, 2), LOAD(BPF_H, 1, 1), AND32(1, 0x30), EXIT};

	(void)state;
	CHECK(before, after);
}

/* Compared as 64 bits, -1 is not the number of 32 bits that it is stored as. */
static void compares_as_the_program_does(void **state)
{
	const struct bpf_insn before[] = {INSTRUCTION(BPF_ALU | BPF_MOV | BPF_K, 1, 0, 0, -1),
					  IF_OTHER(1, -1, 1),
					  HELPER(1),
					  IF_EQUAL(1, -1, 1),
					  HELPER(2),
					  EXIT};
	const struct bpf_insn after[] = {INSTRUCTION(BPF_ALU | BPF_MOV | BPF_K, 1, 0, 0, -1), EXIT};

	(void)state;
	CHECK(before, after);
}

/* Other maps change, a call and an atomic instruction give registers another value, and so does another path. */
static void keeps_what_may_run(void **state)
{
	const struct bpf_insn programs[][8] = {
		{ADDRESS(1, CONSTANTS_FD + 1, 0), LOAD(BPF_B, 1, 1), IF_EQUAL(1, 0, 1), HELPER(1), EXIT},
		{ADDRESS(1, CONSTANTS_FD, 3), LOAD(BPF_H, 1, 1), IF_EQUAL(1, 0, 1), HELPER(1), EXIT},
		{CONSTANT(1, 0), HELPER(1), IF_EQUAL(1, 0, 1), HELPER(2), EXIT},
		{CONSTANT(1, 0), FETCH(10, 1), IF_EQUAL(1, 0, 1), HELPER(2), EXIT},
		{CONSTANT(1, 0), ADD(1, 1), IF_EQUAL(1, 0, 1), HELPER(2), EXIT},
		{MOV(1, 0), IF_EQUAL(6, 0, 1), MOV(1, 1), IF_EQUAL(1, 0, 1), HELPER(1), EXIT},
		{MOV(1, 0), ADD(6, 1), IF_EQUAL(1, 0, 1), MOV(1, 1), IF_EQUAL(6, 9, -3), EXIT},
	};
	const size_t sizes[] = {6, 6, 7, 7, 7, 6, 6};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		check(programs[i], sizes[i], programs[i], sizes[i]);
}

static void goes_on_with_what_a_removal_shows(void **state)
{
	/* The path with another value is itself dead. */
	const struct bpf_insn before[] = {CONSTANT(2, 0),    MOV(1, 0), IF_EQUAL(2, 0, 1), MOV(1, 1),
					  IF_EQUAL(1, 0, 1), HELPER(1), JUMP(0),           EXIT};
	const struct bpf_insn after[] = {CONSTANT(2, 0), MOV(1, 0), EXIT};

	(void)state;
	CHECK(before, after);
}

static void removes_functions_that_nothing_calls(void **state)
{
	struct bpf_insn instructions[] = {
		CONSTANT(1, 0), IF_EQUAL(1, 0, 1),
		CALL(4),        CALL(5),
		FUNCTION(2, 4), EXIT, /* 0 to 8 */
		HELPER(1),      EXIT, /* 9: only called above */
		CONSTANT(1, 1), IF_EQUAL(1, 1, 2),
		HELPER(2),      EXIT,
		EXIT, /* 11, called */
	};
	const struct bpf_insn after[] = {
		CONSTANT(1, 0), CALL(3), FUNCTION(2, 2), EXIT, /* 0 to 6 */
		CONSTANT(1, 1), EXIT,                          /* 7 */
	};
	struct bpf_func_info functions[] = {{0, 100}, {9, 101}, {11, 102}};
	struct bpf_line_info lines[] = {{.insn_off = 0, .line_off = 1},  {.insn_off = 4, .line_off = 2},
					{.insn_off = 5, .line_off = 3},  {.insn_off = 9, .line_off = 4},
					{.insn_off = 11, .line_off = 5}, {.insn_off = 17, .line_off = 6}};
	struct kernel_code code = {instructions, sizeof(instructions) / sizeof(*instructions), functions, 3, lines, 6};

	(void)state;
	assert_int_equal(kernel_remove_dead_code(&code, &constants), 0);
	assert_int_equal(code.nr_instructions, sizeof(after) / sizeof(*after));
	assert_memory_equal(instructions, after, sizeof(after));
	assert_int_equal(code.nr_functions, 2);
	assert_int_equal(functions[1].insn_off, 7);
	assert_int_equal(functions[1].type_id, 102);
	assert_int_equal(code.nr_lines, 4);
	assert_int_equal(lines[1].insn_off, 3);
	assert_int_equal(lines[1].line_off, 3);
	assert_int_equal(lines[2].insn_off, 7);
	assert_int_equal(lines[3].insn_off, 10);
	assert_int_equal(lines[3].line_off, 6);
}

static void leaves_an_unknown_program_alone(void **state)
{
	const struct bpf_insn later[] = {CONSTANT(1, 0), IF_EQUAL(1, 0, 1), HELPER(1),
					 INSTRUCTION(BPF_JMP | 0xe0, 0, 0, 0, 0), EXIT};
	const struct bpf_insn beyond[] = {CONSTANT(1, 0), IF_EQUAL(1, 0, 1), HELPER(1), IF_EQUAL(6, 0, 9), EXIT};

	(void)state;
	CHECK(later, later);
	CHECK(beyond, beyond);
}

#define RANDOM_INSTRUCTIONS 40

/* A program of known instructions, whose jumps lead forward, so that it ends. */
static uint32_t make_program(struct bpf_insn *out)
{
	uint32_t n = 0;

	while (n < RANDOM_INSTRUCTIONS) {
		uint8_t d = (uint8_t)(rand() % 3), left = (uint8_t)(RANDOM_INSTRUCTIONS - n);
		struct bpf_insn constant[] = {CONSTANT(d, rand() % 2)};

		switch (rand() % 6) {
		case 0:
			memcpy(out + n, constant, sizeof(constant));
			n += 3;
			break;
		case 1:
			out[n++] = MOV(d, rand() % 2);
			break;
		case 2:
			out[n++] = ADD(d, 1);
			break;
		case 3:
			out[n++] = rand() % 2 ? IF_EQUAL(d, rand() % 3, rand() % left)
					      : IF_OTHER(d, rand() % 3, rand() % left);
			break;
		case 4:
			out[n++] = JUMP(rand() % 4 ? 0 : rand() % left);
			break;
		default:
			out[n++] = AND32(d, 1);
		}
	}
	while (n < RANDOM_INSTRUCTIONS + 4)
		out[n++] = EXIT;
	return n;
}

/* No compiler makes a jump between the parts of what CONSTANT stands for: these lead to the next instruction. */
static void mend_jumps(struct bpf_insn *program, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint8_t class = BPF_CLASS(program[i].code), target;

		if (class != BPF_JMP && class != BPF_JMP32)
			continue;
		target = program[i + 1 + (uint32_t)program[i].off].code;
		if (!target || BPF_CLASS(target) == BPF_LDX)
			program[i].off = 0;
	}
}

/* Runs the program. Returns a number made of its registers at the end, and of how many additions it did. */
static uint64_t run(const struct bpf_insn *program, uint64_t first)
{
	uint64_t registers[3] = {first, first + 1, 0}, additions = 0;

	for (const struct bpf_insn *i = program; i->code != (BPF_JMP | BPF_EXIT); i++) {
		uint64_t *d = &registers[i->dst_reg];

		if (i->code == (BPF_LD | BPF_IMM | BPF_DW))
			*d = (uint32_t)(++i)->imm;
		else if (BPF_CLASS(i->code) == BPF_LDX)
			*d = bytes[*d];
		else if (BPF_OP(i->code) == BPF_MOV && BPF_CLASS(i->code) == BPF_ALU64)
			*d = (uint64_t)i->imm;
		else if (BPF_CLASS(i->code) == BPF_ALU64)
			*d += (uint64_t)i->imm, additions++;
		else if (i->code == (BPF_ALU | BPF_AND | BPF_K))
			*d &= (uint32_t)i->imm;
		else if (i->code == (BPF_JMP | BPF_JA) || (*d == (uint64_t)i->imm) == (BPF_OP(i->code) == BPF_JEQ))
			i += i->off;
	}
	return registers[0] + 100 * registers[1] + 10000 * registers[2] + 1000000 * additions;
}

static void what_remains_does_the_same(void **state)
{
	struct bpf_insn before[RANDOM_INSTRUCTIONS + 8], after[RANDOM_INSTRUCTIONS + 8];
	uint32_t removed = 0;

	(void)state;
	srand(1);
	for (int i = 0; i < 20000; i++) {
		uint32_t count = make_program(before);
		struct kernel_code code = {.instructions = after, .nr_instructions = count};

		mend_jumps(before, count);
		memcpy(after, before, sizeof(after));
		assert_int_equal(kernel_remove_dead_code(&code, &constants), 0);
		for (uint64_t first = 0; first < 3; first++)
			assert_int_equal(run(after, first), run(before, first));
		removed += count - code.nr_instructions;
	}
	assert_true(removed > 20000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(removes_what_a_constant_excludes),
		cmocka_unit_test(takes_a_constant_in_its_size),
		cmocka_unit_test(compares_as_the_program_does),
		cmocka_unit_test(keeps_what_may_run),
		cmocka_unit_test(goes_on_with_what_a_removal_shows),
		cmocka_unit_test(removes_functions_that_nothing_calls),
		cmocka_unit_test(leaves_an_unknown_program_alone),
		cmocka_unit_test(what_remains_does_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

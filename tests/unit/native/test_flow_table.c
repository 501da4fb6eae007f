// SPDX-License-Identifier: Apache-2.0
/* Tables of jumps: what compilers make of switches is followed, and nothing that an entry too many leads to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "native/flow_image.h"

/* Offsets in the code: what is told, and the jump; the cases; what an entry too many leads to; the table. */
enum {
	DEFAULT_AT = 64,
	FIRST_AT = 80,
	SECOND_AT = 96,
	THIRD_AT = 112,
	BEYOND_AT = 128,
	TABLE_AT = 144,
	SIZE = 192,
};

/* How the number of entries is told, the last of which is that of %rdi == 2. */
struct bound {
	const char *name;
	uint8_t code[24];
	uint8_t size;
	uint8_t jump; /* offset of the distance to the default case in code, or 0 */
};

static const struct bound known[] = {
	{"cmp $2, %edi; ja", {0x83, 0xff, 0x02, 0x77, 0}, 5, 4},
	{"cmp $3, %edi; jae", {0x83, 0xff, 0x03, 0x73, 0}, 5, 4},
	{"cmp $2, %rdi; ja", {0x48, 0x83, 0xff, 0x02, 0x77, 0}, 6, 5},
	{"cmp $2, %edi; jbe to the jump; jmp", {0x83, 0xff, 0x02, 0x76, 0x02, 0xeb, 0}, 7, 6},
	{"cmp $3, %edi; jb to the jump; jmp", {0x83, 0xff, 0x03, 0x72, 0x02, 0xeb, 0}, 7, 6},
	{"cmp $2, %edi; je; ja", {0x83, 0xff, 0x02, 0x74, DEFAULT_AT - 9, 0x77, 0}, 7, 6},
	{"mov %esi, %edi; cmp $2, %esi; ja", {0x89, 0xf7, 0x83, 0xfe, 0x02, 0x77, 0}, 7, 6},
	{"mov %edi, %esi; cmp $2, %esi; ja", {0x89, 0xfe, 0x83, 0xfe, 0x02, 0x77, 0}, 7, 6},
	{"cmp $2, %esi; ja; mov %esi, %edi", {0x83, 0xfe, 0x02, 0x77, 0, 0x89, 0xf7}, 7, 4},
	{"movzbl %sil, %edi; cmp $2, %sil; ja", {0x40, 0x0f, 0xb6, 0xfe, 0x40, 0x80, 0xfe, 0x02, 0x77, 0}, 10, 9},
	{"cmp $2, %al; ja; movzbl %al, %edi", {0x3c, 0x02, 0x77, 0, 0x0f, 0xb6, 0xf8}, 7, 3},
	{"cmpl $2, 8(%rsi); ja; mov 8(%rsi), %edi", {0x83, 0x7e, 0x08, 0x02, 0x77, 0, 0x8b, 0x7e, 0x08}, 9, 5},
	{"cmp $2, %edi; mov %ecx, %r8d; ja", {0x83, 0xff, 0x02, 0x41, 0x89, 0xc8, 0x77, 0}, 8, 7},
	{"cmp $2, %ebx; ja; call *%rax; mov %ebx, %edi", {0x83, 0xfb, 0x02, 0x77, 0, 0xff, 0xd0, 0x89, 0xdf}, 9, 4},
};

static const struct bound unknown[] = {
	{"nothing", {0x90}, 1, 0},
	{"cmp $2, %edi; je", {0x83, 0xff, 0x02, 0x74, 0}, 5, 4},
	{"cmp $2, %edi; jg", {0x83, 0xff, 0x02, 0x7f, 0}, 5, 4},
	{"cmp $2, %esi; ja", {0x83, 0xfe, 0x02, 0x77, 0}, 5, 4},
	{"cmp $2, %edi; ja; add $1, %edi", {0x83, 0xff, 0x02, 0x77, 0, 0x83, 0xc7, 0x01}, 8, 4},
	{"cmp $2, %edi; test %esi, %esi; ja", {0x83, 0xff, 0x02, 0x85, 0xf6, 0x77, 0}, 7, 6},
	{"cmp $2, %esi; ja; inc %esi; mov %esi, %edi", {0x83, 0xfe, 0x02, 0x77, 0, 0xff, 0xc6, 0x89, 0xf7}, 9, 4},
	{"cmp $2, %edi; ja; call *%rax", {0x83, 0xff, 0x02, 0x77, 0, 0xff, 0xd0}, 7, 4},
	{"cmpl $2, 8(%rsi); ja; mov 12(%rsi), %edi", {0x83, 0x7e, 0x08, 0x02, 0x77, 0, 0x8b, 0x7e, 0x0c}, 9, 5},
	{"and $5, %edi", {0x83, 0xe7, 0x05}, 3, 0},
};

static const uint64_t cases[] = {FIRST_AT, SECOND_AT, THIRD_AT, BEYOND_AT};

static void put(uint8_t *code, size_t at, const void *bytes, size_t size)
{
	assert_true(at + size <= SIZE);
	memcpy(code + at, bytes, size);
}

/* Makes a function with a frame of 4 words. Returns where its jump begins. */
static size_t make_switch(uint8_t *code, const struct bound *bound)
{
	static const uint8_t begin[] = {0x48, 0x83, 0xec, 0x18};     /* sub $24, %rsp */
	static const uint8_t end[] = {0x48, 0x83, 0xc4, 0x18, 0xc3}; /* add $24, %rsp; ret */
	size_t at = sizeof(begin);

	memset(code, 0xcc, SIZE);
	put(code, 0, begin, sizeof(begin));
	put(code, at, bound->code, bound->size);
	if (bound->jump)
		code[at + bound->jump] = (uint8_t)(DEFAULT_AT - (at + bound->jump + 1));
	put(code, DEFAULT_AT, end, sizeof(end));
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const uint8_t one[] = {0x53, 0x5b, 0xeb, (uint8_t)(DEFAULT_AT - (cases[i] + 4))}; /* push, pop, jmp */

		put(code, cases[i], one, sizeof(one));
	}
	return at + bound->size;
}

/* Position-independent: distances from the table. */
static void make_relative(uint8_t *code, const struct bound *bound)
{
	size_t at = make_switch(code, bound);
	uint8_t jump[] = {0x48, 0x8d, 0x15, 0,    0, 0, 0, /* lea table(%rip), %rdx */
			  0x48, 0x63, 0x04, 0xba,          /* movslq (%rdx,%rdi,4), %rax */
			  0x48, 0x01, 0xd0,                /* add %rdx, %rax */
			  0xff, 0xe0};                     /* jmp *%rax */
	int32_t distance = (int32_t)(TABLE_AT - (at + 7));

	memcpy(jump + 3, &distance, sizeof(distance));
	put(code, at, jump, sizeof(jump));
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		distance = (int32_t)(cases[i] - TABLE_AT);
		put(code, TABLE_AT + 4 * i, &distance, sizeof(distance));
	}
}

/* In a program at fixed addresses: addresses. */
static void make_absolute(uint8_t *code, const struct bound *bound)
{
	size_t at = make_switch(code, bound);
	uint8_t jump[] = {0xff, 0x24, 0xfd, 0, 0, 0, 0}; /* jmp *table(,%rdi,8) */
	int32_t table = CODE_AT + TABLE_AT;

	memcpy(jump + 3, &table, sizeof(table));
	put(code, at, jump, sizeof(jump));
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint64_t address = CODE_AT + cases[i];

		put(code, TABLE_AT + 8 * i, &address, sizeof(address));
	}
}

/* Checks the rows of the first cases, and that the others have none. */
static void check_cases(const uint8_t *code, const char *name, size_t count)
{
	struct flow_rows rows;

	print_message("%s\n", name);
	make_rows(code, SIZE, &rows);
	check_sp(&rows, 4, 4, 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (i < count) {
			check_sp(&rows, cases[i], 4, 0);
			check_sp(&rows, cases[i] + 1, 5, 0);
			check_sp(&rows, cases[i] + 2, 4, 0);
		} else {
			assert_int_equal(rule_at(&rows, cases[i]), PYBPF_NATIVE_NONE);
			assert_int_equal(rule_at(&rows, cases[i] + 1), PYBPF_NATIVE_NONE);
		}
	}
	free(rows.rows);
}

static void test_cases_have_the_frame_of_the_jump(void **state)
{
	static uint8_t code[SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		make_relative(code, &known[i]);
		check_cases(code, known[i].name, 3);
		make_absolute(code, &known[i]);
		check_cases(code, known[i].name, 3);
	}
}

static void test_a_mask(void **state)
{
	static const struct bound mask = {"and $3, %edi", {0x83, 0xe7, 0x03}, 3, 0};
	static uint8_t code[SIZE];

	(void)state;
	make_relative(code, &mask);
	/* The default case is reached by the cases. */
	check_cases(code, mask.name, 4);
}

static void test_nothing_is_guessed(void **state)
{
	static uint8_t code[SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(unknown) / sizeof(*unknown); i++) {
		make_relative(code, &unknown[i]);
		check_cases(code, unknown[i].name, 0);
	}
}

/* A table that leads out of the code, or is not in the file, is not followed. */
static void test_tables_that_are_none(void **state)
{
	static uint8_t code[SIZE];
	const int32_t far = 1 << 20;

	(void)state;
	make_relative(code, &known[0]);
	put(code, TABLE_AT + 8, &far, sizeof(far));
	check_cases(code, "an entry leads elsewhere", 0);
	make_absolute(code, &known[0]);
	put(code, 4 + known[0].size + 3, &far, sizeof(far));
	check_cases(code, "the table is not in the file", 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases_have_the_frame_of_the_jump),
		cmocka_unit_test(test_a_mask),
		cmocka_unit_test(test_nothing_is_guessed),
		cmocka_unit_test(test_tables_that_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

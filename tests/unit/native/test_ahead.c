// SPDX-License-Identifier: Apache-2.0
/*
 * Rows of single instructions: against the call frame information of real files, of which the search is told nothing;
 * of code whose frames are known; and of any bytes.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/elf_file.h"
#include "native/ahead.h"
#include "native/table.h"
#include "native/x86.h"
#include "pybpf_native.h"

#define MOST_CODE (1u << 20)

static size_t read_elf(void *arg, uint64_t address, uint8_t *out, size_t size)
{
	ssize_t n = elf_file_read(arg, address, out, size);

	return n < 0 ? 0 : (size_t)n;
}

static uint32_t rule_of(const struct native_table *t, uint64_t pc)
{
	size_t low = 0, high = t->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->base + t->rows[middle].pc <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? t->rows[low - 1].rule : PYBPF_NATIVE_NONE;
}

/* What a rule by one register says of it: 1: the same; -1: another caller; 0: one is by the other register. */
static int compare_rules(uint32_t ours, uint32_t theirs)
{
	uint32_t kind = PYBPF_RULE_KIND(ours);

	ours &= ~PYBPF_RULE_CHECKED;
	theirs &= ~PYBPF_RULE_EVAL;
	if (ours == theirs)
		return 1;
	if (kind != PYBPF_RULE_KIND(theirs) || (kind != PYBPF_NATIVE_SP && kind != PYBPF_NATIVE_BP))
		return PYBPF_RULE_KIND(theirs) == PYBPF_NATIVE_END ? -1 : 0;
	if (PYBPF_RULE_OFFSET(ours) != PYBPF_RULE_OFFSET(theirs))
		return -1;
	/* Where the caller's frame pointer lies in its register and in memory, either is right. */
	return !PYBPF_RULE_BP(ours) || !PYBPF_RULE_BP(theirs) ? 1 : -1;
}

struct tally {
	size_t asked, answered, same, different;
};

/* Compares the row that has the instruction itself. */
static void compare(const struct native_table *table, const struct ahead_rows *rows, uint64_t address, struct tally *t)
{
	t->asked++;
	t->answered += rows->count > 0;
	for (size_t i = 0; i < rows->count; i++) {
		const struct ahead_row *row = &rows->rows[i];
		int result;

		assert_true(row->start < row->end && row->rule & PYBPF_RULE_CHECKED);
		if (address < row->start || address >= row->end)
			continue;
		result = compare_rules(row->rule, rule_of(table, row->end - 1));
		t->same += result > 0;
		t->different += result < 0;
	}
}

/* Asks for one instruction of many, and for what follows calls: as samples meet them. */
static void check_code(struct elf_file *elf, const struct native_table *table, const struct elf_section *text,
		       const uint8_t *bytes, struct tally *t)
{
	const struct ahead_code code = {read_elf, elf};
	struct x86_instruction i;
	unsigned turn = 0;

	for (size_t at = 0; at < text->size && x86_decode(bytes + at, text->size - at, &i); at += i.length) {
		bool is_call = x86_is_call(&i);
		uint64_t address = text->addr + at + (is_call ? i.length - 1u : 0);
		struct ahead_rows rows = {.count = 0};

		if (++turn % (is_call ? 8 : 64) || PYBPF_RULE_KIND(rule_of(table, address)) == PYBPF_NATIVE_NONE)
			continue;
		assert_int_equal(ahead_add_rows(&code, address, !is_call, &rows), 0);
		compare(table, &rows, address, t);
		free(rows.rows);
	}
}

static void check_file(const char *path, struct tally *t)
{
	int fd = open(path, O_RDONLY);
	struct native_table table;
	struct elf_section text;
	struct elf_file *elf;
	uint8_t *bytes;

	if (fd < 0)
		return;
	assert_int_equal(elf_file_open(fd, &elf), 0);
	assert_int_equal(native_table_make(elf, false, &table), 0);
	assert_int_equal(elf_file_section(elf, ".text", &text), 0);
	if (text.size > MOST_CODE)
		text.size = MOST_CODE;
	bytes = malloc(text.size);
	assert_int_equal(elf_file_read(elf, text.addr, bytes, text.size), text.size);
	check_code(elf, &table, &text, bytes, t);
	free(bytes);
	native_table_free(&table);
	elf_file_free(elf);
	close(fd);
}

/* What is different follows calls that never return, such as those of Py_FatalError(). */
static void test_rows_are_those_of_the_compiler(void **state)
{
	static const char *const paths[] = {
		"/usr/lib/x86_64-linux-gnu/libz.so.1",
		"/usr/bin/python3",
		"/usr/lib/x86_64-linux-gnu/libm.so.6",
	};
	struct tally t = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		check_file(paths[i], &t);
	/* On a machine that has none of these, nothing would have been compared. */
	if (!t.asked)
		skip();
	assert_true(t.asked > 1000 && t.answered > t.asked / 100 * 95);
	assert_true(t.same > t.answered / 100 * 95 && t.different <= t.same / 200);
}

/* Some bytes of code, in the midst of traps. */
#define CODE_AT 0x1010

struct bytes {
	const uint8_t *code;
	size_t size;
};

static size_t read_bytes(void *arg, uint64_t address, uint8_t *out, size_t size)
{
	const struct bytes *bytes = arg;

	if (address / 4096 != CODE_AT / 4096)
		return 0;
	memset(out, 0xcc, size);
	for (size_t i = 0; i < size && address + i < CODE_AT + bytes->size; i++) {
		if (address + i >= CODE_AT)
			out[i] = bytes->code[address + i - CODE_AT];
	}
	return size;
}

static void make_rows(const uint8_t *code, size_t size, uint64_t offset, bool is_exact, struct ahead_rows *out)
{
	struct bytes bytes = {code, size};
	const struct ahead_code ahead = {read_bytes, &bytes};

	*out = (struct ahead_rows){.count = 0};
	assert_int_equal(ahead_add_rows(&ahead, CODE_AT + offset, is_exact, out), 0);
}

static uint32_t rule_at(const struct ahead_rows *rows, uint64_t offset)
{
	for (size_t i = 0; i < rows->count; i++) {
		if (CODE_AT + offset >= rows->rows[i].start && CODE_AT + offset < rows->rows[i].end)
			return rows->rows[i].rule;
	}
	return PYBPF_NATIVE_NONE;
}

static void check(const struct ahead_rows *rows, uint64_t offset, unsigned kind, int words, int saved)
{
	uint32_t rule = rule_at(rows, offset);

	assert_int_equal(PYBPF_RULE_KIND(rule), kind);
	assert_int_equal(PYBPF_RULE_OFFSET(rule), words);
	assert_int_equal(PYBPF_RULE_BP(rule), saved ? PYBPF_NATIVE_BP_SAVED : PYBPF_NATIVE_BP_SAME);
	assert_int_equal(PYBPF_RULE_BP_OFFSET(rule), -saved);
}

/* Rows of the instruction at an offset of some code. */
#define ROWS_OF(offset, is_exact, ...)                                                                                 \
	static const uint8_t code[] = {__VA_ARGS__};                                                                   \
	struct ahead_rows rows;                                                                                        \
	(void)state;                                                                                                   \
	make_rows(code, sizeof(code), offset, is_exact, &rows)

static void test_by_the_stack_pointer(void **state)
{
	ROWS_OF(0, true, 0x90,          /*  0 nop */
		0x74, 0x06,             /*  1 je 9 */
		0x48, 0x83, 0xc4, 0x10, /*  3 add $16, %rsp */
		0x5b,                   /*  7 pop %rbx */
		0xc3,                   /*  8 ret */
		0x31, 0xc0,             /*  9 xor %eax, %eax */
		0xeb, 0xf6);            /* 11 jmp 3 */
	check(&rows, 0, PYBPF_NATIVE_SP, 4, 0);
	check(&rows, 6, PYBPF_NATIVE_SP, 4, 0);
	check(&rows, 7, PYBPF_NATIVE_SP, 2, 0);
	check(&rows, 8, PYBPF_NATIVE_SP, 1, 0);
	check(&rows, 9, PYBPF_NATIVE_SP, 4, 0);
	free(rows.rows);
}

static void test_by_the_frame_pointer(void **state)
{
	ROWS_OF(0, true, 0x48, 0x29, 0xc4, /*  0 sub %rax, %rsp */
		0x48, 0x8d, 0x65, 0xf8,    /*  3 lea -8(%rbp), %rsp */
		0x5b,                      /*  7 pop %rbx */
		0x5d,                      /*  8 pop %rbp */
		0xc3);                     /*  9 ret */
	check(&rows, 0, PYBPF_NATIVE_BP, 2, 2);
	check(&rows, 3, PYBPF_NATIVE_BP, 2, 2);
	check(&rows, 8, PYBPF_NATIVE_SP, 2, 2);
	check(&rows, 9, PYBPF_NATIVE_SP, 1, 0);
	free(rows.rows);
}

static void test_a_function_from_its_begin(void **state)
{
	ROWS_OF(0, true, 0x55,    /* 0 push %rbp */
		0x48, 0x89, 0xe5, /* 1 mov %rsp, %rbp */
		0x53,             /* 4 push %rbx */
		0x31, 0xc0,       /* 5 xor %eax, %eax */
		0x5b,             /* 7 pop %rbx */
		0xc9,             /* 8 leave */
		0xc3);            /* 9 ret */
	check(&rows, 0, PYBPF_NATIVE_SP, 1, 0);
	check(&rows, 1, PYBPF_NATIVE_SP, 2, 0);
	check(&rows, 5, PYBPF_NATIVE_SP, 3, 2);
	check(&rows, 9, PYBPF_NATIVE_SP, 1, 0);
	free(rows.rows);
}

/* The other function saves the frame pointer where this one had; it is in its register by then. */
static void test_another_function_in_place_of_a_return(void **state)
{
	ROWS_OF(0, true, 0x31, 0xc0, /* 0 xor %eax, %eax */
		0x5d,                /* 2 pop %rbp */
		0xeb, 0x00,          /* 3 jmp 5 */
		0x53,                /* 5 push %rbx */
		0x55,                /* 6 push %rbp */
		0x31, 0xed,          /* 7 xor %ebp, %ebp */
		0x5d,                /* 9 pop %rbp */
		0x5b,                /* 10 pop %rbx */
		0xc3);               /* 11 ret */
	check(&rows, 0, PYBPF_NATIVE_SP, 2, 2);
	check(&rows, 3, PYBPF_NATIVE_SP, 1, 0);
	check(&rows, 7, PYBPF_NATIVE_SP, 3, 0);
	check(&rows, 9, PYBPF_NATIVE_SP, 3, 3);
	free(rows.rows);
}

static void test_behind_a_call(void **state)
{
	ROWS_OF(4, false, 0xe8, 0x10, 0x20, 0x30, 0x00, /*  0 call */
		0x31, 0xc0,                             /*  5 xor %eax, %eax */
		0x48, 0x83, 0xc4, 0x08,                 /*  7 add $8, %rsp */
		0xc3);                                  /* 11 ret */
	check(&rows, 4, PYBPF_NATIVE_SP, 2, 0);
	check(&rows, 5, PYBPF_NATIVE_SP, 2, 0);
	assert_int_equal(rule_at(&rows, 3), PYBPF_NATIVE_NONE);
	free(rows.rows);
}

/* numba calls functions that return a double so. */
static void test_avx_behind_a_call(void **state)
{
	ROWS_OF(1, false, 0xff, 0xd0,               /*  0 call *%rax */
		0xc5, 0xfb, 0x10, 0x44, 0x24, 0x08, /*  2 vmovsd 8(%rsp), %xmm0 */
		0x48, 0x83, 0xc4, 0x18,             /*  8 add $24, %rsp */
		0x5b,                               /* 12 pop %rbx */
		0xc3);                              /* 13 ret */
	check(&rows, 1, PYBPF_NATIVE_SP, 5, 0);
	free(rows.rows);
}

/* Another function begins behind the call, which has never returned. */
static void test_a_call_that_does_not_return(void **state)
{
	ROWS_OF(4, false, 0xe8, 0x10, 0x20, 0x30, 0x00, /*  0 call */
		0x53,                                   /*  5 push %rbx */
		0x5b,                                   /*  6 pop %rbx */
		0xc3);                                  /*  7 ret */
	assert_int_equal(rows.count, 0);
}

/* The way without a call is the function's for sure. */
static void test_the_return_behind_the_fewest_calls_decides(void **state)
{
	ROWS_OF(0, true, 0x74, 0x05,          /*  0 je 7 */
		0xe8, 0x10, 0x20, 0x30, 0x00, /*  2 call */
		0x5b,                         /*  7 pop %rbx */
		0xc3,                         /*  8 ret */
		0xc3);
	check(&rows, 0, PYBPF_NATIVE_SP, 2, 0);
	free(rows.rows);
}

static void test_returns_that_contradict_each_other(void **state)
{
	ROWS_OF(0, true, 0x74, 0x01, /* 0 je 3 */
		0x5b,                /* 2 pop %rbx */
		0xc3);               /* 3 ret */
	assert_int_equal(rows.count, 0);
}

static void test_returns_of_which_each_says_something_else(void **state)
{
	ROWS_OF(0, true, 0x74, 0x02, /* 0 je 4 */
		0x5b,                /* 2 pop %rbx */
		0xc3,                /* 3 ret */
		0xc3);               /* 4 ret */
	assert_int_equal(rows.count, 0);
}

/* What is loaded is another register's, which this code has stored itself. */
static void test_a_frame_pointer_from_what_was_written(void **state)
{
	ROWS_OF(0, true, 0x53, /* 0 push %rbx */
		0x5d,          /* 1 pop %rbp */
		0xc3);         /* 2 ret */
	assert_int_equal(rows.count, 0);
}

static void test_a_frame_pointer_that_is_lost(void **state)
{
	ROWS_OF(0, true, 0x31, 0xed, /* 0 xor %ebp, %ebp */
		0xc3);               /* 2 ret */
	assert_int_equal(rows.count, 0);
}

static void test_ends_without_a_return(void **state)
{
	ROWS_OF(0, true, 0x31, 0xc0, /* 0 xor %eax, %eax */
		0xff, 0xe0);         /* 2 jmp *%rax */
	assert_int_equal(rows.count, 0);
}

static void test_any_bytes(void **state)
{
	(void)state;
	srandom(1);
	for (int turn = 0; turn < 1000; turn++) {
		/* Bytes that are common in code make longer paths. */
		static const uint8_t often[] = {0x48, 0x83, 0xec, 0x55, 0x89, 0xe5, 0x74, 0xeb, 0xe8, 0x00,
						0xff, 0x5d, 0xc3, 0x0f, 0x84, 0x8d, 0x31, 0xed, 0x50, 0x58};
		struct ahead_rows rows;
		uint8_t code[256];

		for (size_t i = 0; i < sizeof(code); i++)
			code[i] = random() % 4 ? often[(size_t)random() % sizeof(often)] : (uint8_t)random();
		make_rows(code, sizeof(code), (uint64_t)random() % sizeof(code), random() % 2, &rows);
		for (size_t i = 0; i < rows.count; i++)
			assert_true(rows.rows[i].start < rows.rows[i].end && rows.rows[i].rule & PYBPF_RULE_CHECKED);
		free(rows.rows);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_are_those_of_the_compiler),
		cmocka_unit_test(test_by_the_stack_pointer),
		cmocka_unit_test(test_by_the_frame_pointer),
		cmocka_unit_test(test_a_function_from_its_begin),
		cmocka_unit_test(test_another_function_in_place_of_a_return),
		cmocka_unit_test(test_behind_a_call),
		cmocka_unit_test(test_avx_behind_a_call),
		cmocka_unit_test(test_a_call_that_does_not_return),
		cmocka_unit_test(test_the_return_behind_the_fewest_calls_decides),
		cmocka_unit_test(test_returns_that_contradict_each_other),
		cmocka_unit_test(test_returns_of_which_each_says_something_else),
		cmocka_unit_test(test_a_frame_pointer_from_what_was_written),
		cmocka_unit_test(test_a_frame_pointer_that_is_lost),
		cmocka_unit_test(test_ends_without_a_return),
		cmocka_unit_test(test_any_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

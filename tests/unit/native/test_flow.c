// SPDX-License-Identifier: Apache-2.0
/*
 * Rows that are made of instructions: against the call frame information of real files, of which the search is told
 * nothing; of code whose frames are known; and of any bytes.
 */
#include <elf.h>
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

#include "base/array.h"
#include "native/eh_frame.h"
#include "native/flow.h"
#include "native/x86.h"
#include "native/flow_image.h"
#include "pybpf_native.h"

/* What the compiler says. */
struct told {
	uint64_t start, end;
	uint32_t rule;
};

struct all_told {
	struct eh_frame section;
	struct told *rows;
	size_t count, room;
	uint64_t end; /* of the function */
};

static int take_told(void *arg, uint64_t pc, uint32_t rule)
{
	struct all_told *t = arg;

	assert_int_equal(array_reserve(&t->rows, &t->room, t->count + 1, sizeof(*t->rows)), 0);
	if (t->count && t->rows[t->count - 1].start < pc && t->rows[t->count - 1].end > pc)
		t->rows[t->count - 1].end = pc;
	t->rows[t->count++] = (struct told){pc, t->end, rule};
	return 0;
}

static int take_function(void *arg, const struct eh_frame_function *function)
{
	struct all_told *t = arg;

	t->end = function->end;
	eh_frame_rows(&t->section, function, take_told, t);
	return 0;
}

static int compare_told(const void *a, const void *b)
{
	const struct told *one = a, *other = b;

	return one->start < other->start ? -1 : one->start > other->start;
}

static const struct told *told_of(const struct all_told *t, uint64_t pc)
{
	size_t low = 0, high = t->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->rows[middle].start <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	return low && pc < t->rows[low - 1].end ? &t->rows[low - 1] : NULL;
}

/* 1: the same; -1: another caller; 0: one of them is by the other register, or says nothing. */
static int compare_rules(uint32_t ours, uint32_t theirs)
{
	uint32_t kind = PYBPF_RULE_KIND(ours);

	if (ours == theirs)
		return 1;
	if (kind != PYBPF_RULE_KIND(theirs) || (kind != PYBPF_NATIVE_SP && kind != PYBPF_NATIVE_BP))
		return kind == PYBPF_NATIVE_END || PYBPF_RULE_KIND(theirs) == PYBPF_NATIVE_END ? -1 : 0;
	if (PYBPF_RULE_OFFSET(ours) != PYBPF_RULE_OFFSET(theirs))
		return -1;
	/* After the frame pointer was restored, compilers say that it lies where it was saved, below the stack pointer.
	 */
	return kind == PYBPF_NATIVE_SP && !PYBPF_RULE_BP(ours) && PYBPF_RULE_BP(theirs) == PYBPF_NATIVE_BP_SAVED &&
			       -PYBPF_RULE_BP_OFFSET(theirs) > PYBPF_RULE_OFFSET(ours)
		       ? 1
		       : -1;
}

static void check_file(const char *path, size_t *same, size_t *different)
{
	int fd = open(path, O_RDONLY);
	struct all_told told = {.count = 0};
	struct elf_section section;
	struct flow_rows ours;
	struct elf_file *elf;
	uint8_t *bytes;

	if (fd < 0)
		return;
	assert_int_equal(elf_file_open(fd, &elf), 0);
	assert_int_equal(elf_file_section(elf, ".eh_frame", &section), 0);
	bytes = malloc(section.size);
	assert_int_equal(elf_file_read(elf, section.addr, bytes, section.size), section.size);
	told.section = (struct eh_frame){.bytes = bytes, .size = section.size, .address = section.addr};
	eh_frame_functions(&told.section, take_function, &told);
	qsort(told.rows, told.count, sizeof(*told.rows), compare_told);
	assert_int_equal(flow_make_rows(elf, NULL, 0, &ours), 0);
	for (size_t i = 0; i < ours.count; i++) {
		const struct flow_row *row = &ours.rows[i];
		const struct told *at_start = told_of(&told, row->start), *at_end = told_of(&told, row->end - 1);
		int result;

		assert_true(row->start < row->end && (!i || row->start >= ours.rows[i - 1].end));
		if (row->rule == PYBPF_NATIVE_NONE || !at_start || !at_end)
			continue;
		result = compare_rules(row->rule, at_start->rule);
		if (result > 0)
			result = compare_rules(row->rule, at_end->rule);
		*same += result > 0;
		*different += result < 0;
	}
	free(ours.rows);
	free(told.rows);
	free(bytes);
	elf_file_free(elf);
	close(fd);
}

/* Where compilers and people write the information; people's, such as that of libcrypto's assembly, errs in places. */
static void test_rows_are_those_of_the_compiler(void **state)
{
	static const char *const paths[] = {
		"/usr/lib/x86_64-linux-gnu/libz.so.1",
		"/usr/bin/python3",
		"/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
		"/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
	};
	size_t same = 0, different = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		check_file(paths[i], &same, &different);
	/* On a machine that has none of these, nothing would have been compared. */
	if (!same && !different)
		skip();
	assert_true(same > 1000);
	assert_true(different <= same / 10000);
}

static void test_pushes_and_calls(void **state)
{
	ROWS_OF(0x53,                         /*  0 push %rbx */
		0x48, 0x83, 0xec, 0x10,       /*  1 sub $16, %rsp */
		0xe8, 0x06, 0x00, 0x00, 0x00, /*  5 call 16 */
		0x48, 0x83, 0xc4, 0x10,       /* 10 add $16, %rsp */
		0x5b,                         /* 14 pop %rbx */
		0xc3,                         /* 15 ret */
		0x55,                         /* 16 push %rbp */
		0x31, 0xed,                   /* 17 xor %ebp, %ebp */
		0x5d,                         /* 19 pop %rbp */
		0xc3);                        /* 20 ret */
	check_sp(&rows, 0, 1, 0);
	check_sp(&rows, 1, 2, 0);
	check_sp(&rows, 5, 4, 0);
	check_sp(&rows, 9, 4, 0);
	check_sp(&rows, 10, 4, 0);
	check_sp(&rows, 14, 2, 0);
	check_sp(&rows, 15, 1, 0);
	check_sp(&rows, 16, 1, 0);
	check_sp(&rows, 19, 2, 2);
	check_sp(&rows, 20, 1, 0);
	free(rows.rows);
}

static void test_a_frame_pointer(void **state)
{
	ROWS_OF(0x55,                   /*  0 push %rbp */
		0x48, 0x89, 0xe5,       /*  1 mov %rsp, %rbp */
		0x53,                   /*  4 push %rbx */
		0x48, 0x29, 0xfc,       /*  5 sub %rdi, %rsp */
		0x48, 0x83, 0xe4, 0xe0, /*  8 and $-32, %rsp */
		0xff, 0xd6,             /* 12 call *%rsi */
		0x48, 0x8b, 0x5d, 0xf8, /* 14 mov -8(%rbp), %rbx */
		0xc9,                   /* 18 leave */
		0xc3);                  /* 19 ret */
	for (uint64_t offset = 4; offset < 19; offset++) {
		uint32_t rule = rule_at(&rows, offset);

		assert_int_equal(PYBPF_RULE_KIND(rule), PYBPF_NATIVE_BP);
		assert_int_equal(PYBPF_RULE_OFFSET(rule), 2);
		assert_int_equal(PYBPF_RULE_BP_OFFSET(rule), -2);
	}
	check_sp(&rows, 19, 1, 0);
	free(rows.rows);
}

/* MKL's: room of any size, and the stack pointer that was before it is kept there, while the frame pointer is any. */
static void test_a_stack_pointer_that_is_kept(void **state)
{
	enum {
		KEEPS = 14,
		KEPT = 19,
		OVERWRITTEN = 21,
		DEEPER = 29,
		BACK = 34,
	};
	uint8_t code[] = {0x48, 0x83, 0xec, 0x10,       /*  0 sub $16, %rsp */
			  0x48, 0x89, 0x2c, 0x24,       /*  4 mov %rbp, (%rsp) */
			  0x48, 0x89, 0xe5,             /*  8 mov %rsp, %rbp */
			  0x48, 0x29, 0xfc,             /* 11 sub %rdi, %rsp */
			  0x48, 0x89, 0x6c, 0x24, 0x78, /* 14 mov %rbp, 0x78(%rsp) */
			  0x31, 0xed,                   /* 19 xor %ebp, %ebp */
			  0x48, 0x89, 0x44, 0x24, 0x70, /* 21 mov %rax, 0x70(%rsp) */
			  0x01, 0xf5,                   /* 26 add %esi, %ebp */
			  0x50,                         /* 28 push %rax */
			  0x48, 0x83, 0xc4, 0x08,       /* 29 add $8, %rsp */
			  0x90,                         /* 33 nop */
			  0x48, 0x8b, 0x64, 0x24, 0x78, /* 34 mov 0x78(%rsp), %rsp */
			  0x48, 0x8b, 0x2c, 0x24,       /* 39 mov (%rsp), %rbp */
			  0x48, 0x83, 0xc4, 0x10,       /* 43 add $16, %rsp */
			  0xc3};                        /* 47 ret */
	struct flow_rows rows;
	uint32_t rule;

	(void)state;
	make_rows(code, sizeof(code), &rows);
	assert_int_equal(PYBPF_RULE_KIND(rule_at(&rows, KEEPS)), PYBPF_NATIVE_BP);
	for (uint64_t offset = OVERWRITTEN; offset <= BACK; offset++) {
		rule = rule_at(&rows, offset);
		assert_int_equal(PYBPF_RULE_KIND(rule), PYBPF_NATIVE_SP_KEPT);
		assert_true(rule & PYBPF_RULE_CHECKED);
		assert_int_equal(PYBPF_KEPT_PLACE(rule), offset >= DEEPER && offset < DEEPER + 4 ? 16 : 15);
		assert_int_equal(PYBPF_KEPT_OFFSET(rule), 3);
		assert_int_equal(PYBPF_KEPT_BELOW(rule), 3);
	}
	check_sp(&rows, 39, 3, 3);
	check_sp(&rows, 43, 3, 0);
	check_sp(&rows, 47, 1, 0);
	free(rows.rows);

	/* Another value is put there. */
	code[OVERWRITTEN + 4] = 0x78;
	make_rows(code, sizeof(code), &rows);
	assert_int_equal(PYBPF_RULE_KIND(rule_at(&rows, KEPT)), PYBPF_NATIVE_BP);
	for (uint64_t offset = OVERWRITTEN; offset < sizeof(code); offset++)
		assert_int_equal(rule_at(&rows, offset), PYBPF_NATIVE_NONE);
	free(rows.rows);

	/* It is not taken back from there. */
	code[OVERWRITTEN + 4] = 0x70;
	code[BACK + 4] = 0x60;
	make_rows(code, sizeof(code), &rows);
	for (uint64_t offset = OVERWRITTEN; offset < sizeof(code); offset++)
		assert_int_equal(rule_at(&rows, offset), PYBPF_NATIVE_NONE);
	free(rows.rows);
}

/* The stack pointer is lost; where it was known before, it is. */
static void test_another_stack(void **state)
{
	ROWS_OF(0x53,             /* 0 push %rbx */
		0x48, 0x8b, 0x27, /* 1 mov (%rdi), %rsp */
		0x5b,             /* 4 pop %rbx */
		0xc3);            /* 5 ret */
	check_sp(&rows, 1, 2, 0);
	assert_int_equal(rule_at(&rows, 4), PYBPF_NATIVE_NONE);
	assert_int_equal(rule_at(&rows, 5), PYBPF_NATIVE_NONE);
	free(rows.rows);
}

/* What follows is another function, which nothing calls, with a frame of its own. */
static void test_a_call_that_does_not_return(void **state)
{
	ROWS_OF(0x48, 0x83, 0xec, 0x18, /*  0 sub $24, %rsp */
		0xff, 0xd0,             /*  4 call *%rax */
		0x53,                   /*  6 push %rbx */
		0xff, 0xd0,             /*  7 call *%rax */
		0x5b,                   /*  9 pop %rbx */
		0xc3);                  /* 10 ret */
	check_sp(&rows, 4, 4, 0);
	for (uint64_t offset = 6; offset < 11; offset++)
		assert_int_equal(rule_at(&rows, offset), PYBPF_NATIVE_NONE);
	free(rows.rows);
}

/* What follows has a frame of its own, and another way leads behind it, too. */
static void test_a_call_before_another_frame(void **state)
{
	ROWS_OF(0x48, 0x83, 0xec, 0x18, /*  0 sub $24, %rsp */
		0x85, 0xff,             /*  4 test %edi, %edi */
		0x74, 0x05,             /*  6 je 13 */
		0xff, 0xd0,             /*  8 call *%rax */
		0x53,                   /* 10 push %rbx */
		0xff, 0xd0,             /* 11 call *%rax */
		0x48, 0x83, 0xc4, 0x18, /* 13 add $24, %rsp */
		0xc3);                  /* 17 ret */
	check_sp(&rows, 8, 4, 0);
	for (uint64_t offset = 10; offset < 13; offset++)
		assert_int_equal(rule_at(&rows, offset), PYBPF_NATIVE_NONE);
	check_sp(&rows, 13, 4, 0);
	free(rows.rows);
}

static void test_calls_before_what_another_way_leads_to(void **state)
{
	ROWS_OF(0x48, 0x83, 0xec, 0x18, /*  0 sub $24, %rsp */
		0x85, 0xff,             /*  4 test %edi, %edi */
		0x74, 0x05,             /*  6 je 13 */
		0xff, 0xd0,             /*  8 call *%rax */
		0x90,                   /* 10 nop */
		0xff, 0xd0,             /* 11 call *%rax */
		0x48, 0x83, 0xc4, 0x18, /* 13 add $24, %rsp */
		0xc3);                  /* 17 ret */
	for (uint64_t offset = 4; offset < 17; offset++)
		check_sp(&rows, offset, 4, 0);
	free(rows.rows);
}

/*
 * On one of two ways the frame pointer leads into the frame, on the other one it is a number: whichever is followed
 * first, what both lead to has the stack pointer's rule.
 */
static void test_a_frame_pointer_that_is_any_register(void **state)
{
	static const uint8_t lea[] = {0x48, 0x8d, 0x6c, 0x24, 0x08}; /* lea 8(%rsp), %rbp */
	uint8_t code[] = {0x55,                                      /*  0 push %rbp */
			  0x48, 0x83, 0xec, 0x10,                    /*  1 sub $16, %rsp */
			  0x85, 0xff,                                /*  5 test %edi, %edi */
			  0x74, 0x09,                                /*  7 je 18 */
			  0x31, 0xed, 0x90, 0x90, 0x90,              /*  9 xor %ebp, %ebp; nop */
			  0x90, 0x90,                                /* 14 nop */
			  0xeb, 0x05,                                /* 16 jmp 23 */
			  0x31, 0xed, 0x90, 0x90, 0x90,              /* 18 xor %ebp, %ebp; nop */
			  0x31, 0xc0,                                /* 23 xor %eax, %eax */
			  0xff, 0xd0,                                /* 25 call *%rax */
			  0x48, 0x83, 0xc4, 0x10,                    /* 27 add $16, %rsp */
			  0x5d,                                      /* 31 pop %rbp */
			  0xc3};                                     /* 32 ret */
	struct flow_rows rows;

	(void)state;
	for (size_t way = 9; way <= 18; way += 9) {
		uint8_t one[sizeof(code)];

		memcpy(one, code, sizeof(code));
		memcpy(one + way, lea, sizeof(lea));
		make_rows(one, sizeof(one), &rows);
		assert_int_equal(PYBPF_RULE_KIND(rule_at(&rows, way + 5)),
				 way == 9 ? PYBPF_NATIVE_BP : PYBPF_NATIVE_SP);
		for (uint64_t offset = 23; offset < 31; offset++)
			check_sp(&rows, offset, 4, 2);
		check_sp(&rows, 31, 2, 2);
		check_sp(&rows, 32, 1, 0);
		free(rows.rows);
	}
}

static void test_paths_that_contradict_each_other(void **state)
{
	ROWS_OF(0x85, 0xff, /* 0 test %edi, %edi */
		0x74, 0x01, /* 2 je 5 */
		0x53,       /* 4 push %rbx */
		0x90,       /* 5 nop */
		0xc3);      /* 6 ret */
	for (uint64_t offset = 0; offset < 7; offset++)
		assert_int_equal(rule_at(&rows, offset), PYBPF_NATIVE_NONE);
	free(rows.rows);
}

/* A function that returns with a word of its own on the stack is not followed. */
static void test_a_wrong_return(void **state)
{
	ROWS_OF(0x53,  /* 0 push %rbx */
		0xc3); /* 1 ret */
	assert_int_equal(rule_at(&rows, 0), PYBPF_NATIVE_NONE);
	assert_int_equal(rule_at(&rows, 1), PYBPF_NATIVE_NONE);
	free(rows.rows);
}

/* The outermost function sets the frame pointer to 0; one that returns is another function. */
static void test_the_begin_of_a_program(void **state)
{
	ROWS_OF(0x48, 0x31, 0xed, /* 0 xor %rbp, %rbp */
		0xc3);            /* 3 ret */
	assert_int_equal(rule_at(&rows, (uint64_t)-6), PYBPF_NATIVE_END);
	assert_int_equal(rule_at(&rows, (uint64_t)-2), PYBPF_NATIVE_END);
	assert_int_equal(rule_at(&rows, 0), PYBPF_NATIVE_NONE);
	assert_int_equal(rule_at(&rows, 3), PYBPF_NATIVE_NONE);
	free(rows.rows);
}

/* The address of a table of constants is taken as that of a function is. */
static void test_data(void **state)
{
	ROWS_OF(0x48, 0x8d, 0x05, 0x09, 0x00, 0x00, 0x00, /*  0 lea 16(%rip), %rax */
		0x48, 0x8d, 0x15, 0x06, 0x00, 0x00, 0x00, /*  7 lea 20(%rip), %rdx */
		0xc3, 0xcc,                               /* 14 ret */
		0x53, 0x5b, 0x5b, 0xc3,                   /* 16 push, pop, pop, ret: more than was pushed */
		0x53, 0x5b, 0xc3);                        /* 20 push, pop, ret: a function */
	assert_int_equal(rule_at(&rows, 16), PYBPF_NATIVE_NONE);
	assert_int_equal(rule_at(&rows, 17), PYBPF_NATIVE_NONE);
	check_sp(&rows, 20, 1, 0);
	check_sp(&rows, 21, 2, 0);
	free(rows.rows);
}

/* As objdump (binutils) sees them: each line has an address, and the next line's tells the length. */
static void test_lengths_are_those_of_binutils(void **state)
{
	static const char command[] =
		"objdump -d -w -z --no-show-raw-insn -j .text /lib/x86_64-linux-gnu/libc.so.6 2>/dev/null";
	FILE *lines = popen(command, "r");
	int fd = open("/lib/x86_64-linux-gnu/libc.so.6", O_RDONLY);
	uint64_t last = 0, known = 0;
	struct elf_file *elf = NULL;
	char line[512];

	(void)state;
	if (fd < 0 || !lines || elf_file_open(fd, &elf))
		skip();
	while (fgets(line, sizeof(line), lines)) {
		char *end;
		uint64_t address = strtoull(line, &end, 16);
		struct x86_instruction i;
		uint8_t code[15];
		ssize_t n;

		if (*line != ' ' || *end != ':')
			continue;
		n = last ? elf_file_read(elf, last, code, sizeof(code)) : 0;
		/* Two names of one place lead to the same lines again. */
		if (n > 0 && address > last && address - last <= sizeof(code)) {
			assert_true(x86_decode(code, (size_t)n, &i));
			/* fwait is an instruction of its own, which binutils join with the next one. */
			if (i.opcode != 0x9b || i.map != X86_ONE_BYTE)
				assert_int_equal(i.length, address - last);
			known++;
		}
		last = address;
	}
	elf_file_free(elf);
	close(fd);
	if (pclose(lines) || !known)
		skip();
	assert_true(known > 100000);
}

static void test_any_bytes(void **state)
{
	(void)state;
	srandom(1);
	for (int turn = 0; turn < 3000; turn++) {
		/* Bytes that are common in code make longer paths. */
		static const uint8_t often[] = {0x48, 0x83, 0xec, 0x55, 0x89, 0xe5, 0x74, 0xeb, 0xe8, 0x00,
						0xff, 0x5d, 0xc3, 0x0f, 0x84, 0x8d, 0x31, 0xed, 0x50, 0x58};
		uint8_t code[256];
		struct flow_rows rows;

		for (size_t i = 0; i < sizeof(code); i++)
			code[i] = random() % 4 ? often[(size_t)random() % sizeof(often)] : (uint8_t)random();
		make_rows(code, sizeof(code), &rows);
		for (size_t i = 0; i < rows.count; i++) {
			assert_true(rows.rows[i].start >= BEGIN_AT && rows.rows[i].end <= BEGIN_AT + 512);
			assert_true(rows.rows[i].start < rows.rows[i].end);
			assert_true(!i || rows.rows[i].start >= rows.rows[i - 1].end);
		}
		free(rows.rows);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_are_those_of_the_compiler),
		cmocka_unit_test(test_pushes_and_calls),
		cmocka_unit_test(test_a_frame_pointer),
		cmocka_unit_test(test_a_stack_pointer_that_is_kept),
		cmocka_unit_test(test_another_stack),
		cmocka_unit_test(test_a_call_that_does_not_return),
		cmocka_unit_test(test_a_call_before_another_frame),
		cmocka_unit_test(test_calls_before_what_another_way_leads_to),
		cmocka_unit_test(test_a_frame_pointer_that_is_any_register),
		cmocka_unit_test(test_paths_that_contradict_each_other),
		cmocka_unit_test(test_a_wrong_return),
		cmocka_unit_test(test_the_begin_of_a_program),
		cmocka_unit_test(test_data),
		cmocka_unit_test(test_lengths_are_those_of_binutils),
		cmocka_unit_test(test_any_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

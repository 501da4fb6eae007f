// SPDX-License-Identifier: Apache-2.0
/* From registers outwards by a list and a table, in memory of which every byte is known. */
#include "native/walker.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/remote.h"

#define CODE_AT  0x400000u
#define STACK_AT 0x7000u
#define FILE_OF  5

/* One mapping, whose functions have frames of one word. */
static struct pybpf_native_page list_page, table_page;
static uint8_t code[256];
static uint64_t stack_words[512]; /* a page: it is read at once */

static int read_page(void *arg, uint32_t number, struct pybpf_native_page *out)
{
	(void)arg;
	*out = number ? table_page : list_page;
	return number > 1 ? -ENOENT : 0;
}

static int read_memory(pid_t pid, uint64_t addr, void *buf, size_t size)
{
	(void)pid;
	if (addr - STACK_AT < sizeof(stack_words) && size <= sizeof(stack_words) - (addr - STACK_AT))
		memcpy(buf, (const uint8_t *)stack_words + (addr - STACK_AT), size);
	else if (addr - CODE_AT < sizeof(code) && size <= sizeof(code) - (addr - CODE_AT))
		memcpy(buf, code + (addr - CODE_AT), size);
	else
		return -EFAULT;
	return 0;
}

static void begin(uint32_t marks)
{
	const uint32_t rule = PYBPF_NATIVE_SP | 1u << PYBPF_RULE_OFFSET_SHIFT | marks;

	memset(&list_page, 0, sizeof(list_page));
	list_page.mappings[0].start = 1;
	list_page.mappings[1] = (struct pybpf_native_mapping){
		.start = CODE_AT, .bias = CODE_AT, .size = sizeof(code), .file = FILE_OF, .first = 1, .pages = 1};
	memset(&table_page, 0xff, sizeof(table_page));
	table_page.rows[0] = (struct pybpf_native_row){0, rule};
	table_page.rows[1] = (struct pybpf_native_row){0x80, PYBPF_NATIVE_END};
	memset(code, 0x90, sizeof(code));
}

/* The innermost function returns to an offset in the code. Returns how the search ends, and the number of frames. */
static enum pybpf_native_end follow(uint64_t returns_to, uint32_t *count)
{
	const struct pybpf_native_list list = {.generation = 1, .first = 0, .count = 1};
	struct native_walker *w = native_walker_new(read_page, NULL, PYBPF_NATIVE_ROWS);
	struct native_walked walked;

	remote_read_by(read_memory);
	stack_words[0] = returns_to;
	native_walker_follow(w, &(struct native_thread){1, CODE_AT + 0x10, STACK_AT, 0, NULL}, &list, &walked);
	remote_read_by(NULL);
	native_walker_free(w);
	*count = walked.count;
	return walked.end;
}

/* A call of each size before offset 0x90. */
static void test_a_checked_rule_leads_behind_a_call(void **state)
{
	static const struct {
		size_t size;
		uint8_t bytes[7];
	} calls[] = {
		{5, {0xe8, 1, 2, 3, 4}},
		{2, {0xff, 0xd0}},
		{2, {0xff, 0x10}},
		{3, {0xff, 0x50, 8}},
		{4, {0xff, 0x54, 0x24, 8}},
		{6, {0xff, 0x15, 1, 2, 3, 4}},
		{7, {0xff, 0x94, 0x24, 1, 2, 3, 4}},
	};
	uint32_t count;

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		begin(PYBPF_RULE_CHECKED);
		memcpy(code + 0x90 - calls[i].size, calls[i].bytes, calls[i].size);
		assert_int_equal(follow(CODE_AT + 0x90, &count), PYBPF_NATIVE_END_WHOLE);
		assert_int_equal(count, 2);
	}
}

static void test_a_checked_rule_that_leads_elsewhere(void **state)
{
	static const uint8_t jump[] = {0xff, 0x25, 1, 2, 3, 4};
	uint32_t count;

	(void)state;
	begin(PYBPF_RULE_CHECKED);
	memcpy(code + 0x90 - sizeof(jump), jump, sizeof(jump));
	assert_int_equal(follow(CODE_AT + 0x90, &count), PYBPF_NATIVE_END_NO_ROW);
	assert_int_equal(count, 1);
	/* Behind a call, but in no mapping. */
	code[0x9b] = 0xe8;
	list_page.mappings[1].size = 0x90;
	assert_int_equal(follow(CODE_AT + 0xa0, &count), PYBPF_NATIVE_END_NO_ROW);
	assert_int_equal(count, 1);
	/* Nor is nothing at all the start of a thread, or what is no address. */
	assert_int_equal(follow(0, &count), PYBPF_NATIVE_END_NO_ROW);
	assert_int_equal(follow(UINT64_MAX, &count), PYBPF_NATIVE_END_NO_ROW);
}

/* What lies before the start of a function, which nothing has called, may be no function's. */
static void test_a_return_to_where_a_row_begins(void **state)
{
	const struct pybpf_native_list list = {.generation = 1, .first = 0, .count = 1};
	static const struct {
		uint64_t to;
		uint32_t frame;
	} returns[] = {{0x80, 0x7f}, {0x7f, 0}, {0x81, 0x80}};

	(void)state;
	for (size_t i = 0; i < sizeof(returns) / sizeof(*returns); i++) {
		struct native_walker *w = native_walker_new(read_page, NULL, PYBPF_NATIVE_ROWS);
		struct native_walked walked;

		begin(0);
		remote_read_by(read_memory);
		stack_words[0] = CODE_AT + returns[i].to;
		stack_words[1] = 0;
		native_walker_follow(w, &(struct native_thread){1, CODE_AT + 0x10, STACK_AT, 0, NULL}, &list, &walked);
		remote_read_by(NULL);
		assert_int_equal(walked.count, 2);
		assert_int_equal(PYBPF_NATIVE_FRAME_PC(walked.frames[0]), 0);
		assert_int_equal(PYBPF_NATIVE_FRAME_PC(walked.frames[1]), returns[i].frame);
		native_walker_free(w);
	}
}

static void test_other_rules_are_not_checked(void **state)
{
	uint32_t count;

	(void)state;
	begin(0);
	assert_int_equal(follow(CODE_AT + 0x90, &count), PYBPF_NATIVE_END_WHOLE);
	assert_int_equal(count, 2);
	assert_int_equal(follow(0, &count), PYBPF_NATIVE_END_WHOLE);
}

/* A thread's next stack lies where the one before it lay. */
static void test_each_search_reads_the_stack(void **state)
{
	const struct pybpf_native_list list = {.generation = 1, .first = 0, .count = 1};
	const struct native_thread thread = {1, CODE_AT + 0x10, STACK_AT, 0, NULL};
	struct native_walker *w = native_walker_new(read_page, NULL, PYBPF_NATIVE_EXACT_ALL);
	struct native_walked walked;

	(void)state;
	begin(0);
	remote_read_by(read_memory);
	for (uint64_t offset = 0x90; offset < 0x94; offset++) {
		stack_words[0] = CODE_AT + offset;
		native_walker_follow(w, &thread, &list, &walked);
		assert_int_equal(walked.count, 2);
		assert_int_equal(walked.places[0].pc, CODE_AT + 0x10);
		assert_true(walked.places[0].is_exact);
		assert_int_equal(walked.places[1].pc, CODE_AT + offset);
		assert_false(walked.places[1].is_exact);
	}
	remote_read_by(NULL);
	native_walker_free(w);
}

/* Lists of other generations are those of other processes, or say more. What is remembered lies in few places. */
static void test_what_is_remembered_is_of_the_list(void **state)
{
	struct pybpf_native_list list = {.first = 0, .count = 1};
	const struct native_thread thread = {1, CODE_AT + 0x10, STACK_AT, 0, NULL};
	struct native_walker *w = native_walker_new(read_page, NULL, PYBPF_NATIVE_EXACT_ALL);
	struct native_walked walked;

	(void)state;
	begin(0);
	stack_words[0] = CODE_AT + 0x90;
	remote_read_by(read_memory);
	for (list.generation = 1; list.generation < 20000; list.generation++) {
		uint32_t file = 1 + list.generation % 2;

		list_page.mappings[1].file = file;
		native_walker_forget_pages(w);
		native_walker_follow(w, &thread, &list, &walked);
		assert_int_equal(PYBPF_NATIVE_FRAME_FILE(walked.frames[0]), file);
	}
	remote_read_by(NULL);
	native_walker_free(w);
}

/* Registers other than those that are followed are known of the innermost function, if its thread stands. */
static void test_all_registers(void **state)
{
	const struct pybpf_native_list list = {.generation = 1, .first = 0, .count = 1};
	uint64_t all[NATIVE_WALKER_REGISTERS] = {0};
	struct native_thread thread = {1, CODE_AT + 0x10, STACK_AT, 0, all};
	struct native_walker *w = native_walker_new(read_page, NULL, PYBPF_NATIVE_EXACT_ALL);
	struct native_walked walked;

	(void)state;
	begin(0);
	/* r10, by which gcc finds the frames of functions that align their stack: CFA = r10 + 0. */
	table_page.rows[0].rule = PYBPF_NATIVE_REGISTER | 7u << PYBPF_RULE_REGISTER_SHIFT;
	all[7] = STACK_AT + 24;
	stack_words[2] = CODE_AT + 0x90;
	remote_read_by(read_memory);
	native_walker_follow(w, &thread, &list, &walked);
	assert_int_equal(walked.end, PYBPF_NATIVE_END_WHOLE);
	assert_int_equal(walked.places[1].pc, CODE_AT + 0x90);
	thread.all = NULL;
	native_walker_follow(w, &thread, &list, &walked);
	assert_int_equal(walked.end, PYBPF_NATIVE_END_REGISTER);
	assert_int_equal(walked.count, 1);
	remote_read_by(NULL);
	native_walker_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_checked_rule_leads_behind_a_call),
		cmocka_unit_test(test_a_checked_rule_that_leads_elsewhere),
		cmocka_unit_test(test_a_return_to_where_a_row_begins),
		cmocka_unit_test(test_other_rules_are_not_checked),
		cmocka_unit_test(test_each_search_reads_the_stack),
		cmocka_unit_test(test_what_is_remembered_is_of_the_list),
		cmocka_unit_test(test_all_registers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

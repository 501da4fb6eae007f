// SPDX-License-Identifier: Apache-2.0
/* From a native frame to its caller, by each kind of rule, on a stack of which every word is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <linux/types.h>

#define BASE  0x7000
#define WORDS 64

static __u64 stack_words[WORDS];

#define NATIVE_MEMORY const __u64

static int native_word(const __u64 *from, uint64_t addr, __u64 *out)
{
	if (addr - BASE >= sizeof(stack_words) || addr % 8)
		return -1;
	*out = from[(addr - BASE) / 8];
	return 0;
}

#include "native_step.h"

#define AT(word) (BASE + 8 * (uint64_t)(word))

static uint32_t rule_of(unsigned kind, int words, unsigned bp, int bp_words)
{
	return kind | bp << PYBPF_RULE_BP_SHIFT | ((uint32_t)words & 0xfff) << PYBPF_RULE_OFFSET_SHIFT |
	       ((uint32_t)bp_words & 0xfff) << PYBPF_RULE_BP_OFFSET_SHIFT;
}

static struct native_registers begin(void)
{
	for (unsigned i = 0; i < WORDS; i++)
		stack_words[i] = 0x1000 + i;
	return (struct native_registers){.pc = 0x400, .sp = AT(10), .bp = AT(30)};
}

static void check(const struct native_registers *r, uint64_t pc, uint64_t sp, uint64_t bp)
{
	assert_int_equal(r->pc, pc);
	assert_int_equal(r->sp, sp);
	assert_int_equal(r->bp, bp);
}

static void test_by_the_stack_pointer(void **state)
{
	struct native_registers r = begin();

	(void)state;
	assert_int_equal(native_step(stack_words, &r, rule_of(PYBPF_NATIVE_SP, 4, PYBPF_NATIVE_BP_SAME, 0), 0), 0);
	check(&r, 0x1000 + 13, AT(14), AT(30));
	r = begin();
	assert_int_equal(native_step(stack_words, &r, rule_of(PYBPF_NATIVE_SP, 4, PYBPF_NATIVE_BP_SAVED, -2), 0), 0);
	check(&r, 0x1000 + 13, AT(14), 0x1000 + 12);
	r = begin();
	assert_int_equal(native_step(stack_words, &r, rule_of(PYBPF_NATIVE_SP, 7, PYBPF_NATIVE_BP_SAVED, -6), 0), 0);
	check(&r, 0x1000 + 16, AT(17), 0x1000 + 11);
}

static void test_by_the_frame_pointer(void **state)
{
	struct native_registers r = begin();

	(void)state;
	assert_int_equal(native_step(stack_words, &r, rule_of(PYBPF_NATIVE_BP, 2, PYBPF_NATIVE_BP_SAVED, -2), 0), 0);
	check(&r, 0x1000 + 31, AT(32), 0x1000 + 30);
}

static void test_a_large_frame(void **state)
{
	struct native_registers r = begin();
	const uint32_t rule = PYBPF_NATIVE_SP_WIDE | 40u << PYBPF_RULE_OFFSET_SHIFT | 6u << PYBPF_WIDE_BP_SHIFT;

	(void)state;
	assert_int_equal(native_step(stack_words, &r, rule, 0), 0);
	check(&r, 0x1000 + 49, AT(50), 0x1000 + 44);
}

static void test_a_linkage_table(void **state)
{
	const uint32_t rule = rule_of(PYBPF_NATIVE_PLT, 11, 0, 0);
	struct native_registers r = begin();

	(void)state;
	assert_int_equal(native_step(stack_words, &r, rule, 0x20 + 6), 0);
	check(&r, 0x1000 + 10, AT(11), AT(30));
	r = begin();
	assert_int_equal(native_step(stack_words, &r, rule, 0x20 + 11), 0);
	check(&r, 0x1000 + 11, AT(12), AT(30));
}

static void test_an_aligned_frame(void **state)
{
	struct native_registers r = begin();

	(void)state;
	stack_words[29] = AT(40);
	stack_words[30] = 0xbbbb;
	assert_int_equal(native_step(stack_words, &r, rule_of(PYBPF_NATIVE_DEREF, -1, 0, 0), 0), 0);
	check(&r, 0x1000 + 39, AT(40), 0xbbbb);
}

static void test_a_pointer_on_the_stack(void **state)
{
	struct native_registers r = begin();

	(void)state;
	stack_words[28] = AT(39);
	stack_words[37] = 0xbbbb;
	assert_int_equal(native_step(stack_words, &r, rule_of(PYBPF_NATIVE_SP_DEREF, 18, PYBPF_NATIVE_BP_SAVED, -3), 0),
			 0);
	check(&r, 0x1000 + 39, AT(40), 0xbbbb);
	r = begin();
	assert_int_equal(native_step(stack_words, &r, rule_of(PYBPF_NATIVE_SP_DEREF, 200, 0, 0), 0),
			 PYBPF_NATIVE_END_FAULT);
}

static void test_a_stack_pointer_that_is_kept(void **state)
{
	const uint32_t rule = PYBPF_NATIVE_SP_KEPT | 18u << PYBPF_RULE_OFFSET_SHIFT | 9u << PYBPF_KEPT_SHIFT;
	struct native_registers r = begin();

	(void)state;
	stack_words[28] = AT(31);
	stack_words[32] = 0xbbbb;
	assert_int_equal(native_step(stack_words, &r, rule | 8u << PYBPF_KEPT_BP_SHIFT, 0), 0);
	check(&r, 0x1000 + 39, AT(40), 0xbbbb);
	r = begin();
	stack_words[28] = AT(31);
	assert_int_equal(native_step(stack_words, &r, rule, 0), 0);
	check(&r, 0x1000 + 39, AT(40), AT(30));
	r = begin();
	stack_words[28] = AT(1);
	assert_int_equal(native_step(stack_words, &r, rule, 0), PYBPF_NATIVE_END_STUCK);
}

/* What a function has made of the frame pointer leads to no caller of its caller. */
static void test_a_frame_pointer_that_is_lost(void **state)
{
	const struct {
		unsigned kind;
		int words;
		enum pybpf_native_end end;
	} callers[] = {
		{PYBPF_NATIVE_BP, 2, PYBPF_NATIVE_END_STUCK},
		{PYBPF_NATIVE_BP, PYBPF_RULE_OFFSET_MAX, PYBPF_NATIVE_END_STUCK},
		{PYBPF_NATIVE_BP, -1, PYBPF_NATIVE_END_FAULT},
		{PYBPF_NATIVE_DEREF, -1, PYBPF_NATIVE_END_FAULT},
		{PYBPF_NATIVE_DEREF, 0, PYBPF_NATIVE_END_FAULT},
	};
	const unsigned kinds[] = {PYBPF_NATIVE_SP, PYBPF_NATIVE_BP};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(callers) / sizeof(*callers); i++) {
		const uint32_t lost = rule_of(kinds[i % 2], 4, PYBPF_NATIVE_BP_LOST, 0);
		const uint32_t same = rule_of(PYBPF_NATIVE_SP, 2, PYBPF_NATIVE_BP_SAME, 0);
		struct native_registers r = begin();

		assert_int_equal(native_step(stack_words, &r, lost, 0), 0);
		assert_int_equal(r.bp, 0);
		/* One that keeps the frame pointer has none, either. */
		assert_int_equal(native_step(stack_words, &r, same, 0), 0);
		assert_int_equal(
			native_step(stack_words, &r,
				    rule_of(callers[i / 2].kind, callers[i / 2].words, PYBPF_NATIVE_BP_SAVED, -2), 0),
			callers[i / 2].end);
	}
}

/* Behind as many words as a register says, and a few more. */
static void test_a_pointer_behind_an_array(void **state)
{
	const uint32_t rule = PYBPF_NATIVE_SP_INDEXED | 6u << PYBPF_RULE_REGISTER_SHIFT |
			      1u << PYBPF_RULE_REGISTER_OFFSET_SHIFT | PYBPF_NATIVE_BP_SAVED << PYBPF_RULE_BP_SHIFT |
			      0xffdu << PYBPF_RULE_BP_OFFSET_SHIFT;
	struct native_registers r = begin();

	(void)state;
	r.all[6] = 17;
	stack_words[28] = AT(39);
	stack_words[37] = 0xbbbb;
	assert_int_equal(native_step(stack_words, &r, rule, 0), PYBPF_NATIVE_END_REGISTER);
	r.is_innermost = 1;
	assert_int_equal(native_step(stack_words, &r, rule, 0), 0);
	check(&r, 0x1000 + 39, AT(40), 0xbbbb);
	r = begin();
	r.is_innermost = 1;
	r.all[6] = WORDS;
	assert_int_equal(native_step(stack_words, &r, rule, 0), PYBPF_NATIVE_END_FAULT);
}

/* The stack is as the caller left it. */
static void test_a_return_address_in_a_register(void **state)
{
	const uint32_t rule = PYBPF_NATIVE_RETURN | 14u << PYBPF_RULE_REGISTER_SHIFT;
	const uint32_t pushed = rule | 1u << PYBPF_RULE_REGISTER_OFFSET_SHIFT;
	struct native_registers r = begin();
	uint64_t sp = r.sp, bp = r.bp;

	(void)state;
	r.all[14] = 0x1234;
	assert_int_equal(native_step(stack_words, &r, rule, 0), PYBPF_NATIVE_END_REGISTER);
	r.is_innermost = 1;
	assert_int_equal(native_step(stack_words, &r, rule, 0), 0);
	check(&r, 0x1234, sp, bp);
	assert_false(r.is_innermost);
	r = begin();
	r.all[14] = 0x1234;
	r.is_innermost = 1;
	assert_int_equal(native_step(stack_words, &r, pushed, 0), 0);
	check(&r, 0x1234, sp + 8, bp);
}

/* Only those of the innermost function are known. */
static void test_another_register(void **state)
{
	const uint32_t rule = PYBPF_NATIVE_REGISTER | 6u << PYBPF_RULE_REGISTER_SHIFT |
			      2u << PYBPF_RULE_REGISTER_OFFSET_SHIFT | PYBPF_NATIVE_BP_SAVED << PYBPF_RULE_BP_SHIFT |
			      0xffeu << PYBPF_RULE_BP_OFFSET_SHIFT;
	struct native_registers r = begin();

	(void)state;
	r.all[6] = AT(20);
	assert_int_equal(native_step(stack_words, &r, rule, 0), PYBPF_NATIVE_END_REGISTER);
	r.is_innermost = 1;
	assert_int_equal(native_step(stack_words, &r, rule, 0), 0);
	check(&r, 0x1000 + 21, AT(22), 0x1000 + 20);
	r.all[6] = AT(40);
	assert_int_equal(native_step(stack_words, &r, rule, 0), PYBPF_NATIVE_END_REGISTER);
	r = begin();
	r.is_innermost = 1;
	assert_int_equal(native_step(stack_words, &r, PYBPF_NATIVE_SIGNAL, 0), 0);
	assert_int_equal(native_step(stack_words, &r, rule, 0), PYBPF_NATIVE_END_REGISTER);
	r.is_innermost = 1;
	assert_int_equal(native_step(stack_words, &r, rule | PYBPF_RULE_NO_REGISTER << PYBPF_RULE_REGISTER_SHIFT, 0),
			 PYBPF_NATIVE_END_REGISTER);
}

static void test_a_signal(void **state)
{
	struct native_registers r = begin();

	(void)state;
	assert_int_equal(native_step(stack_words, &r, PYBPF_NATIVE_SIGNAL, 0), 0);
	check(&r, 0x1000 + 10 + 21, 0x1000 + 10 + 20, 0x1000 + 10 + 15);
}

static void test_ends(void **state)
{
	struct native_registers r = begin();

	(void)state;
	assert_int_equal(native_step(stack_words, &r, PYBPF_NATIVE_END, 0), PYBPF_NATIVE_END_WHOLE);
	assert_int_equal(native_step(stack_words, &r, PYBPF_NATIVE_NONE, 0), PYBPF_NATIVE_END_NO_ROW);
	assert_int_equal(native_step(stack_words, &r, PYBPF_NATIVE_EXPRESSION, 0), PYBPF_NATIVE_END_EXPRESSION);
	assert_int_equal(native_step(stack_words, &r, PYBPF_NATIVE_REGISTER, 0), PYBPF_NATIVE_END_REGISTER);
	assert_int_equal(native_step(stack_words, &r, 15, 0), PYBPF_NATIVE_END_NO_ROW);
	check(&r, 0x400, AT(10), AT(30));
	/* Inwards, to where it is, and to no word: whatever the memory holds, the search ends. */
	assert_int_equal(native_step(stack_words, &r, rule_of(PYBPF_NATIVE_SP, 0, 0, 0), 0), PYBPF_NATIVE_END_STUCK);
	assert_int_equal(native_step(stack_words, &r, rule_of(PYBPF_NATIVE_SP, -3, 0, 0), 0), PYBPF_NATIVE_END_STUCK);
	r.bp = AT(30) + 4;
	assert_int_equal(native_step(stack_words, &r, rule_of(PYBPF_NATIVE_BP, 2, 0, 0), 0), PYBPF_NATIVE_END_STUCK);
	r = begin();
	assert_int_equal(native_step(stack_words, &r, rule_of(PYBPF_NATIVE_SP, 100, 0, 0), 0), PYBPF_NATIVE_END_FAULT);
	r = begin();
	stack_words[13] = 0;
	assert_int_equal(native_step(stack_words, &r, rule_of(PYBPF_NATIVE_SP, 4, 0, 0), 0), PYBPF_NATIVE_END_WHOLE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_the_stack_pointer),
		cmocka_unit_test(test_by_the_frame_pointer),
		cmocka_unit_test(test_a_large_frame),
		cmocka_unit_test(test_a_linkage_table),
		cmocka_unit_test(test_an_aligned_frame),
		cmocka_unit_test(test_a_pointer_on_the_stack),
		cmocka_unit_test(test_a_stack_pointer_that_is_kept),
		cmocka_unit_test(test_a_frame_pointer_that_is_lost),
		cmocka_unit_test(test_a_pointer_behind_an_array),
		cmocka_unit_test(test_a_return_address_in_a_register),
		cmocka_unit_test(test_another_register),
		cmocka_unit_test(test_a_signal),
		cmocka_unit_test(test_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

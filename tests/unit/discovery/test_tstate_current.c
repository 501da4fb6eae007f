// SPDX-License-Identifier: Apache-2.0
/* The variable that arm64's code of _PyThreadState_UncheckedGet() returns. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "discovery/internal.h"

#define RUNTIME 0xa36008ULL
#define AT      0x5eeb74ULL /* of the code */

#define BTI                   0xd503245f /* bti c */
#define RET                   0xd65f03c0
#define NOP                   0xd503201f
#define ADD(to, from, by)     (0x91000000 | (by) << 10 | (from) << 5 | (to))
#define LDR(to, from, offset) (0xf9400000 | (offset) / 8 << 10 | (from) << 5 | (to))

/* adrp: pages from that of the code on */
static uint32_t adrp(uint32_t to, int32_t pages)
{
	uint32_t distance = (uint32_t)pages & 0x1fffff;

	return 0x90000000 | (distance & 3) << 29 | distance >> 2 << 5 | to;
}

static uint64_t decode(const uint32_t *code, size_t count)
{
	return discovery_decode_tstate_current(code, count, AT, RUNTIME);
}

static void an_address_is_told_by_the_code(void **state)
{
	const int32_t pages = 0xa36 - 0x5ee;
	const uint32_t direct[] = {adrp(0, pages), LDR(0, 0, 0x258), RET, NOP};
	const uint32_t added[] = {BTI, adrp(0, pages), ADD(0, 0, 0x258), LDR(0, 0, 0), RET, NOP};
	const uint32_t another_register[] = {adrp(1, pages), ADD(1, 1, 0x8), LDR(0, 1, 0x250), RET};
	const uint32_t before[] = {adrp(0, -2), LDR(0, 0, 0x10), RET};

	(void)state;
	assert_int_equal(decode(direct, 4), 0xa36258);
	assert_int_equal(decode(added, 6), 0xa36258);
	assert_int_equal(decode(another_register, 4), 0xa36258);
	assert_int_equal(decode(before, 3), 0x5ec010);
}

/* A library refers to its own variable as to one that a program may have copied. */
static void the_runtime_comes_from_the_offset_table(void **state)
{
	const uint32_t plain[] = {adrp(0, 7), LDR(0, 0, 0xe98), LDR(0, 0, 0x250), RET, NOP, NOP};
	const uint32_t added[] = {BTI, adrp(0, 7), LDR(0, 0, 0xe98), ADD(0, 0, 0x248), LDR(0, 0, 0x8), RET};

	(void)state;
	assert_int_equal(decode(plain, 6), RUNTIME + 0x250);
	assert_int_equal(decode(added, 6), RUNTIME + 0x250);
}

static void other_code_tells_nothing(void **state)
{
	const uint32_t others[][5] = {
		{adrp(0, 7), LDR(0, 1, 0x10), RET, NOP, NOP},             /* from another register */
		{adrp(0, 7), ADD(0, 0, 0x10), RET, NOP, NOP},             /* returns an address */
		{adrp(0, 7), LDR(0, 0, 0x10), NOP, RET, NOP},             /* does something else */
		{LDR(0, 0, 0x10), RET, NOP, NOP, NOP},                    /* of an argument */
		{BTI, RET, NOP, NOP, NOP},                                /* nothing */
		{adrp(0, 7), LDR(0, 0, 0x10), LDR(0, 0, 0x10), NOP, RET}, /* more than can be followed */
	};
	const uint32_t cut[] = {adrp(0, 7), LDR(0, 0, 0x10), RET};

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_int_equal(decode(others[i], 5), 0);
	for (size_t count = 0; count < 3; count++)
		assert_int_equal(decode(cut, count), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_is_told_by_the_code),
		cmocka_unit_test(the_runtime_comes_from_the_offset_table),
		cmocka_unit_test(other_code_tells_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* Variables in the code of arm64: that of Debian's python2.7, and what gcc makes with branch protection. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "discovery/arm64.h"

#define BTI                   0xd503245f /* bti c */
#define RET                   0xd65f03c0
#define NOP                   0xd503201f
#define ADRP(to)              (0x90000000 | (to)) /* its own page */
#define ADD(to, from, by)     (0x91000000 | (by) << 10 | (from) << 5 | (to))
#define LDR(to, from, offset) (0xf9400000 | (offset) / 8 << 10 | (from) << 5 | (to))
#define STR(to, from, offset) (0xf9000000 | (offset) / 8 << 10 | (from) << 5 | (to))

#define COUNT(code) (sizeof(code) / sizeof((code)[0]))

#define INTERP_HEAD      0x34e7b0ULL
#define HEAD_MUTEX       0x34e7a8ULL
#define INTERPRETER_LOCK 0x350360ULL

/* Debian's python2.7 of bullseye: adrp x0; ldr x0, [x0, #1968]; ret */
static const uint32_t interpreter_head[] = {0x90001740, 0xf943d800, 0xd65f03c0};
/* adrp x0; ldr x1, [x0, #864]; cmp x1, #0; cset w0, ne */
static const uint32_t threads_initialized[] = {0xd0001740, 0xf941b001, 0xf100003f, 0x1a9f07e0};
static const uint32_t interpreter_new[] = {
	0xa9bd7bfd, 0xd2800a00, 0x910003fd, 0xa90153f3, 0x97fc8678, 0xaa0003f3, 0xb4000320, 0xb0001114,
	0xf90013f5, 0x9112c295, 0xf9417ea0, 0xb5000080, 0x97fd1841, 0xf9017ea0, 0xb40002a0, 0x4f000400,
	0x52800042, 0x52800021, 0xb9004a62, 0x3c808260, 0x3c818260, 0x3c828260, 0x3c838260, 0x97fd19a1,
	0x9112c281, 0xf9417c20, 0xf9418023, 0xf9000263, 0xf9018033, 0x97fd1a83, 0xf94013f5, 0xaa1303e0,
	0xa94153f3, 0xa8c37bfd, 0xd65f03c0, 0x900004a0, 0x9130c000, 0x97fce290,
};
static const uint32_t init_threads[] = {
	0xa9be7bfd, 0x910003fd, 0xf9000bf3, 0xd0000f33, 0xf941b260, 0xb4000080, 0xf9400bf3, 0xa8c27bfd, 0xd65f03c0,
	0x97fc2324, 0xf901b260, 0x52800021, 0x97fc248c, 0x97fc27cb, 0xb0001001, 0xf9062420, 0x17fffff6,
};
/* gcc 12, -O2 -mbranch-protection=standard: the same in short, linked at 0x460 */
static const uint32_t protected_head[] = {0xd503245f, 0x90000100, 0xf9401000, 0xd65f03c0};
static const uint32_t protected_new[] = {
	0xd503233f, 0xa9bd7bfd, 0xd2800600, 0x910003fd, 0xa90153f3, 0x97ffffeb, 0xaa0003f3, 0xb40002a0, 0x90000114,
	0xf90013f5, 0x91008295, 0xf94006a0, 0xb40002e0, 0x52800021, 0x97ffffe6, 0x91008281, 0xf9401282, 0xf9001293,
};

static void the_first_variable_is_found(void **state)
{
	(void)state;
	assert_int_equal(discovery_decode_first_load(interpreter_head, 3, 0x66394), INTERP_HEAD);
	assert_int_equal(discovery_decode_first_load(threads_initialized, 4, 0x661a8), INTERPRETER_LOCK);
	assert_int_equal(discovery_decode_first_load(protected_head, 4, 0x460), 0x20020);
}

static void the_address_may_be_added_up(void **state)
{
	const uint32_t added[] = {BTI, ADRP(3), ADD(3, 3, 0x250), LDR(0, 3, 0x8)};

	(void)state;
	assert_int_equal(discovery_decode_first_load(added, 4, 0x5123c), 0x51258);
}

static void other_code_tells_nothing(void **state)
{
	const uint32_t others[][4] = {
		{ADRP(0), LDR(0, 1, 0x10), RET, NOP},       /* from another register */
		{ADRP(0), ADD(0, 0, 0x10), RET, NOP},       /* returns an address */
		{ADRP(0), NOP, LDR(0, 0, 0x10), RET},       /* does something else */
		{ADRP(0), STR(1, 0, 0x10), RET, NOP},       /* stores */
		{LDR(0, 0, 0x10), ADRP(0), RET, NOP},       /* of an argument */
		{BTI, BTI, ADRP(0), LDR(0, 0, 0x10)},       /* begins twice */
		{ADRP(0), ADRP(1), LDR(0, 0, 0x10), RET},   /* makes another address first */
		{0x10000000, LDR(0, 0, 0x10), RET, NOP},    /* adr, which is no page */
		{ADRP(0), LDR(0, 0, 0x10) ^ 1u << 30, RET}, /* loads 32 bits */
	};

	(void)state;
	for (size_t i = 0; i < COUNT(others); i++)
		assert_int_equal(discovery_decode_first_load(others[i], 4, 0x1000), 0);
	for (size_t count = 0; count < 2; count++)
		assert_int_equal(discovery_decode_first_load(interpreter_head, count, 0x66394), 0);
}

static void a_store_is_known_by_its_address(void **state)
{
	const size_t count = COUNT(interpreter_new);

	(void)state;
	assert_true(discovery_decodes_store(interpreter_new, count, 0x12d8f0, INTERP_HEAD));
	assert_true(discovery_decodes_store(interpreter_new, count, 0x12d8f0, HEAD_MUTEX));
	assert_true(discovery_decodes_store(init_threads, COUNT(init_threads), 0x16ad70, INTERPRETER_LOCK));
	assert_true(discovery_decodes_store(protected_new, COUNT(protected_new), 0x470, 0x20020));
}

static void no_other_variable_is_stored(void **state)
{
	const size_t count = COUNT(interpreter_new);
	/* The sum of what never was an address; 32 bits. */
	const uint32_t unknown[] = {ADD(1, 2, 0x20), STR(0, 1, 0x10)};
	const uint32_t half[] = {ADRP(1), STR(0, 1, 0x20) ^ 1u << 30};

	(void)state;
	assert_false(discovery_decodes_store(interpreter_new, count, 0x12d8f0, INTERPRETER_LOCK));
	assert_false(discovery_decodes_store(interpreter_new, count, 0x12d8f0, INTERP_HEAD + 8));
	/* It is stored by the 29th instruction. */
	assert_false(discovery_decodes_store(interpreter_new, 28, 0x12d8f0, INTERP_HEAD));
	assert_true(discovery_decodes_store(interpreter_new, 29, 0x12d8f0, INTERP_HEAD));
	assert_false(discovery_decodes_store(unknown, 2, 0x1000, 0x30));
	assert_false(discovery_decodes_store(unknown, 2, 0x1000, 0x10));
	assert_false(discovery_decodes_store(half, 2, 0x1000, 0x1020));
	assert_false(discovery_decodes_store(half, 2, 0x1000, 0x1010));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_variable_is_found), cmocka_unit_test(the_address_may_be_added_up),
		cmocka_unit_test(other_code_tells_nothing),    cmocka_unit_test(a_store_is_known_by_its_address),
		cmocka_unit_test(no_other_variable_is_stored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* Threads that stopped, by their registers: was a sleep ended for it? */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <unistd.h>

#include "dump/woken.h"

#if defined(__x86_64__)
static struct user_regs_struct registers(long call, long result)
{
	return (struct user_regs_struct){.orig_rax = (unsigned long)call, .rax = (unsigned long)result};
}
#elif defined(__aarch64__)
/* As the kernel sets them back: result is that of a call that is not begun anew. */
static const uint32_t code[] = {0xd503201f, 0xd4000001, 0xd503201f}; /* nop, svc, nop */

static struct user_regs_struct registers(long call, long result)
{
	const uint32_t *pc = call < 0 ? code + 2 : result <= -512 ? code + 1 : code + 2;

	return (struct user_regs_struct){.regs[0] = result <= -512 ? 0 : (uint64_t)result, .pc = (uint64_t)pc};
}
#endif

static bool was_woken(long call, long result)
{
	const struct user_regs_struct regs = registers(call, result);

	return dump_was_woken(getpid(), &regs);
}

static void sleeps_that_were_ended(void **state)
{
	(void)state;
	assert_true(was_woken(202, -512)); /* ERESTARTSYS */
	assert_true(was_woken(202, -513));
	assert_true(was_woken(202, -514));
	assert_true(was_woken(230, -516)); /* ERESTART_RESTARTBLOCK */
	assert_true(was_woken(232, -EINTR));
}

static void threads_that_ran(void **state)
{
	(void)state;
	assert_false(was_woken(-1, 0));
	assert_false(was_woken(-1, 7));
	assert_false(was_woken(0, 0));
	assert_false(was_woken(0, 4096));
	assert_false(was_woken(0, -EAGAIN));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sleeps_that_were_ended),
		cmocka_unit_test(threads_that_ran),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

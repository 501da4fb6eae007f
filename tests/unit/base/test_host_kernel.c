// SPDX-License-Identifier: Apache-2.0
/* Which kernels read user memory how, by what they say of themselves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/host_kernel.h"

#define PLAIN "#1 SMP PREEMPT_DYNAMIC Thu Nov 23 10:00:00 UTC 2023"

static const struct {
	struct host_kernel kernel;
	bool lockless, checked;
} cases[] = {
	/* Debian's own names say nothing of the stable release. */
	{{"5.10.0-30-amd64", "#1 SMP Debian 5.10.218-1 (2024-06-01)", ""}, true, false},
	{{"6.1.0-9-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.27-1 (2023-05-08)", ""}, false, false},
	{{"6.1.0-10-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.37-1 (2023-07-03)", ""}, true, true},
	{{"6.0.0-6-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.0.12-1 (2022-12-09)", ""}, false, false},
	{{"6.12.9-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.12.9-1 (2025-01-10)", ""}, true, true},
	{{"7.2.13+deb14-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 7.2.13-1 (2026-11-01)", ""}, true, true},
	/* Nor do Ubuntu's. */
	{{"5.15.0-91-generic", "#101-Ubuntu SMP Tue Nov 14 13:30:08 UTC 2023",
	  "Ubuntu 5.15.0-91.101-generic 5.15.131\n"},
	 true,
	 false},
	{{"5.19.0-50-generic", "#50-Ubuntu SMP PREEMPT_DYNAMIC", "Ubuntu 5.19.0-50.50-generic 5.19.17\n"},
	 false,
	 false},
	{{"6.2.0-39-generic", "#40~22.04.1-Ubuntu SMP", "Ubuntu 6.2.0-39.40~22.04.1-generic 6.2.16\n"}, false, false},
	{{"6.1.0-1028-oem", "#28-Ubuntu SMP", "Ubuntu 6.1.0-1028.28-oem 6.1.53\n"}, true, true},
	{{"6.8.0-31-generic", "#31-Ubuntu SMP", "Ubuntu 6.8.0-31.31-generic 6.8.1\n"}, true, true},
	/* Stable releases. */
	{{"5.18.19", PLAIN, ""}, true, false},
	{{"5.19.0", PLAIN, ""}, false, false},
	{{"6.1.35", PLAIN, ""}, false, false},
	{{"6.1.36", PLAIN, ""}, true, true},
	{{"6.2.16", PLAIN, ""}, false, false},
	{{"6.3.9", PLAIN, ""}, false, false},
	{{"6.3.10", PLAIN, ""}, true, true},
	{{"6.4.0", PLAIN, ""}, true, true},
	{{"6.4.0-rc1", PLAIN, ""}, true, true},
	{{"10.0.1", PLAIN, ""}, true, true},
	/* Vendors that number by stable releases, and one that does not. */
	{{"6.1.29-47.49.amzn2023.x86_64", PLAIN, ""}, false, false},
	{{"6.1.102-111.182.amzn2023.x86_64", PLAIN, ""}, true, true},
	{{"5.14.0-427.13.1.el9_4.x86_64", PLAIN, ""}, false, false},
	{{"5.14.21-150500.55.31-default", PLAIN, ""}, false, false},
	{{"6.1.0-custom", PLAIN, ""}, false, false},
	/* What can't be read is unknown. */
	{{"", "", ""}, false, false},
	{{"next", PLAIN, "Ubuntu"}, false, false},
	{{"6.2.0-1", "#1 Debian sid", ""}, false, false},
};

static void test_reads(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct host_kernel *kernel = &cases[i].kernel;

		if (host_kernel_reads_without_lock(kernel) != cases[i].lockless ||
		    host_kernel_checks_reads(kernel) != cases[i].checked)
			fail_msg("%s (%s, %s): lockless %d, checked %d", kernel->release, kernel->version,
				 kernel->signature, host_kernel_reads_without_lock(kernel),
				 host_kernel_checks_reads(kernel));
	}
}

static void test_at_least(void **state)
{
	const struct host_kernel old = {.release = "5.14.0-427.13.1.el9_4.x86_64"}, just = {.release = "6.4.0-rc1"};
	const struct host_kernel next = {.release = "7.2.13+deb14-amd64"}, unknown = {.release = "next"};

	(void)state;
	assert_false(host_kernel_at_least(&old, 6, 4));
	assert_true(host_kernel_at_least(&just, 6, 4));
	assert_true(host_kernel_at_least(&next, 6, 4));
	assert_false(host_kernel_at_least(&unknown, 6, 4));
}

static void test_this_kernel(void **state)
{
	struct host_kernel kernel;

	(void)state;
	host_kernel_look(&kernel);
	assert_true(host_kernel_at_least(&kernel, 5, 10));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads),
		cmocka_unit_test(test_at_least),
		cmocka_unit_test(test_this_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

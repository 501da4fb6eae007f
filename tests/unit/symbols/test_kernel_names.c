// SPDX-License-Identifier: Apache-2.0
/* Functions of the kernel by address, from lists as /proc/kallsyms has them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "symbols/kernel_names.h"

static struct kernel_names *names_of(const char *list)
{
	char path[] = "/tmp/kernel-names-XXXXXX";
	int fd = mkstemp(path);
	struct kernel_names *names;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, list, strlen(list)), strlen(list));
	close(fd);
	names = kernel_names_open(path);
	assert_non_null(names);
	unlink(path);
	return names;
}

static void assert_name(struct kernel_names *names, uint64_t address, const char *expected)
{
	char name[KERNEL_NAME_MAX];

	kernel_names_find(names, address, name);
	assert_string_equal(name, expected);
}

static void test_functions(void **state)
{
	/* Unsorted, with data, an alias, a module, and a percpu variable at 0. */
	struct kernel_names *names = names_of("0000000000000000 A fixed_percpu_data\n"
					      "ffffffff81000100 T second\n"
					      "ffffffff81000000 t first\n"
					      "ffffffff81000080 d data\n"
					      "ffffffff81000100 W alias\n"
					      "ffffffff81000200 W weak\n"
					      "ffffffff81000300 w weak_local\n"
					      "ffffffffc0000000 t late\t[module]\n");

	(void)state;
	assert_name(names, 0xffffffff81000210, "weak_[k]");
	assert_name(names, 0xffffffff81000310, "weak_local_[k]");
	assert_name(names, 0xffffffff81000000, "first_[k]");
	assert_name(names, 0xffffffff810000ff, "first_[k]");
	assert_name(names, 0xffffffff81000100, "second_[k]");
	assert_name(names, 0xffffffffc0000010, "late_[k]");
	assert_name(names, 0xffffffff80ffffff, "[unknown]_[k]");
	assert_name(names, 0xffffffff90000000, "[unknown]_[k]");
	assert_name(names, 0, "[unknown]_[k]");
	assert_name(names, UINT64_MAX, "[unknown]_[k]");
	kernel_names_free(names);
}

static void test_longest_name(void **state)
{
	char list[2000] = "ffffffff81000000 t ", name[KERNEL_NAME_MAX];
	struct kernel_names *names;

	(void)state;
	memset(list + strlen(list), 'x', 1000);
	names = names_of(list);
	kernel_names_find(names, 0xffffffff81000000, name);
	assert_int_equal(strlen(name), KERNEL_NAME_MAX - 1);
	kernel_names_free(names);
}

static void test_no_list(void **state)
{
	static const char *const lists[] = {"",
					    "\n",
					    "0",
					    "0 t",
					    "zz t f\n",
					    "ffffffff81000000",
					    "ffffffff81000000 ",
					    "ffffffff81000000 t",
					    "ffffffff81000000 t ",
					    "0000000000000000 t f\n",
					    "ffffffff81000000 tf\n",
					    "ffffffff81000000 t \t[module]\n"};
	struct kernel_names *names;

	(void)state;
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		names = names_of(lists[i]);
		assert_name(names, 0xffffffff81000000, "[unknown]_[k]");
		kernel_names_free(names);
	}
	names = kernel_names_open("/nonexistent");
	assert_name(names, 0xffffffff81000000, "[unknown]_[k]");
	kernel_names_free(names);
	kernel_names_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_functions),
		cmocka_unit_test(test_longest_name),
		cmocka_unit_test(test_no_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

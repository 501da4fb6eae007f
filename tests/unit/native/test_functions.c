// SPDX-License-Identifier: Apache-2.0
/* Whose an address is, by this program's own symbols. */
#include "native/functions.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/elf_file.h"

/* A function, and code behind it that is in no function. */
__asm__(".pushsection .text\n"
	".balign 16\n"
	".type a_function, %function\n"
	"a_function: nop\n"
	"nop\n"
	".size a_function, . - a_function\n"
	"nop\n"
	".balign 16\n"
	".popsection\n");

static void test_a_function_ends(void **state)
{
	struct native_named named[3] = {{0}};
	struct elf_symbol symbol;
	struct elf_file *elf;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(elf_file_open(fd, &elf), 0);
	assert_int_equal(elf_file_symbol(elf, "a_function", &symbol), 0);
	named[0].address = symbol.value;
	named[1].address = symbol.value + symbol.size - 1;
	named[2].address = symbol.value + symbol.size;
	assert_int_equal(native_find_names(elf, named, 3), 0);
	for (size_t i = 0; i < 2; i++) {
		assert_string_equal(named[i].symbol, "a_function");
		assert_int_equal(named[i].start, symbol.value);
		assert_int_equal(named[i].size, symbol.size);
	}
	assert_int_equal(named[2].size, 0);
	elf_file_free(elf);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_function_ends)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* Reads and writes of files to their end. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"

static int memory_file(void)
{
	int fd = memfd_create("test_io", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void test_what_is_written_is_read(void **state)
{
	char bytes[16] = "";
	int fd = memory_file();

	(void)state;
	assert_int_equal(io_write(fd, "one ", 4), 0);
	assert_int_equal(io_write(fd, "two", 3), 0);
	assert_int_equal(io_write_at(fd, "0NE", 3, 0), 0);
	assert_int_equal(io_read_at(fd, bytes, 5, 2), 5);
	assert_memory_equal(bytes, "E two", 5);
	close(fd);
}

static void test_the_end_of_the_file_makes_a_read_shorter(void **state)
{
	char bytes[16];
	int fd = memory_file();

	(void)state;
	assert_int_equal(io_write(fd, "four", 4), 0);
	assert_int_equal(io_read_at(fd, bytes, sizeof(bytes), 1), 3);
	assert_memory_equal(bytes, "our", 3);
	assert_int_equal(io_read_at(fd, bytes, sizeof(bytes), 4), 0);
	close(fd);
}

/* The kernel takes a part of what no longer fits: the rest is asked for, and refused. */
static void test_a_part_is_an_error(void **state)
{
	int ends[2];
	static char much[1 << 20];

	(void)state;
	assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
	assert_int_equal(io_write(ends[1], much, sizeof(much)), -EAGAIN);
	close(ends[0]);
	close(ends[1]);
}

static void test_errors_of_the_kernel_are_returned(void **state)
{
	char byte;
	int full = open("/dev/full", O_RDWR | O_CLOEXEC);

	(void)state;
	assert_true(full >= 0);
	assert_int_equal(io_write(full, "x", 1), -ENOSPC);
	assert_int_equal(io_write_at(full, "x", 1, 0), -ENOSPC);
	close(full);
	assert_int_equal(io_read_at(full, &byte, 1, 0), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_written_is_read),
		cmocka_unit_test(test_the_end_of_the_file_makes_a_read_shorter),
		cmocka_unit_test(test_a_part_is_an_error),
		cmocka_unit_test(test_errors_of_the_kernel_are_returned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

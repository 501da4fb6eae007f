// SPDX-License-Identifier: Apache-2.0
/* Names of code in jitdumps, made here byte by byte as their specification says, and files that are not such ones. */
#include "native/jitdump.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COUNT 3

static struct native_named named[COUNT];
static uint8_t file[4096];
static size_t length;

static void put(uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		file[length++] = (uint8_t)(value >> 8 * i);
}

static void put_header(uint32_t magic, uint32_t size)
{
	length = 0;
	put(magic, 4);
	put(1, 4);
	put(size, 4);
	put(62, 4);
	put(0, 4);
	put(1234, 4);
	put(99, 8);
	put(0, 8);
	while (length < size)
		put(0xee, 1);
}

static void begin(void)
{
	put_header(0x4a695444, 40);
}

static void put_load(uint64_t address, uint64_t size, uint64_t index, const char *name)
{
	put(0, 4);
	put(16 + 40 + strlen(name) + 1 + size, 4);
	put(100, 8);
	put(1234, 4);
	put(1235, 4);
	put(address, 8);
	put(address, 8);
	put(size, 8);
	put(index, 8);
	memcpy(file + length, name, strlen(name) + 1);
	length += strlen(name) + 1;
	/* The code, which looks like anything. */
	for (uint64_t i = 0; i < size; i++)
		put(0, 1);
}

static void put_move(uint64_t from, uint64_t to, uint64_t size, uint64_t index)
{
	put(1, 4);
	put(16 + 48, 4);
	put(101, 8);
	put(1234, 4);
	put(1235, 4);
	put(to, 8);
	put(from, 8);
	put(to, 8);
	put(size, 8);
	put(index, 8);
}

/* A record with lines of source, say. */
static void put_other(uint32_t id)
{
	put(id, 4);
	put(16 + 24, 4);
	put(102, 8);
	put(0x100, 8);
	put(0x100, 8);
	put(0x200, 8);
}

/* Finds the names of the addresses 0x100, 0x200 and 0x300. */
static void find(void)
{
	FILE *in = fmemopen(file, length, "r");

	assert_non_null(in);
	memset(named, 0, sizeof(named));
	for (size_t i = 0; i < COUNT; i++)
		named[i].address = 0x100 * (i + 1);
	native_jitdump_find(in, named, COUNT);
	fclose(in);
}

static void check(const char *first, const char *second, const char *third)
{
	assert_string_equal(named[0].symbol, first);
	assert_string_equal(named[1].symbol, second);
	assert_string_equal(named[2].symbol, third);
}

static void test_names(void **state)
{
	(void)state;
	begin();
	put_other(2);
	put_load(0xf0, 0x11, 1, "first");
	put_other(4);
	put_load(0x1ff, 1, 2, "too low");
	put_load(0x201, 1, 3, "too high");
	put_other(77);
	put_load(0x300, 0x10, 4, "a\tname with spaces\x7f");
	find();
	check("first", "", "a?name with spaces?");
	assert_int_equal(named[0].start, 0xf0);
	assert_int_equal(named[0].size, 0x11);
	assert_int_equal(named[1].size, 0);
}

static void test_the_last_name_holds(void **state)
{
	(void)state;
	begin();
	put_load(0x200, 0x10, 1, "old");
	put_load(0x1f0, 0x20, 2, "new");
	find();
	check("", "new", "");
}

static void test_code_that_moved(void **state)
{
	(void)state;
	begin();
	put_load(0x900, 0x10, 1, "stays away");
	put_load(0xa00, 0x10, 2, "moves");
	put_load(0x300, 0x10, 3, "is replaced");
	put_move(0xa00, 0x2f8, 0x10, 2);
	put_move(0x900, 0x800, 0x10, 1);
	put_move(0x900, 0x200, 0x10, 55);
	put_load(0x100, 0x10, 4, "after them");
	find();
	check("after them", "", "moves");
	assert_int_equal(named[2].start, 0x2f8);
}

static void test_a_header_that_is_longer(void **state)
{
	(void)state;
	put_header(0x4a695444, 56);
	put_load(0x100, 0x10, 1, "first");
	find();
	check("first", "", "");
}

static void test_files_that_are_none(void **state)
{
	(void)state;
	put_header(0x4454694a, 40);
	put_load(0x100, 0x10, 1, "of another order of bytes");
	find();
	check("", "", "");
	put_header(0x4a695444, 40);
	file[8] = 39;
	put_load(0x100, 0x10, 1, "in its own header");
	find();
	check("", "", "");
}

static void test_records_that_are_none(void **state)
{
	size_t at;

	(void)state;
	begin();
	put_load(0x100, 0x10, 1, "before");
	at = length;
	put_load(0x200, 0x10, 2, "shorter than its head");
	file[at + 4] = 15;
	put_load(0x300, 0x10, 3, "after");
	find();
	check("before", "", "");

	begin();
	put_load(0x100, 0x10, 1, "before");
	put_load(0x200, 0, 2, "has no code");
	put_load(0x300, 0x10, 3, "");
	find();
	check("before", "", "");
}

/* The JIT is writing it. */
static void test_a_record_that_is_not_whole_yet(void **state)
{
	size_t at;

	(void)state;
	begin();
	put_load(0x100, 0x10, 1, "before");
	at = length;
	put_load(0x200, 0x10, 2, "name");
	/* Without the end of the name, and less. */
	for (size_t whole = length - 0x10 - 1; whole >= at; whole--) {
		length = whole;
		find();
		check("before", "", "");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_the_last_name_holds),
		cmocka_unit_test(test_code_that_moved),
		cmocka_unit_test(test_a_header_that_is_longer),
		cmocka_unit_test(test_files_that_are_none),
		cmocka_unit_test(test_records_that_are_none),
		cmocka_unit_test(test_a_record_that_is_not_whole_yet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

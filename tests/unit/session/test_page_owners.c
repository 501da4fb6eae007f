// SPDX-License-Identifier: Apache-2.0
/* Whose each page is, after pages were touched, given back and moved. */
#include "session/samples/page_owners.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define HUGE_PAGE 512

static uint64_t page;

static struct pybpf_count_key key_of(uint64_t stack_id)
{
	return (struct pybpf_count_key){.stack_id = stack_id, .thread.proc_id = 1};
}

/* first, count: pages. */
static void tell(struct session_page_owners *o, enum pybpf_memory_what what, uint64_t stack_id, uint64_t first,
		 uint64_t count, uint64_t bytes_or_target)
{
	const struct pybpf_memory_event event = {
		.what = what,
		.tid = 7,
		.start = first * page,
		.length = count * page,
		.bytes = bytes_or_target * page,
		.anonymous = 1,
		.key = key_of(stack_id),
	};

	assert_int_equal(session_page_owners_take(o, &event, sizeof(event), true), 0);
}

static void touch(struct session_page_owners *o, uint64_t stack_id, uint64_t at, uint64_t count)
{
	tell(o, PYBPF_MEMORY_TOUCHED, stack_id, at, 0, count);
}

static void give_back(struct session_page_owners *o, uint64_t first, uint64_t count)
{
	tell(o, PYBPF_MEMORY_GIVEN_BACK, 0, first, count, 0);
}

static uint64_t held_by(const struct session_page_owners *o, uint64_t stack_id, bool most)
{
	const struct pybpf_count_key key = key_of(stack_id);

	return session_page_owners_get(o, &key, most) / page;
}

#define NOW(o, stack_id)     held_by(o, stack_id, false)
#define AT_MOST(o, stack_id) held_by(o, stack_id, true)

static void assert_sums(const struct session_page_owners *o, uint64_t given, uint64_t given_back)
{
	uint64_t bytes, back;

	session_page_owners_tell(o, &bytes, &back);
	assert_int_equal(bytes / page, given);
	assert_int_equal(back / page, given_back);
}

static void test_pages_come_and_go(void **unused)
{
	struct session_page_owners o;

	(void)unused;
	session_page_owners_init(&o);
	give_back(&o, 0, 1000);
	for (uint64_t i = 0; i < 200; i++)
		touch(&o, i % 2 ? 11 : 22, 1000 + i, 1);
	give_back(&o, 1050, 100);
	assert_int_equal(NOW(&o, 11), 50);
	assert_int_equal(NOW(&o, 22), 50);
	/* Touched anew without having been given back: another one's from now on. */
	touch(&o, 33, 1000, 1);
	assert_int_equal(NOW(&o, 22), 49);
	assert_int_equal(NOW(&o, 33), 1);
	assert_int_equal(AT_MOST(&o, 22), 100);
	assert_int_equal(AT_MOST(&o, 33), 0);
	assert_sums(&o, 201, 101);
	/* All addresses; ranges that have no end. */
	give_back(&o, 0, UINT64_MAX / page);
	assert_int_equal(NOW(&o, 11), 0);
	touch(&o, 11, UINT64_MAX / page - 1, 1);
	give_back(&o, UINT64_MAX / page - 2, 5);
	assert_int_equal(NOW(&o, 11), 0);
	session_page_owners_forget(&o, 1);
	assert_int_equal(AT_MOST(&o, 11), 0);
	assert_sums(&o, 202, 202);
	session_page_owners_free(&o);
}

/* A record's bounds inside of a page are those of the next one. */
static void test_bounds_are_rounded_up(void **unused)
{
	struct pybpf_memory_event event = {
		.what = PYBPF_MEMORY_GIVEN_BACK, .start = 10 * page + 1, .length = 2 * page, .key = key_of(0)};
	struct session_page_owners o;

	(void)unused;
	session_page_owners_init(&o);
	for (uint64_t i = 10; i < 14; i++)
		touch(&o, i, i, 1);
	assert_int_equal(session_page_owners_take(&o, &event, sizeof(event), true), 0);
	assert_int_equal(NOW(&o, 10), 1);
	assert_int_equal(NOW(&o, 11) + NOW(&o, 12), 0);
	assert_int_equal(NOW(&o, 13), 1);
	assert_int_equal(session_page_owners_take(&o, &event, sizeof(event) - 1, true), -EBADMSG);
	session_page_owners_free(&o);
}

static void test_huge_pages(void **unused)
{
	const uint64_t base = 7 * HUGE_PAGE;
	struct session_page_owners o;

	(void)unused;
	session_page_owners_init(&o);
	touch(&o, 11, base + 100, HUGE_PAGE);
	assert_int_equal(NOW(&o, 11), HUGE_PAGE);
	give_back(&o, base, HUGE_PAGE / 2);
	assert_int_equal(NOW(&o, 11), HUGE_PAGE / 2);
	/* Not a huge page: a part of its place is in use, or it has no such size. */
	touch(&o, 22, base + 1, HUGE_PAGE);
	touch(&o, 22, base + HUGE_PAGE + 1, HUGE_PAGE + 1);
	touch(&o, 22, base + 2 * HUGE_PAGE, 2);
	assert_int_equal(NOW(&o, 11), HUGE_PAGE / 2);
	assert_int_equal(NOW(&o, 22), 3);
	/* Told no growth: another thread was told of both. */
	touch(&o, 22, base + 2, 0);
	assert_int_equal(NOW(&o, 22), 4);
	session_page_owners_free(&o);
}

/* A file's pages around the touched one, as many as became resident, without those that were before. */
static void test_pages_of_a_file(void **unused)
{
	struct pybpf_memory_event event = {
		.what = PYBPF_MEMORY_TOUCHED, .start = 37 * page, .bytes = 9 * page, .key = key_of(22)};
	struct session_page_owners o;

	(void)unused;
	session_page_owners_init(&o);
	touch(&o, 11, 34, 1);
	assert_int_equal(session_page_owners_take(&o, &event, sizeof(event), true), 0);
	assert_int_equal(NOW(&o, 11), 1);
	assert_int_equal(NOW(&o, 22), 9);
	give_back(&o, 32, 16);
	assert_int_equal(NOW(&o, 11) + NOW(&o, 22), 0);
	session_page_owners_free(&o);
}

static void test_ranges_move(void **unused)
{
	struct session_page_owners o;

	(void)unused;
	session_page_owners_init(&o);
	/* Page 1099 has no owner; where it goes lies a page that has one. */
	for (uint64_t i = 0; i < 300; i++) {
		if (i != 99)
			touch(&o, 11, 1000 + i, 1);
	}
	touch(&o, 22, 5100, 1);
	touch(&o, 33, 1300, 1);
	tell(&o, PYBPF_MEMORY_MOVED, 0, 1000, 300, 5001);
	assert_int_equal(NOW(&o, 11), 299);
	assert_int_equal(NOW(&o, 22), 0);
	give_back(&o, 1000, 300);
	assert_int_equal(NOW(&o, 11), 299);
	give_back(&o, 5001, 299);
	assert_int_equal(NOW(&o, 11), 1);
	assert_int_equal(NOW(&o, 33), 1);
	session_page_owners_free(&o);
}

static void test_ranges_without_faults(void **unused)
{
	struct session_page_owners o;

	(void)unused;
	session_page_owners_init(&o);
	/* mlock(): the range is known. */
	touch(&o, 11, 102, 1);
	for (int i = 0; i < 9; i++)
		tell(&o, PYBPF_MEMORY_POPULATED, 22, 100, 10, 1);
	assert_int_equal(NOW(&o, 11), 1);
	assert_int_equal(NOW(&o, 22), 9);
	give_back(&o, 100, 10);
	assert_int_equal(NOW(&o, 11) + NOW(&o, 22), 0);
	/* mmap(): it is known at the end. */
	for (int i = 0; i < 6; i++)
		tell(&o, PYBPF_MEMORY_POPULATED, 33, 0, 0, 2);
	assert_int_equal(NOW(&o, 33), 0);
	tell(&o, PYBPF_MEMORY_MAPPED, 0, 200, 20, 0);
	assert_int_equal(NOW(&o, 33), 12);
	tell(&o, PYBPF_MEMORY_MAPPED, 0, 300, 20, 0);
	assert_int_equal(NOW(&o, 33), 12);
	give_back(&o, 200, 20);
	assert_int_equal(NOW(&o, 33), 0);
	session_page_owners_free(&o);
}

/* What stacks held when all together held most: not each stack's own greatest value. */
static void test_the_most(void **unused)
{
	struct session_page_owners o;

	(void)unused;
	session_page_owners_init(&o);
	for (uint64_t i = 0; i < 30; i++)
		touch(&o, 11, i, 1);
	give_back(&o, 10, 20);
	for (uint64_t i = 0; i < 25; i++)
		touch(&o, 22, 100 + i, 1);
	give_back(&o, 0, 200);
	assert_int_equal(AT_MOST(&o, 11), 10);
	assert_int_equal(AT_MOST(&o, 22), 25);
	assert_int_equal(NOW(&o, 11) + NOW(&o, 22), 0);
	session_page_owners_free(&o);
}

static void test_without_memory(void **unused)
{
	struct pybpf_memory_event event = {.what = PYBPF_MEMORY_TOUCHED, .bytes = page, .anonymous = 1};
	struct session_page_owners o;

	(void)unused;
	event.key = key_of(11);
	session_page_owners_init(&o);
	touch(&o, 11, 0, 1);
	event.start = page;
	assert_int_equal(session_page_owners_take(&o, &event, sizeof(event), false), 0);
	assert_int_equal(NOW(&o, 11), 2);
	event.start = 4096 * page;
	assert_int_equal(session_page_owners_take(&o, &event, sizeof(event), false), 0);
	assert_int_equal(NOW(&o, 11), 2);
	assert_int_equal(o.refused, page);
	session_page_owners_free(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pages_come_and_go), cmocka_unit_test(test_bounds_are_rounded_up),
		cmocka_unit_test(test_huge_pages),        cmocka_unit_test(test_pages_of_a_file),
		cmocka_unit_test(test_ranges_move),       cmocka_unit_test(test_ranges_without_faults),
		cmocka_unit_test(test_the_most),          cmocka_unit_test(test_without_memory),
	};

	page = (uint64_t)sysconf(_SC_PAGESIZE);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

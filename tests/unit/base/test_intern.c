// SPDX-License-Identifier: Apache-2.0
/* Items that are there once each, and come and go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "base/intern.h"
#include "allocated.h"

#define NAME 16

struct item {
	uint64_t key;
	uint32_t value;
	uint32_t pad;
};

static struct intern numbers(void)
{
	struct intern t;

	intern_init(&t, sizeof(struct item), sizeof(uint64_t));
	return t;
}

static uint32_t put(struct intern *t, uint64_t key, uint32_t value, bool want_fresh)
{
	struct item item = {.key = key, .value = value};
	bool fresh;
	uint32_t i = intern_add(t, &item, &fresh);

	assert_int_not_equal(i, INTERN_NONE);
	assert_int_equal(fresh, want_fresh);
	return i;
}

static void test_empty(void **unused)
{
	struct intern t = numbers();
	uint64_t key = 0;

	(void)unused;
	assert_int_equal(intern_find(&t, &key), INTERN_NONE);
	assert_null(t.items);
	assert_null(t.slots);
	intern_free(&t);
	intern_free(&t);
}

static void test_first_value_stands(void **unused)
{
	struct intern t = numbers();

	(void)unused;
	assert_int_equal(put(&t, 5, 50, true), 0);
	assert_int_equal(put(&t, 6, 60, true), 1);
	assert_int_equal(put(&t, 5, 70, false), 0);
	assert_int_equal(((struct item *)intern_item(&t, 0))->value, 50);
	assert_int_equal(t.count, 2);
	intern_free(&t);
	assert_int_equal(t.count, 0);
	assert_int_equal(put(&t, 6, 60, true), 0);
	intern_free(&t);
}

static void test_text(void **unused)
{
	char one[] = "one", again[] = "one", two[] = "two";
	char *texts[] = {one, again, two};
	struct intern t;
	bool fresh;

	(void)unused;
	intern_init(&t, sizeof(char *), INTERN_TEXT);
	assert_int_equal(intern_add(&t, &texts[0], &fresh), 0);
	assert_int_equal(intern_add(&t, &texts[1], &fresh), 0);
	assert_false(fresh);
	assert_int_equal(intern_find(&t, &texts[2]), INTERN_NONE);
	assert_int_equal(intern_add(&t, &texts[2], &fresh), 1);
	assert_true(fresh);
	assert_ptr_equal(*(char **)intern_item(&t, 0), one);
	intern_free(&t);
}

/* Bytes with NULs, one of which is the beginning of another. */
static void test_bytes(void **unused)
{
	struct {
		struct intern_bytes key;
		int value;
	} items[] = {{{"a\0b", 3}, 1}, {{"a\0c", 3}, 2}, {{"a\0", 2}, 3}, {{"", 0}, 4}};
	struct intern t;
	bool fresh;

	(void)unused;
	intern_init(&t, sizeof(items[0]), INTERN_BYTES);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(intern_add(&t, &items[i], &fresh), i);
		assert_true(fresh);
	}
	for (uint32_t i = 0; i < 4; i++) {
		char copy[3];
		struct intern_bytes key = {copy, items[i].key.size};

		memcpy(copy, items[i].key.bytes, key.size);
		assert_int_equal(intern_find(&t, &key), i);
	}
	intern_remove(&t, 0);
	assert_int_equal(intern_find(&t, &items[0]), INTERN_NONE);
	assert_int_equal(intern_find(&t, &items[2]), 2);
	intern_free(&t);
}

/* Others are found as before, wherever their places in the table are. */
static void test_replaced(void **unused)
{
	struct intern t = INTERN_INIT(sizeof(uint64_t), sizeof(uint64_t));
	uint64_t key;
	bool fresh;

	(void)unused;
	for (key = 0; key < 100; key++)
		intern_add(&t, &key, &fresh);
	for (uint32_t i = 0; i < 100; i += 2) {
		key = 1000 + i;
		intern_replace(&t, i, &key);
	}
	assert_int_equal(t.count, 100);
	for (uint32_t i = 0; i < 100; i++) {
		key = i % 2 ? i : 1000 + i;
		assert_int_equal(intern_find(&t, &key), i);
		key = i % 2 ? 1000 + i : i;
		assert_int_equal(intern_find(&t, &key), INTERN_NONE);
	}
	intern_free(&t);
}

/* A table of the items added last: of 1, 2, 3 and many. */
static void test_oldest_goes(void **unused)
{
	static const uint64_t rooms[] = {1, 2, 3, 100};

	(void)unused;
	for (size_t n = 0; n < sizeof(rooms) / sizeof(*rooms); n++) {
		struct intern t = numbers();
		uint32_t oldest = 0;

		for (uint64_t key = 0; key < 5 * rooms[n] + 1; key++) {
			if (t.count == rooms[n])
				intern_remove_oldest(&t, &oldest);
			put(&t, key, 0, true);
			for (uint64_t old = 0; old <= key; old++)
				assert_int_equal(intern_find(&t, &old) != INTERN_NONE, old + rooms[n] > key);
		}
		intern_free(&t);
	}
}

/* Against an array that says what should be there: every key is found as long as it was not removed, and only then. */
static void test_come_and_go(void **unused)
{
	enum {
		KEYS = 500,
		STEPS = 200000
	};
	struct intern t = numbers();
	uint32_t value[KEYS] = {0}, there = 0, random = 1;

	(void)unused;
	for (uint32_t step = 1; step <= STEPS; step++) {
		uint64_t key;
		uint32_t i;

		random = random * 1664525u + 1013904223u;
		/* Waves: the table fills and empties. */
		key = (random >> 8) % ((step / 5000) % 2 ? KEYS : KEYS / 10);
		i = intern_find(&t, &key);
		assert_int_equal(i != INTERN_NONE, value[key] != 0);
		if (i != INTERN_NONE)
			assert_int_equal(((struct item *)intern_item(&t, i))->value, value[key]);
		if (random >> 31 && i != INTERN_NONE) {
			intern_remove(&t, i);
			value[key] = 0;
			there--;
		} else if (i == INTERN_NONE) {
			put(&t, key, step, true);
			value[key] = step;
			there++;
		}
		assert_int_equal(t.count, there);
	}
	for (uint64_t key = 0; key < KEYS; key++)
		assert_int_equal(intern_find(&t, &key) != INTERN_NONE, value[key] != 0);
	while (t.count)
		intern_remove(&t, t.count / 2);
	for (uint64_t key = 0; key < KEYS; key++)
		assert_int_equal(intern_find(&t, &key), INTERN_NONE);
	intern_free(&t);
}

/* Memory follows the most that was there at a time, not all that came. */
static void test_memory(void **unused)
{
	struct intern t = numbers();
	size_t before = allocated_bytes(), bytes;

	(void)unused;
	for (uint32_t i = 0; i < 1000; i++)
		put(&t, i, i, true);
	bytes = allocated_bytes() - before;
	assert_true(bytes >= 1000 * (sizeof(struct item) + 2 * sizeof(uint32_t)));
	assert_true(bytes <= 1000 * (sizeof(struct item) * 3 / 2 + 4 * sizeof(uint32_t)) + 1024);
	for (uint32_t i = 1000; i < 100000; i++) {
		intern_remove(&t, i % 1000);
		put(&t, i, i, true);
	}
	assert_int_equal(allocated_bytes() - before, bytes);
	while (t.count)
		intern_remove(&t, 0);
	assert_int_equal(allocated_bytes(), before);
}

/* Adds names and finds each; returns the seconds of CPU time that it took. */
static double add_names(char (*names)[NAME], uint32_t count)
{
	struct intern t;
	clock_t begin = clock();
	bool fresh;

	intern_init(&t, sizeof(char *), INTERN_TEXT);
	for (uint32_t i = 0; i < count; i++) {
		const char *name = names[i];

		assert_int_not_equal(intern_add(&t, &name, &fresh), INTERN_NONE);
		assert_true(fresh);
	}
	for (uint32_t i = 0; i < count; i++) {
		const char *name = names[i];

		assert_int_equal(intern_find(&t, &name), i);
	}
	intern_free(&t);
	return (double)(clock() - begin) / CLOCKS_PER_SEC;
}

/* The place that FNV-1a without a key gives a name in a table of 65,536. */
static uint32_t place_by_fnv(const char *name)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
	return (uint32_t)(hash ^ hash >> 32) & 0xffff;
}

/*
 * Whoever chooses the names does not choose their places. All of the crafted names have a place in the first 256th of
 * the table by a hash that everybody can compute: each is compared with all before, 1,000 times the work.
 */
static void test_crafted_names(void **unused)
{
	enum {
		COUNT = 20000,
		PART = 256,
		TIMES = 30
	};
	char(*crafted)[NAME] = calloc(COUNT, NAME), (*plain)[NAME] = calloc(COUNT, NAME);
	uint32_t found = 0;
	double usual;

	(void)unused;
	assert_non_null(crafted);
	assert_non_null(plain);
	for (uint32_t i = 0; found < COUNT; i++) {
		snprintf(crafted[found], NAME, "f%u", i);
		if (place_by_fnv(crafted[found]) < 65536 / PART)
			found++;
	}
	for (uint32_t i = 0; i < COUNT; i++)
		snprintf(plain[i], NAME, "f%u", i * PART);
	usual = add_names(plain, COUNT) + add_names(plain, COUNT) + add_names(plain, COUNT);
	assert_true(add_names(crafted, COUNT) < TIMES * usual / 3);
	free(crafted);
	free(plain);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),       cmocka_unit_test(test_first_value_stands),
		cmocka_unit_test(test_text),        cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_oldest_goes), cmocka_unit_test(test_come_and_go),
		cmocka_unit_test(test_memory),      cmocka_unit_test(test_crafted_names),
		cmocka_unit_test(test_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

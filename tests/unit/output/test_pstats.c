// SPDX-License-Identifier: Apache-2.0
/* pstats files, read as CPython's marshal reads the types that all its versions share. */
#include <locale.h>
#include <math.h>
#include <stdbool.h>

#include "profiles_hostile.h"

struct reader {
	const char *at, *end;
};

/* cc, nc, tottime, cumtime */
struct values {
	uint64_t cc, nc;
	double own, total;
};

struct entry {
	char *file, *name;
	uint64_t line;
	struct values values;
	struct caller {
		char *file, *name;
		struct values values;
	} callers[32];
	int nr_callers;
};

static struct entry entries[64];
static int nr_entries;

static unsigned char byte(struct reader *r)
{
	assert_true(r->at < r->end);
	return (unsigned char)*r->at++;
}

static int32_t int32(struct reader *r)
{
	uint32_t number = 0;

	for (int shift = 0; shift < 32; shift += 8)
		number |= (uint32_t)byte(r) << shift;
	return (int32_t)number;
}

static uint64_t integer(struct reader *r)
{
	unsigned char type = byte(r);
	uint64_t number = 0;

	if (type == 'i') {
		int32_t small = int32(r);

		assert_true(small >= 0);
		return (uint64_t)small;
	}
	assert_int_equal(type, 'l');
	for (int32_t digits = int32(r), i = 0; i < digits; i++) {
		uint64_t low = byte(r), high = byte(r);

		assert_true(high < 0x80);
		assert_true(i + 1 < digits || low || high); /* no leading zero */
		number |= (low | high << 8) << (15 * i);
	}
	return number;
}

static double real(struct reader *r)
{
	uint64_t bits = 0;
	double number;

	assert_int_equal(byte(r), 'g');
	for (int shift = 0; shift < 64; shift += 8)
		bits |= (uint64_t)byte(r) << shift;
	memcpy(&number, &bits, sizeof(number));
	return number;
}

static char *string(struct reader *r)
{
	int32_t size;
	char *text;

	assert_int_equal(byte(r), 't');
	size = int32(r);
	assert_true(size >= 0 && size <= r->end - r->at);
	text = strndup(r->at, (size_t)size);
	r->at += size;
	assert_int_equal(strlen(text), size);
	assert_int_not_equal(mbstowcs(NULL, text, 0), (size_t)-1); /* UTF-8 */
	return text;
}

static void tuple(struct reader *r, int32_t size)
{
	assert_int_equal(byte(r), '(');
	assert_int_equal(int32(r), size);
}

static void key(struct reader *r, char **file, uint64_t *line, char **name)
{
	tuple(r, 3);
	*file = string(r);
	*line = integer(r);
	*name = string(r);
}

static struct values values(struct reader *r)
{
	struct values v;

	v.cc = integer(r);
	v.nc = integer(r);
	v.own = real(r);
	v.total = real(r);
	return v;
}

static bool ends(struct reader *r)
{
	if (*r->at != '0')
		return false;
	r->at++;
	return true;
}

static void read_back(const struct profile *p)
{
	size_t size;
	char *bytes = written_bytes(p, output_pstats, &(struct output_options){0}, &size);
	struct reader r = {bytes, bytes + size};

	nr_entries = 0;
	assert_int_equal(byte(&r), '{');
	while (!ends(&r)) {
		struct entry *e = &entries[nr_entries++];

		key(&r, &e->file, &e->line, &e->name);
		tuple(&r, 5);
		e->values = values(&r);
		assert_int_equal(byte(&r), '{');
		for (e->nr_callers = 0; !ends(&r); e->nr_callers++) {
			struct caller *c = &e->callers[e->nr_callers];
			uint64_t line;

			key(&r, &c->file, &line, &c->name);
			tuple(&r, 4);
			c->values = values(&r);
		}
	}
	assert_ptr_equal(r.at, r.end);
	free(bytes);
}

static void forget(void)
{
	for (int i = 0; i < nr_entries; i++) {
		free(entries[i].file);
		free(entries[i].name);
		for (int c = 0; c < entries[i].nr_callers; c++) {
			free(entries[i].callers[c].file);
			free(entries[i].callers[c].name);
		}
	}
	nr_entries = 0;
}

static const struct entry *entry(const char *file, uint64_t line, const char *name)
{
	for (int i = 0; i < nr_entries; i++) {
		if (strcmp(entries[i].file, file) == 0 && entries[i].line == line && strcmp(entries[i].name, name) == 0)
			return &entries[i];
	}
	fail_msg("no entry for %s:%llu(%s)", file, (unsigned long long)line, name);
	return NULL;
}

static void assert_values(const struct values *v, uint64_t calls, double own, double total)
{
	assert_true(v->cc == calls && v->nc == calls);
	assert_true(fabs(v->own - own) < 1e-9 && fabs(v->total - total) < 1e-9);
}

static const struct values *from(const struct entry *e, const char *caller)
{
	for (int i = 0; i < e->nr_callers; i++) {
		if (strcmp(e->callers[i].name, caller) == 0)
			return &e->callers[i].values;
	}
	fail_msg("%s is not called by %s", e->name, caller);
	return NULL;
}

static uint32_t framed(struct profile *p, uint32_t stack, const char *name, int line, int first)
{
	return profile_add_stack(p, stack, profile_add_frame(p, PROFILE_PYTHON, name, "app.py", line, first));
}

static void test_times_and_callers(void **unused)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 42, "python3");
	uint32_t root = framed(p, PROFILE_ROOT, "<module>", 10, 1);
	uint32_t f = framed(p, root, "f", 5, 3), g = framed(p, root, "g", 8, 7);

	(void)unused;
	take_in(p, f, owner, 70);
	take_in(p, framed(p, root, "f", 6, 3), owner, 20); /* another line of it */
	take_in(p, framed(p, g, "f", 6, 3), owner, 10);
	take_in(p, framed(p, g, "f", 31, 30), owner, 4); /* another function of that name */
	take_in(p, on(p, g, "built in", "", PROFILE_NO_LINE), owner, 1);
	take_in(p, PROFILE_ROOT, owner, 100);
	assert_int_equal(profile_set_measure(p, &(struct profile_measure){"samples", "count", 10000000}), 0);
	read_back(p);
	assert_int_equal(nr_entries, 5);
	assert_values(&entry("app.py", 1, "<module>")->values, 105, 0, 1.05);
	assert_int_equal(entry("app.py", 1, "<module>")->nr_callers, 0);
	assert_values(&entry("app.py", 3, "f")->values, 100, 1, 1);
	assert_values(from(entry("app.py", 3, "f"), "<module>"), 90, 0.9, 0.9);
	assert_values(from(entry("app.py", 3, "f"), "g"), 10, 0.1, 0.1);
	assert_values(&entry("app.py", 30, "f")->values, 4, 0.04, 0.04);
	assert_values(&entry("app.py", 7, "g")->values, 15, 0, 0.15);
	assert_values(&entry("~", 0, "built in")->values, 1, 0.01, 0.01);
	forget();
	profile_free(p);
}

static void test_recursion(void **unused)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 42, "python3");
	uint32_t a = framed(p, PROFILE_ROOT, "a", 1, 1), b = framed(p, a, "b", 2, 2), s = framed(p, b, "a", 1, 1);

	(void)unused;
	take_in(p, s, owner, 10);                        /* a b a */
	take_in(p, framed(p, s, "b", 2, 2), owner, 100); /* a b a b */
	s = PROFILE_ROOT;
	for (int i = 0; i < 5000; i++)
		s = framed(p, s, "dive", 20 + i % 2, 20);
	take_in(p, s, owner, 1000);
	read_back(p);
	/* Without a period times are samples. */
	assert_values(&entry("app.py", 1, "a")->values, 110, 10, 110);
	assert_values(&entry("app.py", 2, "b")->values, 110, 100, 110);
	assert_values(from(entry("app.py", 2, "b"), "a"), 110, 100, 110);
	assert_values(from(entry("app.py", 1, "a"), "b"), 110, 10, 110);
	assert_values(&entry("app.py", 20, "dive")->values, 1000, 1000, 1000);
	assert_values(from(entry("app.py", 20, "dive"), "dive"), 1000, 1000, 1000);
	forget();
	profile_free(p);
}

static void test_large_numbers_and_units(void **unused)
{
	const uint64_t sizes[] = {INT32_MAX, 1ULL << 31, (1ULL << 45) - 1, 1ULL << 45, 1ULL << 62};
	char name[16];

	(void)unused;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct profile *p = new_profile();

		snprintf(name, sizeof(name), "f%zu", i);
		take_in(p, framed(p, PROFILE_ROOT, name, 1, 1), process(p, 1, "x"), sizes[i]);
		assert_int_equal(profile_set_measure(p, &(struct profile_measure){"asleep", "microseconds", 0}), 0);
		read_back(p);
		assert_true(entry("app.py", 1, name)->values.nc == sizes[i]);
		assert_true(entry("app.py", 1, name)->values.own == (double)sizes[i] * 1e-6);
		forget();
		profile_free(p);
	}
}

/* Times are seconds, whatever unit of time the measure has; other values stay what they are. */
static void test_units_of_time(void **unused)
{
	static const struct {
		const char *unit;
		double seconds;
	} units[] = {{"nanoseconds", 7e-9}, {"microseconds", 7e-6}, {"milliseconds", 7e-3}, {"bytes", 7}};

	(void)unused;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		struct profile *p = new_profile();

		take_in(p, framed(p, PROFILE_ROOT, "f", 1, 1), process(p, 1, "x"), 7);
		assert_int_equal(profile_set_measure(p, &(struct profile_measure){"values", units[i].unit, 0}), 0);
		read_back(p);
		assert_values(&entry("app.py", 1, "f")->values, 7, units[i].seconds, units[i].seconds);
		forget();
		profile_free(p);
	}
}

/* pstats refuses a dict without entries. */
static void test_empty(void **unused)
{
	struct profile *p = new_profile();

	(void)unused;
	read_back(p);
	assert_int_equal(nr_entries, 1);
	assert_values(&entry("~", 0, "<no sample has Python frames>")->values, 0, 0, 0);
	forget();
	profile_free(p);
}

static void test_hostile_names(void **unused)
{
	struct profile *p = hostile_profile();
	double own = 0;

	(void)unused;
	read_back(p);
	assert_int_equal(nr_entries, NR_HOSTILE + 1);
	for (int i = 0; i < nr_entries; i++) {
		own += entries[i].values.own;
		for (int j = 0; j < i; j++)
			assert_true(strcmp(entries[i].name, entries[j].name) != 0 ||
				    strcmp(entries[i].file, entries[j].file) != 0);
	}
	assert_true(own == (double)((1 << (NR_HOSTILE + 1)) - 1));
	forget();
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_times_and_callers),
		cmocka_unit_test(test_recursion),
		cmocka_unit_test(test_large_numbers_and_units),
		cmocka_unit_test(test_units_of_time),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_hostile_names),
	};

	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

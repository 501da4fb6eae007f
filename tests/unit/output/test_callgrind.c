// SPDX-License-Identifier: Apache-2.0
/* Callgrind's format: its lines, and inclusive costs added up as readers do it. */
#include <stdbool.h>

#include "profiles_hostile.h"

static uint32_t framed(struct profile *p, uint32_t stack, const char *name, const char *file, int line, int first)
{
	return profile_add_stack(p, stack, profile_add_frame(p, PROFILE_PYTHON, name, file, line, first));
}

static void test_lines(void **unused)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 42, "python3");
	uint32_t root = framed(p, PROFILE_ROOT, "<module>", "app.py", 10, 1);
	uint32_t f = framed(p, root, "f", "app.py", 5, 3);
	char *text;

	(void)unused;
	take_in(p, f, owner, 7);
	take_in(p, framed(p, root, "f", "app.py", 6, 3), owner, 2);
	take_in(p, framed(p, f, "g;", "lib.py", PROFILE_NO_LINE, 30), owner, 1);
	take_in(p, PROFILE_ROOT, owner, 100);
	assert_int_equal(profile_set_measure(p, &(struct profile_measure){"samples", "count", 1010101}), 0);
	assert_int_equal(profile_add_account(p, "lost", "full", "without\nroom", 3), 0);
	text = written(p, output_callgrind);
	assert_string_equal(text, "# callgrind format\n"
				  "version: 1\n"
				  "creator: pybpf " PYBPF_VERSION "\n"
				  "cmd: python3 (42)\n"
				  "desc: lost: 3 without\\x0aroom\n"
				  "positions: line\n"
				  "event: cpu_us : CPU time in microseconds\n"
				  "event: samples : samples in count\n"
				  "events: cpu_us samples\n"
				  "summary: 10101 10\n"
				  "\n"
				  "fl=(1) app.py\n"
				  "fn=(1) <module>\n"
				  "10 0 0\n"
				  "cfi=(1)\n"
				  "cfn=(2) f\n"
				  "calls=10 3\n"
				  "10 10101 10\n"
				  "\n"
				  "fl=(1)\n"
				  "fn=(2)\n"
				  "5 7071 7\n"
				  "6 2020 2\n"
				  "cfi=(2) lib.py\n"
				  "cfn=(3) g\\x3b\n"
				  "calls=1 30\n"
				  "5 1010 1\n"
				  "\n"
				  "fl=(2)\n"
				  "fn=(3)\n"
				  "0 1010 1\n"
				  "\n"
				  "fl=(3) ???\n"
				  "fn=(4) python3 (42)\n"
				  "cfi=(1)\n"
				  "cfn=(1)\n"
				  "calls=10 1\n"
				  "0 10101 10\n"
				  "\n"
				  "totals: 10101 10\n");
	free(text);
	profile_free(p);
}

#define MOST 64

/* What readers make of a file: names by number, own costs, and inclusive ones as the sum of the calls to a function. */
struct read {
	char names[MOST][64];
	unsigned long long own[MOST], inclusive[MOST], self_total, summary;
	int lines;
};

static int number_of(struct read *r, const char *line)
{
	unsigned number;
	int n = 0;

	assert_int_equal(sscanf(line, "(%u)%n", &number, &n), 1);
	assert_in_range(number, 1, MOST - 1);
	if (line[n]) {
		assert_int_equal(line[n], ' ');
		assert_true(strlen(line + n + 1) > 0);
		assert_int_equal(*r->names[number], '\0'); /* named once */
		snprintf(r->names[number], sizeof(r->names[number]), "%s", line + n + 1);
	} else {
		assert_int_not_equal(*r->names[number], '\0');
	}
	return (int)number;
}

static void read_all(struct read *r, const char *written_text)
{
	char *copy = strdup(written_text), *save = NULL;
	struct read files = {0};
	int function = 0, called = 0;
	bool body = false, call = false;
	unsigned long long cost, at;

	for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		r->lines++;
		if (strncmp(line, "events: ", 8) == 0)
			body = true;
		else if (sscanf(line, "summary: %llu", &r->summary) == 1 || strncmp(line, "totals: ", 8) == 0 || !body)
			continue;
		else if (strncmp(line, "fl=", 3) == 0)
			number_of(&files, line + 3);
		else if (strncmp(line, "cfi=", 4) == 0)
			number_of(&files, line + 4);
		else if (strncmp(line, "fn=", 3) == 0)
			function = number_of(r, line + 3);
		else if (strncmp(line, "cfn=", 4) == 0)
			called = number_of(r, line + 4);
		else if (sscanf(line, "calls=%llu %llu", &cost, &at) == 2)
			call = true;
		else if (sscanf(line, "%llu %llu", &at, &cost) == 2) {
			if (call)
				r->inclusive[called] += cost;
			else
				r->own[function] += cost;
			r->self_total += call ? 0 : cost;
			call = false;
		} else
			fail_msg("not a line of the format: %s", line);
	}
	free(copy);
}

static void assert_function(const struct read *r, const char *name, unsigned own, unsigned inclusive)
{
	for (int i = 0; i < MOST; i++) {
		if (strcmp(r->names[i], name) != 0)
			continue;
		assert_int_equal(r->own[i], own);
		assert_int_equal(r->inclusive[i], inclusive);
		return;
	}
	fail_msg("no function %s", name);
}

/* Recursion, direct and through others, and a root that is called elsewhere: each sample counts once. */
static void test_recursion(void **unused)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 42, "python3"), a, b, s;
	struct read r = {0};
	char *text;

	(void)unused;
	a = on(p, PROFILE_ROOT, "a", "r.py", 1);
	b = on(p, a, "b", "r.py", 2);
	s = on(p, b, "a", "r.py", 1);
	take_in(p, s, owner, 10);                            /* a b a */
	take_in(p, on(p, s, "leaf", "r.py", 9), owner, 100); /* a b a leaf */
	take_in(p, on(p, b, "b", "r.py", 3), owner, 1000);   /* a b b */
	take_in(p, on(p, PROFILE_ROOT, "b", "r.py", 2), owner, 5);
	s = PROFILE_ROOT;
	for (int i = 0; i < 5000; i++)
		s = on(p, s, "dive", "r.py", 20 + i % 2);
	take_in(p, s, owner, 10000);
	text = written(p, output_callgrind);
	read_all(&r, text);
	assert_function(&r, "a", 10, 1110);
	assert_function(&r, "b", 1005, 1115);
	assert_function(&r, "leaf", 100, 100);
	assert_function(&r, "dive", 10000, 10000);
	assert_function(&r, "python3 (42)", 0, 0);
	assert_int_equal(r.self_total, 11115);
	assert_int_equal(r.summary, 11115);
	/* The calls that cost nothing are there all the same, and count samples, not frames. */
	assert_non_null(strstr(text, "calls=10000 0\n20 0\n"));
	free(text);
	profile_free(p);
}

static void test_empty(void **unused)
{
	struct profile *p = new_profile();
	struct read r = {0};
	char *text = written(p, output_callgrind);

	(void)unused;
	read_all(&r, text);
	assert_int_equal(r.summary, 0);
	assert_int_equal(r.self_total, 0);
	assert_non_null(strstr(text, "desc: No sample has Python frames.\n"));
	free(text);
	profile_free(p);
}

static void test_hostile_names(void **unused)
{
	struct profile *p = hostile_profile();
	struct read r = {0};
	char *text;

	(void)unused;
	assert_int_equal(profile_set_measure(p, &(struct profile_measure){"two\nwords \xff", "a b\n", 0}), 0);
	text = written(p, output_callgrind);
	read_all(&r, text);
	assert_int_equal(r.self_total, (1 << (NR_HOSTILE + 1)) - 1);
	assert_non_null(strstr(text, "\nevents: two_words__\n"));
	for (const char *c = text; *c; c++)
		assert_true(*c == '\n' || (unsigned char)*c >= 0x20);
	free(text);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_recursion),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_hostile_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* Places of addresses in a text, of which parts are taken back, replaced or cut off. */
#include "symbols/objects/py_out.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Adds "<A x>" with a mark behind the name. */
static void add(struct py_out *out, const char *name, uint64_t object)
{
	size_t size = out->size;

	py_out_text(out, "<");
	py_out_text(out, name);
	py_out_mark(out, size + 1, object);
	py_out_text(out, " x>");
}

/* Writes the text with "@1" at the place of object 1, and the start of its name as "|". */
static void assert_marked(struct py_out *out, const char *want)
{
	char got[256] = "";
	size_t used = 0;
	uint32_t at = 0;

	py_out_end(out);
	for (uint32_t i = 0; i < out->nr_marks; i++) {
		const struct py_mark *m = &out->marks[i];

		assert_true(at <= m->begin && m->begin < m->at && m->at <= out->size);
		used += (size_t)snprintf(got + used, sizeof(got) - used, "%.*s|%.*s@%d", (int)(m->begin - at),
					 out->bytes + at, (int)(m->at - m->begin), out->bytes + m->begin,
					 (int)m->object);
		at = m->at;
	}
	snprintf(got + used, sizeof(got) - used, "%s", out->bytes + at);
	assert_string_equal(got, want);
}

static void test_marks_stay_at_their_places(void **unused)
{
	static struct py_out out;
	size_t from, to;

	(void)unused;
	py_out_begin(&out, 100);
	add(&out, "A", 1);
	from = out.size;
	add(&out, "B", 2);
	to = out.size;
	add(&out, "C", 3);
	py_out_replace(&out, from, to, "<hidden>");
	assert_marked(&out, "<|A@1 x><hidden><|C@3 x>");

	py_out_begin(&out, 100);
	add(&out, "A", 1);
	from = out.size;
	add(&out, "B", 2);
	py_out_return(&out, from);
	assert_marked(&out, "<|A@1 x>");
}

/* What is cut off has no mark, and neither has what finds no room. */
static void test_marks_of_a_text_that_is_cut(void **unused)
{
	static struct py_out out;

	(void)unused;
	py_out_begin(&out, 8);
	add(&out, "A", 1);
	add(&out, "Long", 2);
	assert_marked(&out, "<|A@1 x><Lo...");

	py_out_begin(&out, 12);
	add(&out, "A", 1);
	add(&out, "B", 2);
	py_out_replace(&out, 0, 1, "twelve bytes");
	assert_marked(&out, "twelve bytes...");

	py_out_begin(&out, PY_OUT_MAX);
	for (int i = 0; i < PY_OUT_MARKS + 3; i++)
		add(&out, "A", 1);
	assert_int_equal(out.nr_marks, PY_OUT_MARKS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_marks_stay_at_their_places),
		cmocka_unit_test(test_marks_of_a_text_that_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* Which texts can be the source of a function. What a code object says is written here as CPython would say it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "session/sources/source_check.h"

/* The words of a claim, each with a NUL behind it. */
#define WORDS(text) .words = (text), .words_size = sizeof(text)
#define NO_WORDS    .words = NULL

static const char shop[] = "import db\n"
			   "\n"
			   "class Shop:\n"
			   "    @db.retry(times=3)\n"
			   "    # a comment\n"
			   "    def orders(self, since):\n"
			   "        text = '''\n"
			   "select * from orders\n"
			   "'''\n"
			   "        return self.ask(\n"
			   "text, since, 'fast')\n"
			   "\n"
			   "    def delete(self): self.ask('delete')\n"
			   "total = sum(x.price for x in db.rows())\n"
			   "key = lambda row: row.weight\n";

#define ORDERS WORDS("nask\0nself\0nsince\0ntext\0sfast")

static void test_the_source_itself(void **state)
{
	static const struct source_claim claims[] = {
		{"Shop.orders", 4, 11, ORDERS},
		{"orders", 4, 10, ORDERS}, /* to 3.10 names are not qualified */
		{"Shop.delete", 13, 13, WORDS("nask\0nself\0sdelete")},
		{"Shop", 3, 13, WORDS("n__name__\0n__module__\0ndb\0nretry\0norders\0ndelete\0sShop")},
		{"<module>", 1, 15, WORDS("ndb\0nShop\0nsum\0nrows\0ntotal\0nkey")},
		{"<module>", 0, 0, WORDS("ndb")},
		{"<genexpr>", 14, 14, WORDS("nprice\0nx")},
		{"<lambda>", 15, 15, WORDS("nweight\0nrow")},
		{"orders", 4, -1, NO_WORDS}, /* nothing else is known */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(claims) / sizeof(claims[0]); i++) {
		if (!source_fits(shop, &claims[i]))
			fail_msg("claim %zu: %s", i, claims[i].name);
	}
}

static void test_another_source(void **state)
{
	static const struct source_claim claims[] = {
		{"Shop.order", 4, 11, ORDERS},                 /* another name */
		{"Shop.orders", 5, 11, ORDERS},                /* at another line */
		{"Shop.orders", 3, 11, ORDERS},                /* the class is there */
		{"Shop.orders", 4, 13, ORDERS},                /* a line behind its block */
		{"Shop.orders", 4, 10, WORDS("nask\0nuntil")}, /* a name that it has not */
		{"Shop.orders", 4, 10, WORDS("nas")},          /* a part of a name */
		{"Shop.orders", 4, 10, WORDS("ask\0sslow")},   /* a string that it has not */
		{"Shop.orders", 4, 10, WORDS("ndelete")},      /* a name of the next function */
		{"Shop.delete", 13, 14, WORDS("nask\0nself")}, /* a line behind a block of one line */
		{"Shop.delete", 99, 99, WORDS("nask\0nself")}, /* behind the end */
		{"<module>", 1, 99, WORDS("ndb")},             /* a line behind the end */
		{"<lambda>", 14, 14, WORDS("nx")},             /* no lambda is there */
		{"<genexpr>", 15, 15, WORDS("nweight\0nheight")},
		{"since", 6, 6, NO_WORDS}, /* an argument defines nothing */
		{"text", 7, 7, NO_WORDS},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(claims) / sizeof(claims[0]); i++) {
		if (source_fits(shop, &claims[i]))
			fail_msg("claim %zu: %s", i, claims[i].name);
	}
}

static void test_what_a_compiler_changes(void **state)
{
	static const char text[] = "class A:\n"
				   "    def f(self) -> int:\n"
				   "        assert self.__hidden, 'ab' 'cd' + \"ef\"\n"
				   "        import os.path as p\n";
	const struct source_claim fits = {"A.f", 2, 3,
					  WORDS("nAssertionError\0n_A__hidden\0sabcd\0scdef\0sreturn\0nos\0npath\0np")};
	const struct source_claim mangled = {"A.f", 2, 3, WORDS("n_A__other")};
	/* Its parts are there, with a quote behind one and before the other: this much is not told apart. */
	const struct source_claim parts = {"A.f", 2, 3, WORDS("sabef")};

	(void)state;
	assert_true(source_fits(text, &fits));
	assert_false(source_fits(text, &mangled));
	assert_true(source_fits(text, &parts));
	assert_false(source_fits(text, &(struct source_claim){"A.f", 2, 3, WORDS("sabxf")}));
}

/* pytest writes asserts anew. */
static void test_asserts_of_pytest(void **state)
{
	static const char text[] = "def test_f():\n"
				   "    assert f(1) == 2\n";
	static const struct source_claim claim = {"test_f", 1, 2,
						  WORDS("nf\0n_call_reprcompare\0n_saferepr\0nlocals\0spy0\0spy12")};

	(void)state;
	assert_true(source_fits(text, &claim));
	assert_false(source_fits(text, &(struct source_claim){"test_f", 1, 2, WORDS("nf\0spyx")}));
}

/* Only Python ends a line at a lone CR; a form feed begins the columns anew. */
static void test_ends_of_lines(void **state)
{
	static const char text[] = "a = 1\rb = 2\r\n\f    \r\tdef f(): pass\n";

	(void)state;
	assert_true(source_fits("a = 1\rdef f():\r\n  g()\n", &(struct source_claim){"f", 2, 3, WORDS("ng")}));
	assert_true(source_fits(text, &(struct source_claim){"f", 4, 4, NO_WORDS}));
	/* In Latin-1, and with a character that Python replaces. */
	assert_true(source_fits("def caf\xe9(): pass\n", &(struct source_claim){"caf\xc3\xa9", 1, 1, NO_WORDS}));
	assert_false(source_fits("caf\xe9()\n", &(struct source_claim){"caf\xc3\xa9", 1, 1, NO_WORDS}));
	assert_false(source_fits(text, &(struct source_claim){"f", 3, 3, NO_WORDS}));
}

/* What a lexer can be misled by. */
static void test_strings_and_brackets(void **state)
{
	static const char text[] = "def f(a,\n"
				   "b):  # it's\n"
				   "    x = 'def g(): ('\n"
				   "    y = \"\\\"(\" + '''\n"
				   "def g():\n"
				   "    '''\n"
				   "    z = x + \\\n"
				   "y\n"
				   "    w = 'not closed\n"
				   "    return last\n"
				   "def g(): other()\n";

	(void)state;
	assert_true(source_fits(text, &(struct source_claim){"f", 1, 10, WORDS("nx\0ny\0nz\0nw\0nlast\0na\0nb")}));
	assert_false(source_fits(text, &(struct source_claim){"f", 1, 11, NO_WORDS}));
	assert_false(source_fits(text, &(struct source_claim){"f", 1, 10, WORDS("nother")}));
	assert_true(source_fits(text, &(struct source_claim){"g", 11, 11, WORDS("nother")}));
	assert_false(source_fits("", &(struct source_claim){"f", 1, 1, NO_WORDS}));
	assert_false(source_fits("def f(", &(struct source_claim){"f", 2, 2, NO_WORDS}));
	assert_true(source_fits("def f('''", &(struct source_claim){"f", 1, 1, NO_WORDS}));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_source_itself),       cmocka_unit_test(test_another_source),
		cmocka_unit_test(test_what_a_compiler_changes), cmocka_unit_test(test_asserts_of_pytest),
		cmocka_unit_test(test_ends_of_lines),           cmocka_unit_test(test_strings_and_brackets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

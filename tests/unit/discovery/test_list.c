// SPDX-License-Identifier: Apache-2.0
/* The table and the JSON of pybpf ps, and texts of other programs in both. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "discovery/list.h"
#include "base/text.h"

static void check_printable(const char *text, const char *expected)
{
	char *out = text_printable(text);

	assert_non_null(out);
	assert_string_equal(out, expected);
	free(out);
}

static void makes_texts_printable(void **state)
{
	(void)state;
	check_printable("", "");
	check_printable("python3 app.py", "python3 app.py");
	check_printable("a\nb\t\x1b[31mred\x7f", "a\\x0ab\\x09\\x1b[31mred\\x7f");
	check_printable("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\x8d", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\x8d");
	/* C1: a terminal may take U+009B for ESC [. */
	check_printable("\xc2\x9b"
			"31m",
			"\\xc2\\x9b31m");
	/* No UTF-8: a lone byte, overlong, a surrogate, above U+10FFFF, cut short. */
	check_printable("\xff", "\\xff");
	check_printable("\xc0\xaf", "\\xc0\\xaf");
	check_printable("\xe0\x80\x80", "\\xe0\\x80\\x80");
	check_printable("\xed\xa0\x80", "\\xed\\xa0\\x80");
	check_printable("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");
	check_printable("\xf5\x80\x80\x80", "\\xf5\\x80\\x80\\x80");
	check_printable("x\xe2\x82", "x\\xe2\\x82");
	check_printable("\xe2\x82", "\\xe2\\x82");
}

static void check_json(const char *text, const char *expected)
{
	char out[256] = "";
	FILE *file = fmemopen(out, sizeof(out), "w");

	assert_non_null(file);
	text_json(text, file);
	fclose(file);
	assert_string_equal(out, expected);
}

static void writes_json_strings(void **state)
{
	(void)state;
	check_json("", "\"\"");
	check_json("a \"b\" \\c", "\"a \\\"b\\\" \\\\c\"");
	check_json("\n\x01\x7f", "\"\\u000a\\u0001\\u007f\"");
	check_json("caf\xc3\xa9\xff.", "\"caf\xc3\xa9\\ufffd.\"");
}

static struct ps_list example(void)
{
	struct ps_list list = {.rows = calloc(3, sizeof(*list.rows)), .count = 3};

	assert_non_null(list.rows);
	list.rows[0] = (struct ps_row){.process = {.pid = 812, .inside = 812, .threads = 4, .comm = "python3"},
				       .supported = true,
				       .python.version = "3.11.2",
				       .python.path = strdup("/usr/bin/python3.11"),
				       .user = strdup("www-data"),
				       .command = strdup("python3 app.py")};
	list.rows[1] = (struct ps_row){.process = {.pid = 31337, .inside = 7, .threads = 128, .comm = "x\"", .uid = 5},
				       .container = {.id = "4f797c539e6c", .name = "web\x1b[m", .runtime = "docker"},
				       .supported = true,
				       .python.version = "3.14.0t",
				       .python.path = strdup("/usr/bin/python3.14t"),
				       .user = strdup("5"),
				       .command = strdup("gunicorn: worker [shop]")};
	list.rows[2] = (struct ps_row){.process = {.pid = 40000, .inside = 40000, .threads = 1, .comm = "pypy3"},
				       .user = strdup("root"),
				       .command = strdup("pypy3"),
				       .refusal = strdup("process 40000 (pypy3): this is PyPy")};
	return list;
}

static void check_table(const struct ps_list *list, size_t width, const char *expected)
{
	char out[2048] = "";
	FILE *file = fmemopen(out, sizeof(out), "w");

	assert_non_null(file);
	assert_int_equal(ps_table(list, width, file), 0);
	fclose(file);
	assert_string_equal(out, expected);
}

static void prints_a_table(void **state)
{
	struct ps_list list = example();

	(void)state;
	check_table(&list, 0,
		    "  PID  INSIDE  VERSION  CONTAINER  THREADS  USER      COMMAND\n"
		    "  812       -  3.11.2   -                4  www-data  python3 app.py\n"
		    "31337       7  3.14.0t  web\\x1b[m      128  5         gunicorn: worker [shop]\n"
		    "40000       -  -        -                1  root      pypy3\n"
		    "\n"
		    "Not supported:\n"
		    "  process 40000 (pypy3): this is PyPy\n");
	list.rows[2].supported = true;
	check_table(&list, 63,
		    "  PID  INSIDE  VERSION  CONTAINER  THREADS  USER      COMMAND\n"
		    "  812       -  3.11.2   -                4  www-data  python...\n"
		    "31337       7  3.14.0t  web\\x1b[m      128  5         gunico...\n"
		    "40000       -           -                1  root      pypy3\n");
	/* A process with three Pythons. */
	list.rows[0].more[0] = (struct ps_python){.version = "2.7.18"};
	list.rows[0].more[1] = (struct ps_python){.version = "3.13.1d"};
	list.rows[0].nr_more = 2;
	list.count = 1;
	check_table(&list, 0,
		    "PID  INSIDE  VERSION                CONTAINER  THREADS  USER      COMMAND\n"
		    "812       -  3.11.2,2.7.18,3.13.1d  -                4  www-data  python3 app.py\n");
	list.rows[0].nr_more = 0;
	/* A terminal that is too narrow for the columns. */
	list.count = 1;
	check_table(&list, 10,
		    "PID  INSIDE  VERSION  CONTAINER  THREADS  USER      C\n"
		    "812       -  3.11.2   -                4  www-data  p\n");
	/* What is run says more than the folder of the interpreter. */
	free(list.rows[0].command);
	list.rows[0].command = strdup("/srv/shop/venv/bin/python3 shop/app.py --port 80");
	check_table(&list, 81,
		    "PID  INSIDE  VERSION  CONTAINER  THREADS  USER      COMMAND\n"
		    "812       -  3.11.2   -                4  www-data  python3 shop/app.py --port 80\n");
	check_table(&list, 73,
		    "PID  INSIDE  VERSION  CONTAINER  THREADS  USER      COMMAND\n"
		    "812       -  3.11.2   -                4  www-data  python3 shop/app.p...\n");
	list.count = 3;
	ps_free(&list);
	ps_free(&list);
}

static void names_runtimes_of_equal_names(void **state)
{
	struct ps_list list = example();

	(void)state;
	list.rows[0].container = (struct container){.id = "1", .name = "web", .runtime = "podman"};
	list.rows[1].container = (struct container){.id = "2", .name = "web", .runtime = "docker"};
	list.rows[2].container = (struct container){.id = "3", .name = "db", .runtime = "docker"};
	list.rows[2].supported = true;
	check_table(&list, 0,
		    "  PID  INSIDE  VERSION  CONTAINER   THREADS  USER      COMMAND\n"
		    "  812       -  3.11.2   podman:web        4  www-data  python3 app.py\n"
		    "31337       7  3.14.0t  docker:web      128  5         gunicorn: worker [shop]\n"
		    "40000       -           db                1  root      pypy3\n");
	ps_free(&list);
}

static void prints_json(void **state)
{
	struct ps_list list = example(), none = {0};
	char out[4096] = "";
	FILE *file = fmemopen(out, sizeof(out), "w");

	(void)state;
	assert_non_null(file);
	ps_json(&none, file);
	ps_json(&list, file);
	fclose(file);
	assert_string_equal(out,
			    "[]\n[\n"
			    "  {\"pid\": 812, \"inside_pid\": 812, \"threads\": 4, \"uid\": 0, \"user\": \"www-data\", "
			    "\"comm\": \"python3\", \"command\": \"python3 app.py\", \"version\": \"3.11.2\", "
			    "\"path\": \"/usr/bin/python3.11\", \"not_supported\": null, \"container\": null},\n"
			    "  {\"pid\": 31337, \"inside_pid\": 7, \"threads\": 128, \"uid\": 5, \"user\": \"5\", "
			    "\"comm\": \"x\\\"\", \"command\": \"gunicorn: worker [shop]\", \"version\": \"3.14.0t\", "
			    "\"path\": \"/usr/bin/python3.14t\", \"not_supported\": null, \"container\": {\"id\": "
			    "\"4f797c539e6c\", "
			    "\"name\": \"web\\u001b[m\", \"runtime\": \"docker\", \"pod_uid\": null}},\n"
			    "  {\"pid\": 40000, \"inside_pid\": 40000, \"threads\": 1, \"uid\": 0, \"user\": \"root\", "
			    "\"comm\": \"pypy3\", \"command\": \"pypy3\", \"version\": null, \"path\": null, "
			    "\"not_supported\": \"process 40000 (pypy3): this is PyPy\", \"container\": null}\n"
			    "]\n");
	ps_free(&list);
}

static void prints_json_of_several_pythons(void **state)
{
	struct ps_list list = example();
	char out[1024] = "";
	FILE *file = fmemopen(out, sizeof(out), "w");

	(void)state;
	assert_non_null(file);
	list.rows[0].more[0] = (struct ps_python){.version = "2.7.18", .path = strdup("/opt/a\"/libpython2.7.so")};
	list.rows[0].more[1] = (struct ps_python){.version = "3.13.1d", .path = strdup("/b")};
	list.rows[0].nr_more = 2;
	list.count = 1;
	ps_json(&list, file);
	fclose(file);
	assert_non_null(strstr(out, "\"path\": \"/usr/bin/python3.11\", \"more_pythons\": ["
				    "{\"version\": \"2.7.18\", \"path\": \"/opt/a\\\"/libpython2.7.so\"}, "
				    "{\"version\": \"3.13.1d\", \"path\": \"/b\"}], \"not_supported\": null"));
	list.count = 3;
	ps_free(&list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(makes_texts_printable), cmocka_unit_test(writes_json_strings),
		cmocka_unit_test(prints_a_table),        cmocka_unit_test(names_runtimes_of_equal_names),
		cmocka_unit_test(prints_json),           cmocka_unit_test(prints_json_of_several_pythons),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

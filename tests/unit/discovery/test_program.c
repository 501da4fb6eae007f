// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "discovery/program.h"

static void expect(const char *comm, const char *cmdline, const char *name)
{
	char out[256];

	discovery_program_name(comm, cmdline, out, sizeof(out));
	assert_string_equal(out, name);
}

static void test_script(void **state)
{
	(void)state;
	expect("python3", "python3 app.py", "python3 app.py");
	expect("python3", "/usr/bin/python3 /srv/web/app.py --port 80", "python3 app.py");
	expect("python3.13", "python3.13 -u -W error -X dev app.py -m other", "python3.13 app.py");
	expect("python", "python -OO bin/tool", "python tool");
	expect("python", "python -Werror -Xdev app.py", "python app.py");
	expect("python", "python -bW error app.py", "python app.py");
	expect("python3", "python3 --check-hash-based-pycs always app.py", "python3 app.py");
	expect("python3", "python3 -u - --port 80", "python3 -");
}

static void test_module(void **state)
{
	(void)state;
	expect("python3", "python3 -m http.server 8000", "python3 -m http.server");
	expect("python3", "python3 -I -m celery worker", "python3 -m celery");
	expect("python3", "python3 -mflask run", "python3 -m flask");
	expect("python3", "python3 -um celery worker", "python3 -m celery");
	expect("python3", "python3 -Imhttp.server 8000", "python3 -m http.server");
	expect("python3", "python3 -m", "python3");
}

static void test_code(void **state)
{
	(void)state;
	expect("python3", "python3 -c import time; time.sleep(9)", "python3 -c");
	expect("python3", "python3 -uc import time; time.sleep(9)", "python3 -c");
	expect("python3", "python3 -Sccode module", "python3 -c");
}

static void test_no_script(void **state)
{
	(void)state;
	expect("python3", "python3", "python3");
	expect("python3", "", "python3");
	expect("python3", "python3 -i -q", "python3");
	expect("python3", "   ", "python3");
}

static void test_other_names(void **state)
{
	(void)state;
	expect("gunicorn", "/usr/bin/python3 /usr/bin/gunicorn app:app", "gunicorn");
	expect("uwsgi", "uwsgi --ini x.ini", "uwsgi");
}

static void test_interpreter(void **state)
{
	(void)state;
	assert_true(discovery_program_is_python("/srv/venv/bin/python3.12 /srv/venv/bin/uvicorn app:app"));
	assert_true(discovery_program_is_python("python"));
	assert_false(discovery_program_is_python("pyth on"));
	assert_false(discovery_program_is_python("/opt/python/bin/tool"));
	assert_false(discovery_program_is_python("gunicorn: master [app]"));
	assert_false(discovery_program_is_python(""));
}

static void test_is_cut(void **state)
{
	char out[12];

	(void)state;
	discovery_program_name("python3", "python3 long_name_of_a_script.py", out, sizeof(out));
	assert_string_equal(out, "python3 lon");
}

/* As CPython 3.13 starts them (multiprocessing/spawn.py, forkserver.py, resource_tracker.py). */
static void test_workers(void **state)
{
	(void)state;
	assert_true(discovery_program_is_worker("/usr/bin/python3 -c from multiprocessing.spawn import spawn_main; "
						"spawn_main(tracker_fd=5, pipe_handle=7) --multiprocessing-fork"));
	assert_true(discovery_program_is_worker(
		"/usr/bin/python3 -c from multiprocessing.resource_tracker import main;main(5)"));
	assert_false(discovery_program_is_worker("python3 app.py --multiprocessing"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_script),      cmocka_unit_test(test_module),
		cmocka_unit_test(test_code),        cmocka_unit_test(test_no_script),
		cmocka_unit_test(test_other_names), cmocka_unit_test(test_interpreter),
		cmocka_unit_test(test_is_cut),      cmocka_unit_test(test_workers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

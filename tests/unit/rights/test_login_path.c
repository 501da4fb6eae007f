// SPDX-License-Identifier: Apache-2.0
#include "rights/login_path.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static int from_text(const char *text, const char *setting, char *out, size_t size)
{
	FILE *in = fmemopen((char *)text, strlen(text), "r");
	int err;

	assert_non_null(in);
	err = login_path_read(in, setting, out, size);
	fclose(in);
	return err;
}

static void assert_path(const char *text, const char *setting, const char *path)
{
	char out[256] = "";

	assert_int_equal(from_text(text, setting, out, sizeof(out)), 0);
	assert_string_equal(out, path);
}

static void test_environment(void **unused)
{
	char out[8] = "";

	(void)unused;
	assert_path("PATH=\"/usr/bin:/bin\"\n", NULL, "/usr/bin:/bin");
	assert_path("LANG=C\nexport PATH='/a b:/c'\n", NULL, "/a b:/c");
	assert_path("  PATH=/bin # all\nPATH=/sbin", NULL, "/bin");
	assert_int_equal(from_text("#PATH=/bin\nMYPATH=/x\nPATHS=/y\nPATH=\n", NULL, out, sizeof(out)), -ENOENT);
	assert_int_equal(from_text("PATH=/much/too/long\n", NULL, out, sizeof(out)), -ENAMETOOLONG);
}

static void test_login_defs(void **unused)
{
	char out[8] = "";

	(void)unused;
	assert_path("ENV_SUPATH\tPATH=/sbin:/bin\nENV_PATH\tPATH=/usr/bin:/bin\n", "ENV_PATH", "/usr/bin:/bin");
	assert_path("ENV_PATH /bin\n", "ENV_PATH", "/bin");
	assert_int_equal(from_text("# ENV_PATH PATH=/bin\nENV_PATHS PATH=/x\n", "ENV_PATH", out, sizeof(out)), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_login_defs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

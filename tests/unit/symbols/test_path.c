// SPDX-License-Identifier: Apache-2.0
/* The importable part of source paths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "symbols/pysym.h"

/* A root that holds nothing: no directory is a package there. */
#define NO_ROOT "/nonexistent-root-of-pybpf"

static void assert_short_in(const char *root, const char *path, const char *want)
{
	const char *got = pysym_short_path(path, root);

	if (strcmp(got, want) != 0)
		print_error("%s\n", path);
	assert_string_equal(got, want);
	/* A pointer into path: nobody frees it. */
	assert_true(got >= path && got <= path + strlen(path));
}

static void assert_short(const char *path, const char *want)
{
	assert_short_in(NO_ROOT, path, want);
}

static void test_site_packages(void **unused)
{
	(void)unused;
	assert_short("/usr/lib/python3.11/site-packages/requests/api.py", "requests/api.py");
	assert_short("/usr/lib/python3/dist-packages/apt/cache.py", "apt/cache.py");
	assert_short("/usr/local/lib/python3.8/dist-packages/six.py", "six.py");
	assert_short("/home/me/.local/lib/python2.7/site-packages/a/b/c/d.py", "a/b/c/d.py");
	assert_short("/venv/lib64/python3.13t/site-packages/x.py", "x.py");
	/* The last of them counts: it is what is on sys.path. */
	assert_short("/srv/site-packages/app/vendor/site-packages/lib/m.py", "lib/m.py");
	assert_short("/opt/app/lib/python3.9/site-packages/pkg/dist-packages/m.py", "m.py");
}

static void test_standard_library(void **unused)
{
	(void)unused;
	assert_short("/usr/lib/python3.11/threading.py", "threading.py");
	assert_short("/usr/lib/python2.7/json/decoder.py", "json/decoder.py");
	assert_short("/home/me/.pyenv/versions/3.13.0/lib/python3.13/asyncio/events.py", "asyncio/events.py");
	assert_short("/opt/py/lib/python3.14t/asyncio/events.py", "asyncio/events.py");
	assert_short("/usr/lib64/python3.6/os.py", "os.py");
}

static void test_archives(void **unused)
{
	(void)unused;
	assert_short("/usr/lib/python311.zip/json/decoder.py", "json/decoder.py");
	assert_short("/srv/app.pyz/app/__main__.py", "app/__main__.py");
	assert_short("/srv/a-1.0-py3.6.egg/a/b.py", "a/b.py");
	assert_short("/srv/a-1.0-py3-none-any.whl/a/b.py", "a/b.py");
	assert_short("/usr/lib/python3/site-packages/a-1.0.egg/a/b.py", "a/b.py");
	/* No name before the suffix, or the suffix inside the name: no archive. */
	assert_short("/srv/.zip/b.py", "b.py");
	assert_short("/srv/x.zipped/a/b.py", "b.py");
	assert_short("/srv/app.pyz", "app.pyz");
	assert_short("/srv/app.zip", "app.zip");
}

/* Names that only look alike. */
static void test_look_alikes(void **unused)
{
	(void)unused;
	assert_short("/srv/site-packages-old/a/b.py", "b.py");
	assert_short("/srv/my-site-packages/a/b.py", "b.py");
	assert_short("/srv/pythonic/a/b.py", "b.py");
	assert_short("/srv/python/a/b.py", "b.py");
	assert_short("/srv/python3.11-build/a/b.py", "b.py");
	assert_short("/srv/site-packages", "site-packages");
	assert_short("/srv/python3.11", "python3.11");
}

static void test_no_paths(void **unused)
{
	(void)unused;
	assert_short("", "");
	assert_short("<string>", "<string>");
	assert_short("<frozen importlib._bootstrap>", "<frozen importlib._bootstrap>");
	assert_short("<stdin>", "<stdin>");
	assert_short("m.py", "m.py");
	assert_short("a/b/m.py", "a/b/m.py");
	assert_short("./m.py", "m.py");
	assert_short("./a/m.py", "a/m.py");
	assert_short("../m.py", "../m.py");
	assert_short("./", "./");
	assert_short(".", ".");
	assert_short("lib/python3.11/os.py", "lib/python3.11/os.py");
}

static void test_odd_paths(void **unused)
{
	(void)unused;
	assert_short("/", "/");
	assert_short("/m.py", "m.py");
	assert_short("//m.py", "m.py");
	/* Nothing follows: the whole is better than nothing. */
	assert_short("/srv/app/", "/srv/app/");
	assert_short("/usr/lib/python3.11/", "/usr/lib/python3.11/");
	assert_short("/srv/na\xc3\xafve/caf\xc3\xa9.py", "caf\xc3\xa9.py");
	assert_short("/srv/a;b\n/c d.py", "c d.py");
	assert_short("/srv/\xff\xfe/m.py", "m.py");
}

static void test_long_paths(void **unused)
{
	static const size_t sizes[] = {4000, 4070, 4080, 4084, 4095, 4096, 5000, 65536};

	(void)unused;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		char *path = malloc(sizes[i] + 16);

		assert_non_null(path);
		for (size_t n = 0; n < sizes[i]; n++)
			path[n] = n % 2 ? 'd' : '/';
		strcpy(path + sizes[i], "/m.py");
		assert_short(path, "m.py");
		assert_short_in("", path, "m.py");
		/* One name as long as that. */
		memset(path + 1, 'd', sizes[i] - 1);
		assert_short(path, "m.py");
		memcpy(path, "/lib/python3.9/", 15);
		assert_short(path, path + 15);
		memset(path, '/', sizes[i]);
		assert_short(path, "m.py");
		free(path);
	}
}

/* Packages, found by their __init__.py below the target's root. */

static char root[256];

static void make_at(const char *name)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	if (path[strlen(path) - 1] == '/') {
		assert_int_equal(mkdir(path, 0755), 0);
		return;
	}
	f = fopen(path, "w");
	assert_non_null(f);
	fclose(f);
}

static const char *const tree[] = {
	"srv/",
	"srv/app/",
	"srv/app/pkg/",
	"srv/app/pkg/__init__.py",
	"srv/app/pkg/sub/",
	"srv/app/pkg/sub/__init__.py",
	"srv/app/pkg/plain/",
	"srv/app/tool",
	"top/",
	"top/__init__.py",
	"top/inner/",
	"top/inner/__init__.py",
};

static int make_tree(void **unused)
{
	const char *base = getenv("TMPDIR");

	(void)unused;
	snprintf(root, sizeof(root), "%s/pybpf-path-XXXXXX", base ? base : "/tmp");
	if (!mkdtemp(root))
		return -1;
	for (size_t i = 0; i < sizeof(tree) / sizeof(*tree); i++)
		make_at(tree[i]);
	return 0;
}

static int remove_tree(void **unused)
{
	char path[512];

	(void)unused;
	for (size_t i = sizeof(tree) / sizeof(*tree); i-- > 0;) {
		snprintf(path, sizeof(path), "%s/%s", root, tree[i]);
		if (remove(path))
			return -1;
	}
	return rmdir(root);
}

static void test_packages(void **unused)
{
	(void)unused;
	assert_short_in(root, "/srv/app/main.py", "main.py");
	assert_short_in(root, "/srv/app/pkg/mod.py", "pkg/mod.py");
	assert_short_in(root, "/srv/app/pkg/__init__.py", "pkg/__init__.py");
	assert_short_in(root, "/srv/app/pkg/sub/mod.py", "pkg/sub/mod.py");
	/* A directory that is no package ends it. */
	assert_short_in(root, "/srv/app/pkg/plain/mod.py", "mod.py");
	/* Packages up to the root itself. */
	assert_short_in(root, "/top/mod.py", "top/mod.py");
	assert_short_in(root, "/top/inner/mod.py", "top/inner/mod.py");
	/* The file itself need not exist. */
	assert_short_in(root, "/top/inner/gone.py", "top/inner/gone.py");
	/* Elsewhere there are no such packages. */
	assert_short("/srv/app/pkg/mod.py", "mod.py");
}

static void test_archives_of_any_name(void **unused)
{
	(void)unused;
	assert_short_in(root, "/srv/app/tool/__main__.py", "__main__.py");
	assert_short_in(root, "/srv/app/tool/pkg/__init__.py", "pkg/__init__.py");
	assert_short_in(root, "/srv/app/tool/pkg/sub/mod.py", "pkg/sub/mod.py");
	assert_short_in(root, "/srv/app/tool/", "/srv/app/tool/");
	/* The file is in a folder, or nobody knows what was there. */
	assert_short_in(root, "/srv/app/tool", "tool");
	assert_short_in(root, "/srv/app/gone/pkg/mod.py", "mod.py");
	assert_short("/srv/app/tool/pkg/mod.py", "mod.py");
}

static void test_packages_of_this_root(void **unused)
{
	char path[512];

	(void)unused;
	snprintf(path, sizeof(path), "%s/srv/app/pkg/sub/mod.py", root);
	assert_short_in("", path, "pkg/sub/mod.py");
}

static void test_whose_code_it_is(void **unused)
{
	static const struct {
		const char *path;
		enum profile_origin origin;
	} files[] = {
		{"/usr/lib/python3.11/threading.py", PROFILE_STDLIB},
		{"/opt/py/lib64/python3.14t/asyncio/events.py", PROFILE_STDLIB},
		{"/app/python311.zip/json/decoder.py", PROFILE_STDLIB},
		{"<frozen importlib._bootstrap>", PROFILE_STDLIB},
		{"/usr/lib/python3.11/site-packages/requests/api.py", PROFILE_THIRD_PARTY},
		{"/usr/lib/python3/dist-packages/six.py", PROFILE_THIRD_PARTY},
		{"/srv/eggs/x-1.0.egg/x.py", PROFILE_THIRD_PARTY},
		{"/srv/app/views.py", PROFILE_OWN},
		{"/srv/app.pyz/views.py", PROFILE_OWN},
		{"/srv/lib/python/views.py", PROFILE_OWN},
		{"views.py", PROFILE_OWN},
		{"<string>", PROFILE_OWN},
		{"", PROFILE_OWN},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (pysym_origin(files[i].path) != files[i].origin)
			fail_msg("%s", files[i].path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_site_packages),
		cmocka_unit_test(test_standard_library),
		cmocka_unit_test(test_archives),
		cmocka_unit_test(test_whose_code_it_is),
		cmocka_unit_test(test_look_alikes),
		cmocka_unit_test(test_no_paths),
		cmocka_unit_test(test_odd_paths),
		cmocka_unit_test(test_long_paths),
		cmocka_unit_test_setup_teardown(test_packages, make_tree, remove_tree),
		cmocka_unit_test_setup_teardown(test_archives_of_any_name, make_tree, remove_tree),
		cmocka_unit_test_setup_teardown(test_packages_of_this_root, make_tree, remove_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

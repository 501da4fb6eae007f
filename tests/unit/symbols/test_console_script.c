// SPDX-License-Identifier: Apache-2.0
/* Programs that installers make, and those that look like them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "symbols/console_script.h"

static char root_path[256];
static int root;

/* Folders end in a slash; a link has its target after a space; any other file may have its size there. */
static const char *const tree[] = {
	"venv/",
	"venv/pyvenv.cfg",
	"venv/bin/",
	"venv/bin/gunicorn 220",
	"venv/bin/ansible-like 90000",
	"venv/bin/serve.py 220",
	"venv/bin/folder/",
	"venv/bin/folder/deeper 220",
	"venv/sbin/",
	"venv/sbin/gunicorn 220",
	"prefix/",
	"prefix/bin/",
	"prefix/bin/python3 100",
	"prefix/bin/flask 1000",
	"srv/",
	"srv/bin/",
	"srv/bin/serve 220",
	"usr/",
	"usr/local/",
	"usr/local/bin/",
	"usr/local/bin/celery 220",
	"home/",
	"home/.local/",
	"home/.local/bin/",
	"home/.local/bin/black >/venv/bin/gunicorn",
	"home/.local/bin/gone >/venv/bin/gone",
};

static void make_at(const char *entry)
{
	const char *space = strchr(entry, ' ');
	size_t length = space ? (size_t)(space - entry) : strlen(entry);
	char path[512];

	snprintf(path, sizeof(path), "%s/%.*s", root_path, (int)length, entry);
	if (path[strlen(path) - 1] == '/') {
		assert_int_equal(mkdir(path, 0755), 0);
	} else if (space && space[1] == '>') {
		assert_int_equal(symlink(space + 2, path), 0);
	} else {
		int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0755);

		assert_true(fd >= 0);
		assert_int_equal(ftruncate(fd, space ? strtol(space, NULL, 10) : 0), 0);
		close(fd);
	}
}

static int make_tree(void **unused)
{
	const char *base = getenv("TMPDIR");

	(void)unused;
	snprintf(root_path, sizeof(root_path), "%s/pybpf-bin-XXXXXX", base ? base : "/tmp");
	if (!mkdtemp(root_path))
		return -1;
	for (size_t i = 0; i < sizeof(tree) / sizeof(*tree); i++)
		make_at(tree[i]);
	root = open(root_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return root < 0;
}

static int remove_tree(void **unused)
{
	char path[512];

	(void)unused;
	close(root);
	for (size_t i = sizeof(tree) / sizeof(*tree); i-- > 0;) {
		snprintf(path, sizeof(path), "%s/%.*s", root_path, (int)strcspn(tree[i], " "), tree[i]);
		if (remove(path))
			return -1;
	}
	return rmdir(root_path);
}

static void test_installed_programs(void **unused)
{
	static const char *const paths[] = {
		"/venv/bin/gunicorn",
		"/prefix/bin/flask",
		"/usr/local/bin/celery",
		"/home/.local/bin/black",
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		if (!console_script_may_be(paths[i]) || !console_script_is(root, paths[i]))
			fail_msg("%s", paths[i]);
	}
}

static void test_other_programs(void **unused)
{
	static const char *const paths[] = {
		"/srv/bin/serve",          /* no environment's */
		"/venv/bin/ansible-like",  /* more than a call */
		"/venv/bin/serve.py",      /* no entry point is called so */
		"/venv/bin/folder",        /* no file */
		"/venv/bin/folder/deeper", /* not in the folder itself */
		"/venv/sbin/gunicorn",     /* another folder */
		"/venv/bin/absent",        /* nothing is there */
		"/home/.local/bin/gone",   /* a link that leads nowhere below this root */
		"venv/bin/gunicorn",       /* not known below which folder */
		"/venv/bin/",              /* no name */
		"/bin",                    /* no folder */
		"<frozen /venv/bin/x>",
		"", /* no path */
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		if (console_script_is(root, paths[i]))
			fail_msg("%s", paths[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_installed_programs),
		cmocka_unit_test(test_other_programs),
	};

	return cmocka_run_group_tests(tests, make_tree, remove_tree);
}

// SPDX-License-Identifier: Apache-2.0
/* The place for what the disk has no room for: another disk. */
#include "cli/spare.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/error.h"

static char folder[] = "/tmp/pybpf-spare-XXXXXX";

static int make_folder(void **unused)
{
	(void)unused;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **unused)
{
	(void)unused;
	return rmdir(folder);
}

/* The folder is on the file's own disk, whose quota may be used up while it has room. */
static void test_not_on_the_same_disk(void **unused)
{
	struct output_file file;
	static struct cli_spare spare;
	struct error error;
	char path[sizeof(folder) + 16];

	(void)unused;
	snprintf(path, sizeof(path), "%s/x.folded", folder);
	assert_int_equal(setenv("TMPDIR", folder, 1), 0);
	error_clear(&error);
	assert_int_equal(output_file_open(&file, path, &error), 0);
	cli_spare_open(&spare, &file, path);
	if (spare.file.stream) {
		assert_int_not_equal(spare.file.folder_status.st_dev, file.folder_status.st_dev);
		assert_true(strncmp(spare.path, folder, strlen(folder)) != 0);
		output_file_discard(&spare.file);
	}
	output_file_discard(&file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_not_on_the_same_disk),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

// SPDX-License-Identifier: Apache-2.0
/* This machine's users and groups, as its own C library knows them from the same files. */
#include <grp.h>
#include <pwd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/users.h"

#define GROUPS_MOST 1024
/* No account has it. */
#define STRANGER 3141592

/* Calls check for each account of the file, with copies of its name and numbers. */
static void each_account(void (*check)(const char *name, uid_t uid, gid_t gid))
{
	FILE *file = fopen("/etc/passwd", "re");
	const struct passwd *user;
	size_t count = 0;

	assert_non_null(file);
	while ((user = fgetpwent(file))) {
		char *name = strdup(user->pw_name);

		assert_non_null(name);
		check(name, user->pw_uid, user->pw_gid);
		free(name);
		count++;
	}
	fclose(file);
	assert_true(count > 1);
}

static void check_found(const char *name, uid_t uid, gid_t gid)
{
	const struct passwd *found = users_find_name(name);

	assert_non_null(found);
	assert_string_equal(found->pw_name, name);
	assert_int_equal(found->pw_uid, uid);
	assert_int_equal(found->pw_gid, gid);
	/* Of several that share a number, the first one. */
	found = users_find_uid(uid);
	assert_non_null(found);
	assert_int_equal(found->pw_uid, uid);
	assert_string_equal(found->pw_name, getpwuid(uid)->pw_name);
}

static void test_accounts(void **unused)
{
	(void)unused;
	each_account(check_found);
	assert_null(users_find_name("no such user"));
	assert_null(users_find_name(""));
	assert_null(users_find_uid(STRANGER));
}

static void check_groups(const char *name, uid_t uid, gid_t gid)
{
	gid_t expected[GROUPS_MOST], *groups;
	int wanted = GROUPS_MOST;
	size_t count;

	(void)uid;
	assert_true(getgrouplist(name, gid, expected, &wanted) >= 0);
	assert_int_equal(users_list_groups(name, gid, &groups, &count), 0);
	assert_int_equal(count, wanted);
	assert_memory_equal(groups, expected, count * sizeof(*groups));
	free(groups);
}

static void test_groups(void **unused)
{
	gid_t *groups;
	size_t count;

	(void)unused;
	each_account(check_groups);
	assert_int_equal(users_list_groups("no such user", STRANGER, &groups, &count), 0);
	assert_int_equal(count, 1);
	assert_int_equal(groups[0], STRANGER);
	free(groups);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_accounts),
		cmocka_unit_test(test_groups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

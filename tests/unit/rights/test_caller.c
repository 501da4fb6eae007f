// SPDX-License-Identifier: Apache-2.0
/* Who called sudo, and a child that becomes this user. */
#include <errno.h>
#include <grp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "rights/caller.h"

/* No account has them. */
#define STRANGER       3141592
#define STRANGER_GROUP 2718281

static void set_sudo(const char *uid, const char *gid)
{
	assert_int_equal(uid ? setenv("SUDO_UID", uid, 1) : unsetenv("SUDO_UID"), 0);
	assert_int_equal(gid ? setenv("SUDO_GID", gid, 1) : unsetenv("SUDO_GID"), 0);
}

static int forget_sudo(void **unused)
{
	(void)unused;
	set_sudo(NULL, NULL);
	return 0;
}

static void need_root(void)
{
	if (getuid()) {
		print_message("not root here\n");
		skip();
	}
}

static void test_without_sudo(void **unused)
{
	struct caller caller;

	(void)unused;
	set_sudo(NULL, NULL);
	caller_find(&caller);
	assert_int_equal(caller.uid, getuid());
	assert_int_equal(caller.gid, getgid());
	assert_true(caller_trusts(&caller, 0));
	assert_true(caller_trusts(&caller, getuid()));
	assert_false(caller_trusts(&caller, STRANGER));
}

static void test_numbers_that_are_none(void **unused)
{
	static const char *const bad[] = {"",
					  "-1",
					  "+7",
					  " 7",
					  "7 ",
					  "7x",
					  "0x7",
					  "4294967295",
					  "4294967303",
					  "99999999999999999999999999",
					  "18446744073709551623"};
	struct caller caller;

	(void)unused;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		set_sudo(bad[i], "7");
		caller_find(&caller);
		assert_int_equal(caller.uid, getuid());
		set_sudo("7", bad[i]);
		caller_find(&caller);
		assert_int_equal(caller.uid, getuid());
	}
	set_sudo("7", NULL);
	caller_find(&caller);
	assert_int_equal(caller.uid, getuid());
	/* Root called sudo: with whatever group, it stays root. */
	set_sudo("0", "7");
	caller_find(&caller);
	assert_int_equal(caller.uid, getuid());
	assert_int_equal(caller.gid, getgid());
}

static void test_sudo(void **unused)
{
	struct caller caller;

	(void)unused;
	need_root();
	set_sudo("3141592", "2718281");
	caller_find(&caller);
	assert_int_equal(caller.uid, STRANGER);
	assert_int_equal(caller.gid, STRANGER_GROUP);
	assert_true(caller_trusts(&caller, STRANGER));
	assert_true(caller_trusts(&caller, 0));
	assert_false(caller_trusts(&caller, STRANGER + 1));
}

/* Runs it in a child, whose exit code must be 0. */
static void in_child(int (*check)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(check());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static bool variable_is(const char *name, const char *want)
{
	const char *value = getenv(name);

	return value && want && strcmp(value, want) == 0;
}

static int become_stranger(void)
{
	struct caller caller;
	gid_t groups[2] = {0};
	uid_t r, e, s;

	caller_find(&caller);
	if (caller_look_up(&caller) || caller_become(&caller))
		return 1;
	if (getresuid(&r, &e, &s) || r != STRANGER || e != STRANGER || s != STRANGER)
		return 2;
	if (getgid() != STRANGER_GROUP || getegid() != STRANGER_GROUP)
		return 3;
	if (getgroups(2, groups) != 1 || groups[0] != STRANGER_GROUP)
		return 4;
	if (setuid(0) == 0 || setgid(0) == 0 || setgroups(0, NULL) == 0)
		return 5;
	if (!variable_is("HOME", "/") || getenv("USER") || getenv("LOGNAME"))
		return 6;
	caller_free(&caller);
	caller_free(&caller);
	return 0;
}

static void test_become_a_user_without_account(void **unused)
{
	(void)unused;
	need_root();
	set_sudo("3141592", "2718281");
	assert_int_equal(setenv("USER", "root", 1), 0);
	in_child(become_stranger);
	assert_int_equal(getuid(), 0);
}

/* Debian's daemon (1) has the group 1, and the account says so whatever SUDO_GID says. */
static int become_daemon(void)
{
	struct caller caller;
	gid_t groups[64];
	int n;

	caller_find(&caller);
	if (caller_look_up(&caller) || caller_become(&caller))
		return 1;
	if (getuid() != 1 || getgid() == 0 || !variable_is("USER", caller.name) || !variable_is("HOME", caller.home))
		return 2;
	n = getgroups(64, groups);
	for (int i = 0; i < n; i++) {
		if (groups[i] == 0 || groups[i] == STRANGER_GROUP)
			return 3;
	}
	caller_free(&caller);
	return n > 0 ? 0 : 4;
}

static void test_become_a_user_with_an_account(void **unused)
{
	(void)unused;
	need_root();
	set_sudo("1", "2718281");
	in_child(become_daemon);
	set_sudo("1", "0");
	in_child(become_daemon);
}

/* Without rights to become another, it says so and does not go on as root. */
static int become_without_rights(void)
{
	struct caller stranger;

	caller_find(&stranger);
	if (caller_look_up(&stranger) || setgroups(0, NULL) || setresuid(STRANGER + 1, STRANGER + 1, STRANGER + 1))
		return 1;
	return caller_become(&stranger) == -EPERM ? 0 : 2;
}

/* A program with more rights than its user has, whose variables anybody can set. */
static int find_with_somebodys_variables(void)
{
	struct caller caller;

	if (setgroups(0, NULL) || setresgid(STRANGER_GROUP, STRANGER_GROUP, STRANGER_GROUP) ||
	    setresuid(STRANGER + 1, STRANGER + 1, 0))
		return 1;
	caller_find(&caller);
	if (caller.uid != STRANGER + 1 || caller.gid != STRANGER_GROUP)
		return 2;
	if (setresuid(STRANGER + 1, 0, 0))
		return 3;
	caller_find(&caller);
	return caller.uid == STRANGER + 1 && caller.gid == STRANGER_GROUP ? 0 : 4;
}

static void test_variables_of_another_than_sudo(void **unused)
{
	(void)unused;
	need_root();
	set_sudo("3141592", "7");
	in_child(find_with_somebodys_variables);
}

static void test_rights_are_missing(void **unused)
{
	(void)unused;
	need_root();
	set_sudo("3141592", "2718281");
	in_child(become_without_rights);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_without_sudo, forget_sudo),
		cmocka_unit_test_teardown(test_numbers_that_are_none, forget_sudo),
		cmocka_unit_test_teardown(test_sudo, forget_sudo),
		cmocka_unit_test_teardown(test_variables_of_another_than_sudo, forget_sudo),
		cmocka_unit_test_teardown(test_become_a_user_without_account, forget_sudo),
		cmocka_unit_test_teardown(test_become_a_user_with_an_account, forget_sudo),
		cmocka_unit_test_teardown(test_rights_are_missing, forget_sudo),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

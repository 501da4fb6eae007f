// SPDX-License-Identifier: Apache-2.0
/* Finds the user who asked for this run, and takes over that user's identity in a child. */
#include "rights/caller.h"

#include <errno.h>
#include <grp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/users.h"

/*
 * Reads a user's or group's number from the environment. Returns false when it is missing, not a number, or the largest
 * number, which means "none" to the kernel.
 */
static bool read_number(const char *variable, uint32_t *number)
{
	const char *text = getenv(variable);
	uint64_t n = 0;

	if (!text || !*text)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return false;
		n = n * 10 + (uint64_t)(*text - '0');
		if (n >= UINT32_MAX)
			return false;
	}
	*number = (uint32_t)n;
	return true;
}

void caller_find(struct caller *caller)
{
	uint32_t uid, gid;

	*caller = (struct caller){.uid = getuid(), .gid = getgid()};
	if (getuid() || geteuid() || !read_number("SUDO_UID", &uid) || !read_number("SUDO_GID", &gid) || !uid)
		return;
	caller->uid = uid;
	caller->gid = gid;
}

bool caller_trusts(const struct caller *caller, uid_t owner)
{
	return owner == 0 || owner == geteuid() || owner == caller->uid;
}

static bool has_group(const struct caller *caller, gid_t gid)
{
	for (size_t i = 0; i < caller->group_count; i++) {
		if (caller->groups[i] == gid)
			return true;
	}
	return false;
}

int caller_look_up(struct caller *caller)
{
	const struct passwd *account = users_find_uid(caller->uid);
	int err = 0;

	if (account) {
		caller->name = strdup(account->pw_name);
		caller->shell = strdup(account->pw_shell);
		err = users_list_groups(account->pw_name, account->pw_gid, &caller->groups, &caller->group_count);
		if (!err && !has_group(caller, caller->gid))
			caller->gid = account->pw_gid;
	} else {
		caller->groups = malloc(sizeof(*caller->groups));
		if (caller->groups) {
			caller->groups[0] = caller->gid;
			caller->group_count = 1;
		}
	}
	caller->home = strdup(account ? account->pw_dir : "/");
	if (!err && caller->home && caller->groups && (!account || (caller->name && caller->shell)))
		return 0;
	caller_free(caller);
	return -ENOMEM;
}

static int set_variable(const char *name, const char *value)
{
	return value ? setenv(name, value, 1) : unsetenv(name);
}

int caller_become(const struct caller *caller)
{
	uid_t real, effective, saved;
	gid_t real_group, effective_group, saved_group;

	if (caller->uid == getuid() && caller->uid == geteuid())
		return 0;
	if (setgroups(caller->group_count, caller->groups) || setresgid(caller->gid, caller->gid, caller->gid) ||
	    setresuid(caller->uid, caller->uid, caller->uid))
		return -errno;
	if (getresuid(&real, &effective, &saved) || getresgid(&real_group, &effective_group, &saved_group))
		return -errno;
	if (real != caller->uid || effective != caller->uid || saved != caller->uid || real_group != caller->gid ||
	    effective_group != caller->gid || saved_group != caller->gid)
		return -EPERM;
	if (set_variable("HOME", caller->home) || set_variable("USER", caller->name) ||
	    set_variable("LOGNAME", caller->name) || set_variable("SHELL", caller->shell))
		return -errno;
	return 0;
}

void caller_free(struct caller *caller)
{
	free(caller->name);
	free(caller->home);
	free(caller->shell);
	free(caller->groups);
	caller->name = caller->home = caller->shell = NULL;
	caller->groups = NULL;
	caller->group_count = 0;
}

// SPDX-License-Identifier: Apache-2.0
/* Reads /etc/passwd and /etc/group. */
#include "base/users.h"

#include <errno.h>
#include <grp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"

/* Returns whether the line is an account: one that begins with + or - speaks of NIS, and has 0 for a number. */
static bool is_entry(const char *name)
{
	return name[0] != '+' && name[0] != '-';
}

/* name NULL: finds by uid. */
static const struct passwd *find(const char *name, uid_t uid)
{
	FILE *file = fopen("/etc/passwd", "re");
	const struct passwd *user = NULL;

	if (!file)
		return NULL;
	while ((user = fgetpwent(file))) {
		if (is_entry(user->pw_name) && (name ? !strcmp(user->pw_name, name) : user->pw_uid == uid))
			break;
	}
	fclose(file);
	return user;
}

const struct passwd *users_find_name(const char *name)
{
	const struct passwd *user = find(name, 0);

	return user || !users_nss_find_name ? user : users_nss_find_name(name);
}

const struct passwd *users_find_uid(uid_t uid)
{
	const struct passwd *user = find(NULL, uid);

	return user || !users_nss_find_uid ? user : users_nss_find_uid(uid);
}

static bool has_member(const struct group *group, const char *name)
{
	for (char *const *member = group->gr_mem; *member; member++) {
		if (!strcmp(*member, name))
			return true;
	}
	return false;
}

static int add_group(gid_t gid, gid_t **groups, size_t *room, size_t *count)
{
	for (size_t i = 0; i < *count; i++) {
		if ((*groups)[i] == gid)
			return 0;
	}
	if (array_reserve(groups, room, *count + 1, sizeof(**groups)))
		return -ENOMEM;
	(*groups)[(*count)++] = gid;
	return 0;
}

int users_list_groups(const char *name, gid_t first, gid_t **groups, size_t *count)
{
	const struct group *group;
	size_t room = 0;
	FILE *file;
	int err;

	if (users_nss_list_groups)
		return users_nss_list_groups(name, first, groups, count);
	*groups = NULL;
	*count = 0;
	err = add_group(first, groups, &room, count);
	file = fopen("/etc/group", "re");
	while (file && !err && *count < USERS_GROUPS_MOST && (group = fgetgrent(file))) {
		if (is_entry(group->gr_name) && has_member(group, name))
			err = add_group(group->gr_gid, groups, &room, count);
	}
	if (file)
		fclose(file);
	return err;
}

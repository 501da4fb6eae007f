// SPDX-License-Identifier: Apache-2.0
/* For the program that is linked dynamically: accounts that the host has from elsewhere, as a directory (LDAP, sssd).
 */
#include <errno.h>
#include <grp.h>

#include "base/array.h"
#include "base/users.h"

const struct passwd *users_nss_find_name(const char *name)
{
	return getpwnam(name);
}

const struct passwd *users_nss_find_uid(uid_t uid)
{
	return getpwuid(uid);
}

int users_nss_list_groups(const char *name, gid_t first, gid_t **groups, size_t *count)
{
	size_t room = 0;
	int most = 16;

	*groups = NULL;
	while (most <= USERS_GROUPS_MOST) {
		int asked = most;

		if (array_reserve(groups, &room, (size_t)most, sizeof(**groups)))
			return -ENOMEM;
		if (getgrouplist(name, first, *groups, &most) >= 0) {
			*count = (size_t)most;
			return 0;
		}
		/* glibc says how many there are, musl does not. */
		most = most > asked ? most : 2 * asked;
	}
	(*groups)[0] = first;
	*count = 1;
	return 0;
}

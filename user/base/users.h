// SPDX-License-Identifier: Apache-2.0
/*
 * Users and groups as /etc/passwd and /etc/group list them. The C library's own look-up (NSS) would load libraries of
 * the host, which a static binary must not, and ask daemons. Users of a directory (LDAP) are known by number only.
 */
#ifndef BASE_USERS_H
#define BASE_USERS_H

#include <pwd.h>
#include <stddef.h>
#include <sys/types.h>

/* Return the account, valid until the next call, or NULL where the file has none or cannot be read. */
const struct passwd *users_find_name(const char *name);
const struct passwd *users_find_uid(uid_t uid);

/*
 * Lists the groups of which the user is a member, behind `first`, which is not listed twice. The caller frees *groups.
 * Returns 0 or -ENOMEM.
 */
int users_list_groups(const char *name, gid_t first, gid_t **groups, size_t *count);

#endif

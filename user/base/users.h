// SPDX-License-Identifier: Apache-2.0
/*
 * Users and groups as /etc/passwd and /etc/group list them, and then as the C library's own look-up (NSS) knows them:
 * users of a directory (LDAP, sssd). That loads libraries of the host, so that a static binary must do without it.
 */
#ifndef BASE_USERS_H
#define BASE_USERS_H

#include <pwd.h>
#include <stddef.h>
#include <sys/types.h>

/* Most groups that are listed: Linux's NGROUPS_MAX. An account has more only by mistake. */
#define USERS_GROUPS_MOST 65536

/* Return the account, valid until the next call, or NULL where there is none. */
const struct passwd *users_find_name(const char *name);
const struct passwd *users_find_uid(uid_t uid);

/*
 * Lists the groups of which the user is a member, behind `first`, which is not listed twice. The caller frees *groups.
 * Returns 0 or -ENOMEM.
 */
int users_list_groups(const char *name, gid_t first, gid_t **groups, size_t *count);

/* The same by NSS. The static binary is linked without users_nss.c: these are NULL there. */
__attribute__((weak)) const struct passwd *users_nss_find_name(const char *name);
__attribute__((weak)) const struct passwd *users_nss_find_uid(uid_t uid);
__attribute__((weak)) int users_nss_list_groups(const char *name, gid_t first, gid_t **groups, size_t *count);

#endif

// SPDX-License-Identifier: Apache-2.0
/* The user who asked for this run: the one who called sudo, or the one that pybpf runs as. */
#ifndef RIGHTS_CALLER_H
#define RIGHTS_CALLER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct caller {
	uid_t uid;
	gid_t gid;
	char *name, *home, *shell; /* NULL until caller_look_up(), and where there is no account */
	gid_t *groups;             /* NULL until caller_look_up() */
	size_t group_count;
};

/*
 * Fills uid and gid. sudo's SUDO_UID and SUDO_GID count only if pybpf's real user is root (a program that is setuid
 * root has its caller's environment), both are numbers of a user and a group, and the user is not root.
 */
void caller_find(struct caller *caller);

/* Returns whether owner is root, the user that pybpf runs as, or the caller. Links of other owners are not followed. */
bool caller_trusts(const struct caller *caller, uid_t owner);

/*
 * Fills the other fields from the account of uid, which may be any user's: groups, with gid among them, and home, which
 * is "/" without an account. A gid that the account does not have becomes its first group. Returns 0 or -ENOMEM.
 */
int caller_look_up(struct caller *caller);

/*
 * In a child, before it executes a program: takes the user, group and groups of a caller that was looked up, and puts
 * HOME, USER, LOGNAME and SHELL into the environment. Without effect where pybpf is that user already. It needs
 * CAP_SETUID and CAP_SETGID, and cannot be undone; capabilities end with it (capabilities(7): no user ID is 0 any
 * more), except for a caller who is root. Returns 0 or negative errno, after which the child must end.
 */
int caller_become(const struct caller *caller);

/* May be called twice, and on a zeroed struct. */
void caller_free(struct caller *caller);

#endif

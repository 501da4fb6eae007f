// SPDX-License-Identifier: Apache-2.0
/* PATH as a user who logs in has it, before a shell's own files. */
#ifndef RIGHTS_LOGIN_PATH_H
#define RIGHTS_LOGIN_PATH_H

#include <stddef.h>
#include <stdio.h>

/*
 * That of /etc/environment (pam_env), else of ENV_PATH in /etc/login.defs (login, su), else what both have where they
 * say nothing.
 */
void login_path(char *out, size_t size);

/*
 * The value of PATH in lines of /etc/environment, or, with a setting ("ENV_PATH"), of /etc/login.defs. Returns 0,
 * -ENOENT when no line sets it, -ENAMETOOLONG when it does not fit into size.
 */
int login_path_read(FILE *in, const char *setting, char *out, size_t size);

#endif

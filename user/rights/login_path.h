// SPDX-License-Identifier: Apache-2.0
/* PATH of a user who logs in, before a shell's own files change it. */
#ifndef RIGHTS_LOGIN_PATH_H
#define RIGHTS_LOGIN_PATH_H

#include <stddef.h>
#include <stdio.h>

/*
 * Writes PATH to out: that of /etc/environment (pam_env), else of ENV_PATH in /etc/login.defs (login, su), else the
 * default of both.
 */
void login_path(char *out, size_t size);

/*
 * Reads the value of PATH from lines of /etc/environment, or, with a setting ("ENV_PATH"), of /etc/login.defs. Returns
 * 0, -ENOENT when no line sets it, -ENAMETOOLONG when it does not fit into size bytes.
 */
int login_path_read(FILE *in, const char *setting, char *out, size_t size);

#endif

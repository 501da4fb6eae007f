// SPDX-License-Identifier: Apache-2.0
/* Files with tokens, keys and the like: whether nobody else could have read or chosen them. */
#ifndef RIGHTS_SECRET_FILE_H
#define RIGHTS_SECRET_FILE_H

#include <stdbool.h>

#include "base/error.h"

/*
 * Checks an open file before it is read: it has to be a regular one and, if it is a secret, belong to root, the user
 * that pybpf runs as, or the caller, with no rights for others. what: "token", for messages such as "PATH, the file
 * with the token, is not a file". Returns 0, or negative errno with a sentence in *error.
 */
int secret_file_check(int fd, const char *what, const char *path, bool is_secret, struct error *error);

#endif

// SPDX-License-Identifier: Apache-2.0
/* Files with tokens, keys and the like: whether nobody else could have read or chosen them. */
#ifndef RIGHTS_SECRET_FILE_H
#define RIGHTS_SECRET_FILE_H

#include <stdbool.h>

#include "base/error.h"

/*
 * Reads a text, and nothing if path is NULL. The file has to be a regular one and, if it is a secret, belong to root,
 * the user that pybpf runs as, or the caller, with no rights for others. what: "token", for messages such as "PATH, the
 * file with the token, is not a file". Returns 0, or negative errno with a sentence in *error; *text is then not set.
 */
int secret_file_read(const char *what, const char *path, bool is_secret, char **text, struct error *error);
/* Frees the text, which is not in the memory any more. Accepts NULL. */
void secret_file_free(char *text);

#endif

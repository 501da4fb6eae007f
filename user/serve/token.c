// SPDX-License-Identifier: Apache-2.0
/* The token: read while the process has the rights of its user, and compared with what clients send. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "rights/secret_file.h"
#include "serve/internal.h"

/* A token with its header has to fit into a request. */
#define TOKEN_MAX 4096
/* Shorter ones can be guessed. */
#define TOKEN_LEAST 16

/* Checks the line that was read. Returns 0, or -EINVAL with a sentence in *error. */
static int check_token(const char *token, const char *path, struct error *error)
{
	if (strlen(token) >= TOKEN_MAX)
		return error_set(error, -EINVAL, "the token in %s is longer than %d bytes", path, TOKEN_MAX - 1);
	if (strlen(token) < TOKEN_LEAST)
		return error_set(error, -EINVAL,
				 "the token in %s has %zu characters, and can be guessed: `openssl rand -hex 32 >%s` "
				 "makes a good one",
				 path, strlen(token), path);
	for (const char *c = token; *c; c++) {
		if (*c <= ' ' || *c > '~')
			return error_set(error, -EINVAL,
					 "the token in %s has a blank or a character that is not of ASCII, which a "
					 "header of HTTP cannot carry",
					 path);
	}
	return 0;
}

int serve_token_read(const char *path, char **token, struct error *error)
{
	int err;

	*token = NULL;
	err = secret_file_read("token", path, true, token, error);
	if (!err && *token) {
		(*token)[strcspn(*token, "\r\n")] = '\0';
		err = check_token(*token, path, error);
	}
	if (err) {
		serve_token_free(*token);
		*token = NULL;
	}
	return err;
}

void serve_token_free(char *token)
{
	secret_file_free(token);
}

bool serve_token_matches(const char *token, const char *header)
{
	static const char scheme[] = "bearer ";
	size_t size = strlen(token), sent;
	unsigned char differs;

	if (!header || strncasecmp(header, scheme, sizeof(scheme) - 1) != 0)
		return false;
	header += sizeof(scheme) - 1;
	header += strspn(header, " ");
	sent = strlen(header);
	differs = sent != size;
	for (size_t i = 0; i < sent; i++)
		differs |= (unsigned char)(header[i] ^ token[i % size]);
	return !differs;
}

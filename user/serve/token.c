// SPDX-License-Identifier: Apache-2.0
/* The token: read while the process has the rights of its user, and compared with what clients send. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "rights/secret_file.h"
#include "serve/internal.h"

/* A token with its header has to fit into a request. */
#define TOKEN_MAX 4096
/* Shorter ones can be guessed. */
#define TOKEN_LEAST 16

/* Checks the line that was read, of so many bytes. Returns 0, or -EINVAL with a sentence in *error. */
static int check_token(const char *token, size_t size, const char *path, struct error *error)
{
	if (size == TOKEN_MAX)
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
	char *text;
	ssize_t n;
	int fd, err;

	*token = NULL;
	if (!path)
		return 0;
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return error_set(error, -errno, "cannot open %s, the file with the token: %s", path, strerror(errno));
	text = calloc(1, TOKEN_MAX + 1);
	err = text ? secret_file_check(fd, "token", path, true, error)
		   : error_set(error, -ENOMEM, "cannot read %s: out of memory", path);
	if (!err) {
		n = read(fd, text, TOKEN_MAX);
		if (n < 0)
			err = error_set(error, -errno, "cannot read %s: %s", path, strerror(errno));
	}
	if (!err) {
		text[strcspn(text, "\r\n")] = '\0';
		err = check_token(text, strlen(text), path, error);
	}
	close(fd);
	if (err)
		serve_token_free(text);
	else
		*token = text;
	return err;
}

void serve_token_free(char *token)
{
	if (token)
		explicit_bzero(token, strlen(token));
	free(token);
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

// SPDX-License-Identifier: Apache-2.0
/* Reads headers, the token, certificates and the key, while the process has the rights of its user. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "push/internal.h"
#include "rights/secret_file.h"

/* A bundle of all authorities has some 250 KiB. */
#define FILE_MAX ((size_t)4 << 20)

static int read_all(int fd, const char *path, char **text, struct error *error)
{
	char *bytes = malloc(FILE_MAX + 1);
	ssize_t size = bytes ? io_read_at(fd, bytes, FILE_MAX, 0) : -ENOMEM;

	if (size < 0 || (size_t)size == FILE_MAX) {
		int err = size < 0 ? (int)size : -EFBIG;

		free(bytes);
		return error_set(error, err, "cannot read %s: %s", path, strerror(-err));
	}
	bytes[size] = '\0';
	*text = realloc(bytes, (size_t)size + 1) ?: bytes;
	if (strlen(*text) == (size_t)size)
		return 0;
	return error_set(error, -EINVAL, "%s has a NUL byte, which no text has", path);
}

/* Reads a file, and nothing if path is NULL. Returns 0, or negative errno with a sentence in *error. */
static int read_file(const char *what, const char *path, bool is_secret, char **text, struct error *error)
{
	int fd, err;

	if (!path)
		return 0;
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return error_set(error, -errno, "cannot open %s, the file with the %s: %s", path, what,
				 strerror(errno));
	err = secret_file_check(fd, what, path, is_secret, error);
	err = err ?: read_all(fd, path, text, error);
	close(fd);
	return err;
}

/* Checks the lines "Name: value", in which "#" begins a remark. */
static int check_headers(const char *headers, const char *path, struct error *error)
{
	unsigned number = 1;

	for (const char *line = headers; *line; number++) {
		size_t length = strcspn(line, "\n"), name = strspn(line, "!#$%&'*+-.^_`|~0123456789"
									 "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
									 "abcdefghijklmnopqrstuvwxyz");

		if (length && *line != '#' && (!name || line[name] != ':'))
			return error_set(error, -EINVAL, "line %u of %s is not a header: write NAME: VALUE", number,
					 path);
		line += length + (line[length] == '\n');
	}
	return 0;
}

/* Accepts NULL. */
static void free_secret(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
}

/* Appends the token as a header. Returns 0 or -ENOMEM. */
static int add_token(char **headers, char *token)
{
	char *both = NULL;

	token[strcspn(token, "\r\n")] = '\0';
	if (asprintf(&both, "%s\nAuthorization: Bearer %s\n", *headers ?: "", token) < 0)
		return -ENOMEM;
	free_secret(*headers);
	*headers = both;
	return 0;
}

int push_secrets_read(struct push_secrets *secrets, const struct push_options *options, struct error *error)
{
	char *token = NULL;
	int err;

	*secrets = (struct push_secrets){.headers = NULL};
	if (!options->certificate != !options->key)
		return error_set(error, -EINVAL, "a client's certificate and its key go together; give both");
	err = read_file("headers", options->headers, true, &secrets->headers, error);
	err = err ?: read_file("token", options->token, true, &token, error);
	err = err ?: read_file("authorities' certificates", options->ca, false, &secrets->ca, error);
	err = err ?: read_file("client's certificate", options->certificate, false, &secrets->certificate, error);
	err = err ?: read_file("client's key", options->key, true, &secrets->key, error);
	if (!err && secrets->headers)
		err = check_headers(secrets->headers, options->headers, error);
	if (!err && token && !*token)
		err = error_set(error, -EINVAL, "%s, the file with the token, is empty", options->token);
	if (!err && token && add_token(&secrets->headers, token))
		err = error_set(error, -ENOMEM, "cannot keep the token: out of memory");
	free_secret(token);
	return err;
}

void push_secrets_free(struct push_secrets *secrets)
{
	char *const texts[] = {secrets->headers, secrets->ca, secrets->certificate, secrets->key};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		free_secret(texts[i]);
	*secrets = (struct push_secrets){.headers = NULL};
}

// SPDX-License-Identifier: Apache-2.0
/* Reads headers, the token, certificates and the key, while the process has the rights of its user. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "push/internal.h"
#include "rights/secret_file.h"

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

/* Appends the token, the first line of a file, as a header. Returns 0, or negative errno with a sentence in *error. */
static int add_token(char **headers, char *token, const char *path, struct error *error)
{
	char *both = NULL;

	token[strcspn(token, "\r\n")] = '\0';
	if (!*token)
		return error_set(error, -EINVAL, "%s, the file with the token, is empty", path);
	for (const char *c = token; *c; c++) {
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return error_set(error, -EINVAL,
					 "the token in %s has a control character, which a header of HTTP cannot carry",
					 path);
	}
	if (asprintf(&both, "%s\nAuthorization: Bearer %s\n", *headers ?: "", token) < 0)
		return error_set(error, -ENOMEM, "cannot keep the token: out of memory");
	secret_file_free(*headers);
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
	err = secret_file_read("headers", options->headers, true, &secrets->headers, error);
	err = err ?: secret_file_read("token", options->token, true, &token, error);
	err = err ?: secret_file_read("authorities' certificates", options->ca, false, &secrets->ca, error);
	err = err
		      ?: secret_file_read("client's certificate", options->certificate, false, &secrets->certificate,
					  error);
	err = err ?: secret_file_read("client's key", options->key, true, &secrets->key, error);
	if (!err && secrets->headers)
		err = check_headers(secrets->headers, options->headers, error);
	if (!err && token)
		err = add_token(&secrets->headers, token, options->token, error);
	secret_file_free(token);
	return err;
}

void push_secrets_free(struct push_secrets *secrets)
{
	char *const texts[] = {secrets->headers, secrets->ca, secrets->certificate, secrets->key};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		secret_file_free(texts[i]);
	*secrets = (struct push_secrets){.headers = NULL};
}

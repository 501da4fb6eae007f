// SPDX-License-Identifier: Apache-2.0
/* Tells the names of secrets: by parts anywhere in them, and by whole words. docs/dump.md has the same list. */
#include "symbols/py_secret.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

/* Parts of a name that are never in another word. */
static const char *const parts[] = {
	"password", "passwd",     "passphrase",        "secret", "token",     "authorization", "credential",
	"apikey",   "privatekey", "accesskey",         "cookie", "signature", "sessionid",     "csrf",
	"xsrf",     "bearer",     "connection_string",
};

/* Words that are a part of harmless ones ("monkey", "author", "compass"): between signs, or capitals. */
static const char *const words[] = {"key", "keys", "pwd", "pass", "pw", "auth", "jwt", "pin", "otp", "salt", "dsn"};

static bool has_part(const char *name)
{
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (strcasestr(name, parts[i]))
			return true;
	}
	return false;
}

static bool is_word(const char *text, size_t size)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strlen(words[i]) == size && !strncasecmp(text, words[i], size))
			return true;
	}
	return false;
}

/* Returns the size of the word that the text begins with: letters, of which no later one is a capital after a small
 * one. */
static size_t word_size(const char *text)
{
	size_t size = 0;

	while (isalpha((unsigned char)text[size]) &&
	       !(size && isupper((unsigned char)text[size]) && islower((unsigned char)text[size - 1])))
		size++;
	return size;
}

/* Returns the size of the capitals of a word such as "SSHKey", which is two: all but the last one. Else 0. */
static size_t acronym_size(const char *text, size_t size)
{
	size_t capitals = 0;

	while (capitals < size && isupper((unsigned char)text[capitals]))
		capitals++;
	return capitals > 1 && capitals < size ? capitals - 1 : 0;
}

bool py_is_secret(const char *name)
{
	size_t size;

	if (has_part(name))
		return true;
	for (const char *at = name; *at; at += size ? size : 1) {
		size_t first;

		size = word_size(at);
		first = acronym_size(at, size);
		if (is_word(at, size) || is_word(at, first) || is_word(at + first, size - first))
			return true;
	}
	return false;
}

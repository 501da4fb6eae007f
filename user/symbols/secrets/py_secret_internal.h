// SPDX-License-Identifier: Apache-2.0
/* What the files that tell secrets share: py_secret.c has names, py_secret_text.c texts. */
#ifndef SYMBOLS_PY_SECRET_INTERNAL_H
#define SYMBOLS_PY_SECRET_INTERNAL_H

#include "symbols/secrets/py_secret.h"

/* What a word says. Those of the first line make a name that of a secret. */
enum py_word {
	PY_WORD_SECRET = 1u << 0, /* always; the others unless the word beside them says what else it is */
	PY_WORD_KEY = 1u << 1,
	PY_WORD_PASS = 1u << 2,
	PY_WORD_TOKEN = 1u << 3,
	PY_WORD_TOKENS = 1u << 4, /* counted, or of a language model */
	PY_WORD_PIN = 1u << 5,
	PY_WORD_SIGNATURE = 1u << 6,
#define PY_WORD_SECRETS 0x7fu

	/* No secret with the word before, or after: "primary key", "pass rate". */
	PY_WORD_BEFORE_KEY = 1u << 7,
	PY_WORD_AFTER_KEY = 1u << 8,
	PY_WORD_AFTER_FIRST_KEY = 1u << 26, /* only where "key" is the first word: "key value", but "api key value" */
	PY_WORD_BEFORE_PASS = 1u << 9,
	PY_WORD_AFTER_PASS = 1u << 10,
	PY_WORD_BEFORE_TOKEN = 1u << 11,
	PY_WORD_BEFORE_TOKENS = 1u << 12,
	PY_WORD_AFTER_TOKEN = 1u << 29,
	PY_WORD_BESIDE_PIN = 1u << 13,
	PY_WORD_BEFORE_SIGNATURE = 1u << 14,

	/* At the start, or at the end, it makes the name that of a property of the secret: "max tokens", "password
	 * length". */
	PY_WORD_FIRST = 1u << 15,
	PY_WORD_LAST = 1u << 16,

	/* Two of these behind one another are a secret: "database url", "connection string", "session id", "backup
	 * code", "card number". */
	PY_WORD_SERVER = 1u << 17,
	PY_WORD_ADDRESS = 1u << 18,
	PY_WORD_CONNECTION = 1u << 27,
	PY_WORD_STRING = 1u << 28,
	PY_WORD_SESSION = 1u << 19,
	PY_WORD_ID = 1u << 20,
	PY_WORD_PROVES = 1u << 21,
	PY_WORD_CODE = 1u << 22,
	PY_WORD_CARD = 1u << 23,
	PY_WORD_NUMBER = 1u << 24,

	/* May be a part of a word that was not split: "db" and "pass" of "dbpass". */
	PY_WORD_PART = 1u << 25,
};

/* Longest word that is split into parts. */
#define PY_WORD_MAX 48

/* Returns what a word of small letters says, or 0. */
uint32_t py_word_find(const char *word, size_t size);
/*
 * Splits a word of small letters into parts that are all known. Returns how many there are, with what each says, or 0
 * if it cannot be split so.
 */
size_t py_word_split(const char *word, size_t size, uint32_t parts[PY_WORD_MAX]);
/*
 * Returns whether a part of the word, of small letters, is in no harmless one ("password" in "xpasswordx"), or its end
 * is that of such a word.
 */
bool py_word_has_secret(const char *word, size_t size);

/* Returns whether all of the line is the value of that name, as of a header: "Cookie: a=x; b=y". */
bool py_secret_takes_line(const char *name, size_t size);
/* Returns whether it says that an address follows the colon, not a password: "mailto:x@y". */
bool py_secret_stands_before_address(const char *text, size_t size);
/* Returns whether it is a value that tells nothing, or stands for one: "None", "%s". */
bool py_secret_is_no_value(const char *text, size_t size);

/* Returns the size of a token that begins there and is known by its shape, or 0. The text before is no part of it. */
size_t py_secret_shape(const char *text, size_t size);

static inline char py_secret_lower(char c)
{
	return (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

static inline bool py_secret_is_letter(char c)
{
	return py_secret_lower(c) >= 'a' && py_secret_lower(c) <= 'z';
}

static inline bool py_secret_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline bool py_secret_is_alnum(char c)
{
	return py_secret_is_letter(c) || py_secret_is_digit(c);
}

#endif

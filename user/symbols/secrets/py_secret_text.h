// SPDX-License-Identifier: Apache-2.0
/* What the files share that look for secrets in texts: py_secret_text.c finds names, py_secret_value.c their values. */
#ifndef SYMBOLS_PY_SECRET_TEXT_H
#define SYMBOLS_PY_SECRET_TEXT_H

#include <string.h>
#include <strings.h>

#include "symbols/secrets/py_secret_internal.h"

struct text {
	const char *at;
	size_t size;
	bool cut;
	uint8_t *mask;
};

/* The byte there, or NUL behind the end. */
static inline char sign(const struct text *t, size_t i)
{
	return i < t->size ? t->at[i] : '\0';
}

static inline bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* NUL, within a text, is between the words of a command line. */
static inline bool is_space(char c)
{
	return is_blank(c) || c == '\n' || c == '\r' || c == '\0';
}

static inline bool is_quote(char c)
{
	return c == '"' || c == '\'' || c == '`';
}

static inline bool is_name_sign(char c)
{
	return py_secret_is_alnum(c) || c == '_' || c == '-' || c == '.';
}

static inline size_t skip_blanks(const struct text *t, size_t i)
{
	while (i < t->size && (is_blank(t->at[i]) || !t->at[i]))
		i++;
	return i;
}

static inline void hide(const struct text *t, size_t from, size_t to)
{
	if (from < to)
		memset(t->mask + from, 1, to - from);
}

static inline bool has_word(const struct text *t, size_t i, const char *word)
{
	size_t len = strlen(word);

	return i + len <= t->size && !strncasecmp(t->at + i, word, len);
}

static inline size_t to_space(const struct text *t, size_t i)
{
	while (i < t->size && !is_space(t->at[i]))
		i++;
	return i;
}

static inline size_t to_line_end(const struct text *t, size_t i)
{
	while (i < t->size && t->at[i] && t->at[i] != '\n' && t->at[i] != '\r')
		i++;
	return i;
}

/* Returns the size of a quote that begins there, also as URLs, HTML and JSON write one; 0: there is none. */
size_t py_secret_quote(const struct text *t, size_t i);

/* Where a value without quotes ends. */
enum py_secret_end {
	AT_SPACE, /* or before the next name of a URL or a connection string */
	AT_LINE,
	AT_TAG, /* before < */
};
/* Hides a value that begins there. Returns where it ends. */
size_t py_secret_hide_value(const struct text *t, size_t i, enum py_secret_end ends);

#endif

// SPDX-License-Identifier: Apache-2.0
/* Finds where the value of a name ends in a text, and hides it. */
#include <string.h>

#include "symbols/secrets/py_secret_text.h"

/* Returns where the quotes that begin behind `backslashes` backslashes end: before the same ones, or at the text's end.
 */
static size_t to_quote(const struct text *t, size_t i, char quote, size_t backslashes)
{
	size_t count = 0;

	for (; i < t->size; i++) {
		if (t->at[i] == '\\') {
			count++;
			continue;
		}
		/* Within quotes a backslash and what follows it are doubled by each further quoting. */
		if (t->at[i] == quote && (backslashes ? count <= backslashes : count % 2 == 0))
			return i - (count < backslashes ? count : backslashes);
		count = 0;
	}
	return i;
}

static size_t to_bracket(const struct text *t, size_t i)
{
	const char open = t->at[i], close = open == '(' ? ')' : open == '[' ? ']' : '}';
	size_t depth = 0;

	for (; i < t->size; i++) {
		depth += t->at[i] == open;
		if (t->at[i] == close && !--depth)
			return i;
	}
	return i;
}

static bool is_no_value(const struct text *t, size_t from, size_t to)
{
	while (to > from && strchr(",;)]}", t->at[to - 1]))
		to--;
	return py_secret_is_no_value(t->at + from, to - from);
}

/* A value such as "Password=my secret;Server=x", or "token=x&user=y" of a URL. */
static size_t to_next_name(const struct text *t, size_t i)
{
	size_t space = to_space(t, i), end = i;

	for (; end < space; end++) {
		size_t name = end + 1;

		if (t->at[end] == ';' || t->at[end] == '&') {
			while (is_name_sign(sign(t, name)) || sign(t, name) == '%')
				name++;
			if (sign(t, name) == '=' && name > end + 1)
				return end;
		}
	}
	/* Blanks within it: up to a semicolon, if nothing else is set before that. */
	for (; end < t->size && is_blank(t->at[end]); end = to_space(t, end + 1)) {
		const char *semicolon = memchr(t->at + end, ';', to_line_end(t, end) - end);

		if (!semicolon || memchr(t->at + end, '=', (size_t)(semicolon - (t->at + end))))
			return space;
		return (size_t)(semicolon - t->at);
	}
	return space;
}

/* A block of YAML: the lines that are indented. */
static size_t to_block_end(const struct text *t, size_t i)
{
	size_t end = to_line_end(t, i);

	for (i = end; i < t->size; i = to_line_end(t, i)) {
		while (sign(t, i) == '\n' || sign(t, i) == '\r')
			i++;
		if (i < t->size && !is_blank(t->at[i]))
			return end;
		end = to_line_end(t, i);
	}
	return t->size;
}

size_t py_secret_quote(const struct text *t, size_t i)
{
	static const char *const longer[] = {"%22", "%27", "&quot;", "&#34;", "&#39;", "\\u0022", "\\u0027"};

	for (size_t k = 0; k < sizeof(longer) / sizeof(longer[0]); k++) {
		if (has_word(t, i, longer[k]))
			return strlen(longer[k]);
	}
	return is_quote(sign(t, i));
}

/* Hides a value in quotes, behind backslashes. */
static size_t hide_quoted(const struct text *t, size_t i, size_t backslashes)
{
	size_t quote = py_secret_quote(t, i), end;
	const char *found;

	if (quote == 1) {
		end = to_quote(t, i + 1, t->at[i], backslashes);
	} else {
		found = memmem(t->at + i + quote, t->size - i - quote, t->at + i, quote);
		end = found ? (size_t)(found - t->at) : t->size;
	}
	hide(t, i + quote, end);
	return end;
}

/* Hides a value without quotes, unless it tells nothing. */
static size_t hide_bare(const struct text *t, size_t i, enum py_secret_end ends)
{
	size_t end = ends == AT_SPACE ? to_next_name(t, i) : to_line_end(t, i), word = to_space(t, i);
	const char *tag = ends == AT_TAG ? memchr(t->at + i, '<', t->size - i) : NULL;

	if (ends == AT_TAG)
		end = tag ? (size_t)(tag - t->at) : t->size;
	if (is_no_value(t, i, word < end ? word : end))
		return i;
	hide(t, i, end);
	return end;
}

/* Hides what stands between three quotes and the next three. */
static size_t hide_long(const struct text *t, size_t i)
{
	const char *found = memmem(t->at + i + 3, t->size - i - 3, t->at + i, 3);
	size_t end = found ? (size_t)(found - t->at) : t->size;

	hide(t, i + 3, end);
	return end;
}

static bool is_long_quote(const struct text *t, size_t i)
{
	return is_quote(sign(t, i)) && sign(t, i + 1) == t->at[i] && sign(t, i + 2) == t->at[i];
}

/* Hides the lines behind the one that ends there: those that are indented, or one that sets nothing else. */
static size_t hide_next_line(const struct text *t, size_t i)
{
	size_t from = i, end;

	while (sign(t, from) == '\n' || sign(t, from) == '\r')
		from++;
	end = to_line_end(t, from);
	if (is_blank(sign(t, from)))
		end = to_block_end(t, i);
	else if (memchr(t->at + from, ':', end - from) || memchr(t->at + from, '=', end - from))
		return i;
	hide(t, from, end);
	return end;
}

size_t py_secret_hide_value(const struct text *t, size_t i, enum py_secret_end ends)
{
	size_t backslashes = 0, from, end;

	/* b'..', u".." */
	for (from = i; from < i + 2 && strchr("bBuUrRfF", sign(t, from) ?: '\n'); from++)
		;
	if (!is_quote(sign(t, from)))
		from = i;
	if (is_long_quote(t, from))
		return hide_long(t, from);
	if (sign(t, i) == '\n' || sign(t, i) == '\r')
		return hide_next_line(t, i);
	if (py_secret_quote(t, from) < 2) {
		while (sign(t, from + backslashes) == '\\')
			backslashes++;
	}
	if (py_secret_quote(t, from + backslashes))
		return hide_quoted(t, from + backslashes, backslashes);
	if (strchr("{[(", sign(t, i) ?: '\n')) {
		end = to_bracket(t, i);
		hide(t, i + 1, end);
		return end;
	}
	if (strchr("|>", sign(t, i) ?: '\n') && to_line_end(t, i) <= i + 2) {
		end = to_block_end(t, i);
		hide(t, to_line_end(t, i), end);
		return end;
	}
	return hide_bare(t, i, ends);
}

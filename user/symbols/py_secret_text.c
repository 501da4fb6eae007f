// SPDX-License-Identifier: Apache-2.0
/*
 * Finds secrets in texts: tokens by their shape, the user part of URLs, what follows Bearer and Basic, and the values
 * of names of secrets, as in options, headers, JSON, environments and connection strings. One pass; what it looks back
 * and ahead at has limits, but for the end of a value.
 */
#include <string.h>
#include <strings.h>

#include "symbols/py_secret_internal.h"

/* Longest name that is looked at, by its end. */
#define NAME_MAX 128
/* Signs between a name and its value: quotes, their backslashes, blanks. */
#define GAP_MAX 24
/* Longest user part of a URL. */
#define USER_MAX 2048

struct text {
	const char *at;
	size_t size;
	bool cut;
	uint8_t *mask;
};

/* The byte there, or NUL behind the end. */
static char sign(const struct text *t, size_t i)
{
	return i < t->size ? t->at[i] : '\0';
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool is_space(char c)
{
	return is_blank(c) || c == '\n' || c == '\r';
}

static bool is_quote(char c)
{
	return c == '"' || c == '\'' || c == '`';
}

static bool is_name_sign(char c)
{
	return py_secret_is_alnum(c) || c == '_' || c == '-' || c == '.';
}

static size_t skip_blanks(const struct text *t, size_t i)
{
	while (is_blank(sign(t, i)))
		i++;
	return i;
}

static void hide(const struct text *t, size_t from, size_t to)
{
	if (from < to)
		memset(t->mask + from, 1, to - from);
}

static bool has_word(const struct text *t, size_t i, const char *word)
{
	size_t len = strlen(word);

	return i + len <= t->size && !strncasecmp(t->at + i, word, len);
}

static size_t to_space(const struct text *t, size_t i)
{
	while (i < t->size && !is_space(t->at[i]))
		i++;
	return i;
}

static size_t to_line_end(const struct text *t, size_t i)
{
	while (i < t->size && t->at[i] != '\n' && t->at[i] != '\r')
		i++;
	return i;
}

/* Returns where the quotes that begin behind so many backslashes end: before the same ones, or at the text's end. */
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

/* Values that tell nothing, and what stands for one. */
static bool is_no_value(const struct text *t, size_t from, size_t to)
{
	static const char *const none[] = {"None",  "null", "nil", "true", "false", "True",
					   "False", "?",    "%s",  "''",   "\"\""};

	while (to > from && strchr(",;)]}", t->at[to - 1]))
		to--;
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		if (strlen(none[i]) == to - from && !memcmp(t->at + from, none[i], to - from))
			return true;
	}
	return from == to;
}

enum ends {
	AT_SPACE,
	AT_LINE,
	AT_TAG, /* before < */
};

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

/* Hides a value that begins there. Returns where it ends. */
static size_t hide_value(const struct text *t, size_t i, enum ends ends)
{
	size_t backslashes = 0, end, from;

	/* b'..', u".." */
	for (from = i; from < i + 2 && strchr("bBuUrRfF", sign(t, from) ?: '\n'); from++)
		;
	if (!is_quote(sign(t, from)))
		from = i;
	while (sign(t, from + backslashes) == '\\')
		backslashes++;
	if (is_quote(sign(t, from + backslashes))) {
		from += backslashes + 1;
		end = to_quote(t, from, t->at[from - 1], backslashes);
	} else if (strchr("{[(", sign(t, i) ?: '\n')) {
		from = i + 1;
		end = to_bracket(t, i);
	} else if (strchr("|>", sign(t, i) ?: '\n') && to_line_end(t, i) <= i + 2) {
		end = to_block_end(t, i);
		from = to_line_end(t, i);
	} else {
		end = ends == AT_SPACE ? to_next_name(t, i) : to_line_end(t, i);
		for (from = i; ends == AT_TAG && from < end && t->at[from] != '<'; from++)
			;
		end = ends == AT_TAG ? from : end;
		from = i;
		if (is_no_value(t, i, to_space(t, i) < end ? to_space(t, i) : end))
			return i;
	}
	hide(t, from, end);
	return end > i ? end : i;
}

static bool is_header(const struct text *t, size_t from, size_t to)
{
	static const char *const headers[] = {"authorization", "cookie", "passphrase"};

	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
		size_t len = strlen(headers[i]);

		if (to - from >= len && has_word(t, to - len, headers[i]))
			return true;
	}
	return false;
}

/* Returns whether a part of the name is "pass" or "pwd", whose value may follow without a sign between. */
static bool is_password(const struct text *t, size_t from, size_t to)
{
	for (size_t i = from; i + 3 <= to; i++) {
		if (has_word(t, i, "pwd") || (i + 4 <= to && has_word(t, i, "pass")))
			return true;
	}
	return to - from == 2 && has_word(t, from, "by") && from >= 11 && has_word(t, from - 11, "identified ");
}

/* .netrc: "machine x login y password z". */
static bool is_in_netrc(const struct text *t, size_t from)
{
	for (size_t i = from; i > 0 && from - i < NAME_MAX; i--) {
		if (has_word(t, i - 1, "login ") || has_word(t, i - 1, "machine "))
			return true;
	}
	return false;
}

/* A name, and what is between it and its value. */
struct assignment {
	size_t from, to; /* the name */
	size_t value;
	enum ends ends;
};

/* Finds a sign that makes what follows the value of a name. */
static bool find_sign(const struct text *t, struct assignment *a)
{
	bool quoted = false, option = t->at[a->from] == '-';
	size_t i = a->to, after;

	for (; i < a->to + GAP_MAX && (is_quote(sign(t, i)) || (sign(t, i) && strchr("\\])", t->at[i]))); i++)
		quoted = quoted || is_quote(t->at[i]);
	after = i;
	i = skip_blanks(t, i);
	a->ends = AT_SPACE;
	if (sign(t, i) == '=' || has_word(t, i, "%3d") || has_word(t, i, ":=")) {
		i += sign(t, i) == '=' ? 1 : sign(t, i) == '%' ? 3 : 2;
		i += sign(t, i) == '=' || sign(t, i) == '>' || sign(t, i) == '~';
		a->ends = is_blank(sign(t, i)) ? AT_LINE : AT_SPACE;
	} else if ((sign(t, i) == ':' && !has_word(t, i, "://")) || has_word(t, i, "%3a")) {
		i += sign(t, i) == ':' ? 1 : 3;
		a->ends = is_blank(sign(t, i)) || is_header(t, a->from, a->to) ? AT_LINE : AT_SPACE;
	} else if (sign(t, i) == '>' && a->from && t->at[a->from - 1] == '<') {
		i++;
		a->ends = AT_TAG;
	} else if (sign(t, i) == ',' && quoted && i == after) {
		i++;
		a->value = skip_blanks(t, i);
		return is_quote(sign(t, a->value)) || is_quote(sign(t, a->value + 1));
	} else if (i == after || quoted ||
		   !(option || is_in_netrc(t, a->from) || (is_quote(sign(t, i)) && is_password(t, a->from, a->to)))) {
		return false;
	}
	a->value = skip_blanks(t, i);
	return true;
}

/* Returns whether the name, with the word before it ("API key: x"), is that of a secret. */
static bool is_secret(const struct text *t, const struct assignment *a)
{
	size_t from = a->from;

	if (from > 1 && t->at[from - 1] == ' ' && is_name_sign(t->at[from - 2])) {
		for (from--; from > 0 && is_name_sign(t->at[from - 1]) && a->to - from < NAME_MAX; from--)
			;
	}
	if (a->to - from > NAME_MAX)
		from = a->to - NAME_MAX;
	return py_secret_is_name(t->at + from, a->to - from) ||
	       (is_quote(sign(t, a->value)) && is_password(t, a->from, a->to));
}

/* Looks at the name that begins there. Returns where to go on. */
static size_t look_at_name(const struct text *t, size_t i)
{
	struct assignment a = {.from = i, .to = i};

	while (is_name_sign(sign(t, a.to)))
		a.to++;
	if (!find_sign(t, &a) || !is_secret(t, &a))
		return i;
	return hide_value(t, a.value, a.ends);
}

/* Returns whether a quote within a URL is one that ends it. */
static bool ends_url(const struct text *t, size_t i)
{
	char c = t->at[i], next = sign(t, i + 1);

	return is_space(c) || c == '<' || c == '>' ||
	       (is_quote(c) && (!next || is_space(next) || strchr(",)]}:;", next)));
}

static bool is_port(const struct text *t, size_t from, size_t to)
{
	while (from < to && py_secret_is_digit(t->at[from]))
		from++;
	return from == to;
}

/*
 * Hides the user part of a URL whose authority begins there: to the last @ before a slash or, as passwords are not
 * always escaped, to the last one at all, if what looks like a port is none. Returns where it ends.
 */
static size_t hide_user(const struct text *t, size_t from)
{
	size_t i = from, authority = 0, colon = 0, within = 0, last = 0;

	for (; i < t->size && i - from < USER_MAX && !ends_url(t, i); i++) {
		authority = authority ?: strchr("/?#", t->at[i] ?: '\n') ? i : 0;
		if (t->at[i] == ':' && !authority)
			colon = i;
		if (t->at[i] == '@')
			last = i;
		if (t->at[i] == '@' && !authority)
			within = i;
	}
	if (!within && colon && sign(t, from) != '[' && !is_port(t, colon + 1, authority ?: i))
		within = last ?: i == t->size && t->cut ? i : 0;
	hide(t, from, within);
	return within ?: from;
}

/* "user:password@host" without a scheme. Returns where to go on. */
static size_t look_at_user(const struct text *t, size_t i)
{
	static const char *const others[] = {"mailto", "to",   "from", "cc",   "bcc",
					     "sip",    "sips", "xmpp", "acct", "email"};
	size_t colon = i, end;

	while (is_name_sign(sign(t, colon)))
		colon++;
	if (colon == i || sign(t, colon) != ':' || sign(t, colon + 1) == '/' || is_port(t, i, colon))
		return i;
	for (size_t k = 0; k < sizeof(others) / sizeof(others[0]); k++) {
		if (strlen(others[k]) == colon - i && has_word(t, i, others[k]))
			return i;
	}
	for (end = colon + 1;
	     end < t->size && end - i < NAME_MAX && !ends_url(t, end) && !strchr("@/,", t->at[end] ?: '@'); end++)
		;
	if (sign(t, end) != '@' || end == colon + 1 || !py_secret_is_alnum(sign(t, end + 1)))
		return i;
	hide(t, i, end);
	return end;
}

/* Returns whether the text is no word of a language: long, or with signs or digits or capitals in it. */
static bool is_token(const struct text *t, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		char c = t->at[i];

		if (py_secret_is_digit(c) || (i > from && i + 1 < to && strchr("_=+/.~", c ?: '\n')) ||
		    (i > from && c >= 'A' && c <= 'Z'))
			return true;
	}
	return to - from >= 20;
}

/* What is behind "Bearer", "Basic" and the like, where it is all of the text or looks like a token. */
static size_t look_at_scheme(const struct text *t, size_t i)
{
	static const struct {
		const char *word;
		bool alone; /* whatever follows, if nothing else does */
		size_t least;
	} schemes[] = {{"bearer ", true, 1},  {"basic ", false, 4},      {"token ", false, 16},
		       {"apikey ", false, 8}, {"negotiate ", false, 12}, {"digest ", false, 40}};

	for (size_t k = 0; k < sizeof(schemes) / sizeof(schemes[0]); k++) {
		size_t from, end;

		if (!has_word(t, i, schemes[k].word))
			continue;
		from = skip_blanks(t, i + strlen(schemes[k].word));
		for (end = from; end < t->size && !ends_url(t, end) && t->at[end] != ','; end++)
			;
		if (end - from >= schemes[k].least &&
		    (is_token(t, from, end) || (schemes[k].alone && !i && end == t->size))) {
			hide(t, from, end);
			return end;
		}
	}
	return i;
}

/* Looks at what begins at a sign that no letter or digit is before. Returns where to go on. */
static size_t look_at(const struct text *t, size_t i, bool begins_name)
{
	size_t shape = py_secret_shape(t->at + i, t->size - i), next;

	if (shape) {
		hide(t, i, i + shape);
		return i + shape;
	}
	next = look_at_scheme(t, i);
	if (next == i && begins_name)
		next = look_at_name(t, i);
	return next == i && begins_name ? look_at_user(t, i) : next;
}

void py_secret_mark(const char *text, size_t size, bool cut, uint8_t *mask)
{
	const struct text t = {.at = text, .size = size, .cut = cut, .mask = mask};

	for (size_t i = 0; i < size;) {
		size_t next = i;

		if (has_word(&t, i, "://") && i && py_secret_is_alnum(text[i - 1]))
			next = hide_user(&t, i + 3);
		else if (!i || !py_secret_is_alnum(text[i - 1]))
			next = look_at(&t, i, is_name_sign(text[i]) && (!i || !is_name_sign(text[i - 1])));
		i = next > i ? next : i + 1;
	}
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Finds secrets in texts: tokens by their shape, the user part of URLs, what follows Bearer and Basic, and the values
 * of names of secrets, as in options, headers, JSON, environments and connection strings. One pass; what it looks back
 * and ahead at has limits, but for the end of a value.
 */
#include <string.h>
#include <strings.h>

#include "symbols/secrets/py_secret_text.h"

/* Longest name that is looked at, by its end. */
#define NAME_MAX 128
/* Signs between a name and its value: quotes, their backslashes, blanks. */
#define GAP_MAX 24
/* Shorter than a password that stands alone behind that word: "pass 2 of 3". */
#define PASSWORD_LEAST 6
/* Longest user part of a URL. */
#define USER_MAX 2048

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

/* A name, and what is between it and its value. */
struct assignment {
	size_t from, to; /* the name */
	size_t value;
	enum py_secret_end ends;
};

/* Returns where the value begins that a field such as "value" has, in JSON and in attributes of XML; 0: there is none.
 */
static size_t skip_field(const struct text *t, size_t i)
{
	size_t end;

	i += py_secret_quote(t, i);
	for (end = i; py_secret_is_alnum(sign(t, end)); end++)
		;
	if (!py_secret_is_value_field(t->at + i, end - i))
		return 0;
	end = skip_blanks(t, end + py_secret_quote(t, end));
	return sign(t, end) == ':' || sign(t, end) == '=' ? skip_blanks(t, end + 1) : 0;
}

/* Returns whether a sign makes what follows the value of the name, and then where it begins. */
static bool find_sign(const struct text *t, size_t i, struct assignment *a)
{
	static const char *const assigns[] = {":=", "==", "=>", "=~", "->", "%3d", "="}, *const colons[] = {"%3a", ":"};
	bool line = py_secret_takes_line(t->at + a->from, a->to - a->from);

	for (size_t k = 0; k < sizeof(assigns) / sizeof(assigns[0]); k++) {
		if (has_word(t, i, assigns[k])) {
			i += strlen(assigns[k]);
			a->ends = is_blank(sign(t, i)) || line ? AT_LINE : AT_SPACE;
			a->value = skip_blanks(t, i + (sign(t, i) == '>'));
			return true;
		}
	}
	for (size_t k = 0; k < sizeof(colons) / sizeof(colons[0]) && !has_word(t, i, "://"); k++) {
		if (has_word(t, i, colons[k])) {
			i += strlen(colons[k]);
			i += sign(t, i) == ':';
			a->ends = is_blank(sign(t, i)) || line ? AT_LINE : AT_SPACE;
			a->value = skip_blanks(t, i + (sign(t, i) == '>'));
			return true;
		}
	}
	if (sign(t, i) == '>' && a->from && t->at[a->from - 1] == '<') {
		a->ends = AT_TAG;
		a->value = i + 1;
		return true;
	}
	return false;
}

/* What may follow a name in quotes: the other one of a pair, another field of a form or an element. */
static bool find_beside(const struct text *t, size_t i, struct assignment *a)
{
	size_t next = skip_blanks(t, sign(t, i) == ',' ? i + 1 : i), field = skip_field(t, next), end;

	a->value = field;
	if (field || !py_secret_quote(t, next + (sign(t, next) == 'b' || sign(t, next) == 'u'))) {
		/* multipart/form-data */
		for (end = i; sign(t, end) == '\r' || sign(t, end) == '\n'; end++)
			;
		a->value = field ?: end > i + 1 ? end : 0;
		a->ends = field ? AT_SPACE : AT_LINE;
		return a->value;
	}
	a->value = next;
	return sign(t, i) == ',';
}

/* What may follow a name with nothing but a blank between. */
static bool find_after_blank(const struct text *t, size_t i, struct assignment *a)
{
	/* "Pass it on" is no password. */
	bool password = is_password(t, a->from, a->to) && !(a->to - a->from == 4 && has_word(t, a->from, "pass"));

	if (has_word(t, i, "is ") || has_word(t, i, "was "))
		i = skip_blanks(t, to_space(t, i));
	a->value = i;
	if (t->at[a->from] == '-')
		return true;
	return password && (is_quote(sign(t, i)) || is_in_netrc(t, a->from) ||
			    (to_space(t, i) >= i + PASSWORD_LEAST && is_token(t, i, to_space(t, i))));
}

/* Finds the value of the name, if anything says that there is one. */
static bool find_value(const struct text *t, struct assignment *a)
{
	size_t i = a->to, quote, after;
	bool quoted = false;

	for (; i < a->to + GAP_MAX; i += quote ?: 1) {
		quote = py_secret_quote(t, i);
		quoted = quoted || quote;
		if (!quote && (!sign(t, i) || !strchr("\\])", t->at[i])))
			break;
	}
	after = i;
	i = skip_blanks(t, i);
	a->ends = AT_SPACE;
	if (find_sign(t, i, a))
		return true;
	if (quoted)
		return find_beside(t, i, a);
	if (after < t->size && !t->at[after] && i < t->size) {
		a->value = i;
		return true;
	}
	return i > after && find_after_blank(t, i, a);
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

static bool is_port(const struct text *t, size_t from, size_t to)
{
	while (from < to && py_secret_is_digit(t->at[from]))
		from++;
	return from == to;
}

/* "-u user:password", as of curl: not "-u 1000:1000". Returns where the user's part begins, or 0. */
static size_t skip_user_option(const struct text *t, size_t from, size_t to)
{
	size_t user = skip_blanks(t, to + (sign(t, to) == '=')), end, colon;

	if (!py_secret_is_user_option(t->at + from, to - from))
		return 0;
	user += py_secret_quote(t, user);
	end = to_space(t, user);
	for (colon = user; colon < end && t->at[colon] != ':'; colon++)
		;
	return colon < end && !is_port(t, user, colon) ? user : 0;
}

/* <add key="password" value="x"/>: the key is not a secret, but the name of one. */
static bool names_another(const struct text *t, const struct assignment *a)
{
	size_t from = a->value + py_secret_quote(t, a->value), end = from;

	while (is_name_sign(sign(t, end)))
		end++;
	return a->to - a->from == 3 && has_word(t, a->from, "key") && from > a->value && py_secret_quote(t, end) &&
	       py_secret_stands_before(t->at + from, end - from);
}

/* Looks at the name that begins there. Returns where to go on. */
static size_t look_at_name(const struct text *t, size_t i)
{
	struct assignment a = {.from = i, .to = i};
	size_t user;

	while (is_name_sign(sign(t, a.to)))
		a.to++;
	user = skip_user_option(t, a.from, a.to);
	if (user) {
		hide(t, user, to_space(t, user));
		return to_space(t, user);
	}
	if (!find_value(t, &a) || !is_secret(t, &a) || names_another(t, &a))
		return i;
	return py_secret_hide_value(t, a.value, a.ends);
}

/* Returns whether a quote within a URL is one that ends it. */
static bool ends_url(const struct text *t, size_t i)
{
	char c = t->at[i], next = sign(t, i + 1);

	return is_space(c) || c == '<' || c == '>' ||
	       (is_quote(c) && (!next || is_space(next) || strchr(",)]}:;", next)));
}

/*
 * Hides the user part of a URL whose authority begins there: to the last @ before a slash or, as passwords are not
 * always escaped, to the last one at all, if what looks like a port is not a number. Returns where it ends.
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
	size_t colon = i, end;

	while (is_name_sign(sign(t, colon)))
		colon++;
	if (colon == i || sign(t, colon) != ':' || sign(t, colon + 1) == '/' || is_port(t, i, colon) ||
	    py_secret_stands_before_address(t->at + i, colon - i))
		return i;
	for (end = colon + 1;
	     end < t->size && end - i < NAME_MAX && !ends_url(t, end) && !strchr("@/,", t->at[end] ?: '@'); end++)
		;
	if (sign(t, end) != '@' || end == colon + 1 || !py_secret_is_alnum(sign(t, end + 1)))
		return i;
	hide(t, i, end);
	return end;
}

/* What is behind "Bearer", "Basic" and the like, where it is all of the text or looks like a token. */
static size_t look_at_scheme(const struct text *t, size_t i)
{
	const struct py_secret_scheme *scheme;
	size_t word = i, from, end;

	while (py_secret_is_letter(sign(t, word)))
		word++;
	scheme = sign(t, word) == ' ' ? py_secret_find_scheme(t->at + i, word - i) : NULL;
	if (!scheme)
		return i;
	from = skip_blanks(t, word);
	for (end = from; end < t->size && !ends_url(t, end) && t->at[end] != ','; end++)
		;
	if (end - from < scheme->least || !(is_token(t, from, end) || (scheme->alone && !i && end == t->size)))
		return i;
	hide(t, from, end);
	return end;
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
		else if (!i || !py_secret_is_alnum(text[i - 1]) || text[i] == '-')
			next = look_at(&t, i, is_name_sign(text[i]) && (!i || !is_name_sign(text[i - 1])));
		i = next > i ? next : i + 1;
	}
}

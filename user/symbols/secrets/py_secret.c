// SPDX-License-Identifier: Apache-2.0
/*
 * Tells the names of secrets. A name is split into words, and words that are run together into parts; a word counts as
 * a whole, so that "monkey" has no "key" in it. What a word says can depend on the one beside it.
 */
#include "symbols/secrets/py_secret.h"

#include <string.h>

#include "symbols/secrets/py_secret_internal.h"

/* Words of a name that are looked at together. A longer text is no name: it is looked at in parts. */
#define TERMS_MAX 64
/* Most bytes of a text that can be the name of what comes next. */
#define NAME_MAX 64

struct terms {
	uint32_t says[TERMS_MAX];
	size_t count;
	bool cut; /* there were more */
	bool found;
};

static bool is_secret_word(uint32_t before, uint32_t says, uint32_t after)
{
	static const struct {
		uint32_t secret, before, after;
	} unless[] = {
		{PY_WORD_SECRET, 0, 0},
		{PY_WORD_KEY, PY_WORD_BEFORE_KEY, PY_WORD_AFTER_KEY | PY_WORD_AFTER_FIRST_KEY},
		{PY_WORD_PASS, PY_WORD_BEFORE_PASS, PY_WORD_AFTER_PASS},
		{PY_WORD_TOKEN, PY_WORD_BEFORE_TOKEN, PY_WORD_AFTER_TOKEN},
		{PY_WORD_TOKENS, PY_WORD_BEFORE_TOKENS | PY_WORD_BEFORE_TOKEN, 0},
		{PY_WORD_PIN, PY_WORD_BESIDE_PIN, PY_WORD_BESIDE_PIN},
		{PY_WORD_SIGNATURE, PY_WORD_BEFORE_SIGNATURE, 0},
	};

	for (size_t i = 0; i < sizeof(unless) / sizeof(unless[0]); i++) {
		if ((says & unless[i].secret) && !(before & unless[i].before) && !(after & unless[i].after))
			return true;
	}
	return false;
}

static bool is_secret_pair(uint32_t says, uint32_t after)
{
	return ((says & PY_WORD_SERVER) && (after & PY_WORD_ADDRESS)) ||
	       ((says & PY_WORD_CONNECTION) && (after & PY_WORD_STRING)) ||
	       ((says & PY_WORD_SESSION) && (after & PY_WORD_ID)) ||
	       ((says & PY_WORD_PROVES) && (after & PY_WORD_CODE)) ||
	       ((says & PY_WORD_CARD) && (after & PY_WORD_NUMBER));
}

/* Looks at the words so far. A name whose first or last word makes it that of a property is harmless. */
static bool evaluate(const struct terms *t)
{
	bool word = false;

	for (size_t i = 0; i < t->count; i++) {
		uint32_t before = i ? t->says[i - 1] : 0, after = i + 1 < t->count ? t->says[i + 1] : 0;

		if (is_secret_pair(t->says[i], after))
			return true;
		word = word ||
		       is_secret_word(before, t->says[i], i || t->cut ? after & ~PY_WORD_AFTER_FIRST_KEY : after);
	}
	if (!word || t->cut || t->count < 2)
		return word;
	return !(t->says[0] & PY_WORD_FIRST) && !(t->says[t->count - 1] & PY_WORD_LAST);
}

static void add_term(struct terms *t, uint32_t says)
{
	if (t->count == TERMS_MAX) {
		t->cut = true;
		t->found = t->found || evaluate(t);
		t->says[0] = t->says[TERMS_MAX - 1];
		t->count = 1;
	}
	t->says[t->count++] = says;
}

/* inner: a word that cannot be split counts by what is in it, too. */
static void add_word(struct terms *t, const char *word, size_t size, bool inner)
{
	uint32_t parts[PY_WORD_MAX], says = py_word_find(word, size);
	size_t count = says ? 0 : py_word_split(word, size, parts);

	for (size_t i = 0; i < count; i++)
		add_term(t, parts[i]);
	if (!count)
		add_term(t, says ?: inner && py_word_has_secret(word, size) ? PY_WORD_SECRET : 0);
}

/*
 * Returns the size of the word at the start of these letters: to a capital that follows a small letter, or to the last
 * of several capitals that a small letter follows ("SSHKey").
 */
static size_t word_size(const char *text, size_t size)
{
	size_t at = 1;
	bool capitals = py_secret_lower(text[0]) != text[0];

	for (; at < size; at++) {
		bool capital = py_secret_lower(text[at]) != text[at];

		if (capital && !capitals)
			break;
		if (!capital && capitals && at > 1)
			return at - 1;
		capitals = capital;
	}
	return at;
}

/* Adds letters, word by word, to t; and as one word to whole, as capitals may mean nothing ("KEYs"). */
static void add_letters(struct terms *t, struct terms *whole, const char *text, size_t size)
{
	char small[PY_WORD_MAX];

	for (size_t at = 0, part; at < size; at += part) {
		part = word_size(text + at, size - at < PY_WORD_MAX ? size - at : PY_WORD_MAX);
		for (size_t i = 0; i < part; i++)
			small[i] = py_secret_lower(text[at + i]);
		add_word(t, small, part, true);
	}
	for (size_t i = 0; i < size && i < PY_WORD_MAX; i++)
		small[i] = py_secret_lower(text[i]);
	if (size <= PY_WORD_MAX)
		add_word(whole, small, size, false);
}

/* "passw0rd", "s3cret": letters with digits in place of some. */
static bool is_secret_in_digits(const char *text, size_t size)
{
	static const char letters[] = "oizeasgtbg";
	char word[PY_WORD_MAX];
	bool within = false;

	if (size > PY_WORD_MAX)
		return false;
	for (size_t i = 0; i < size; i++) {
		bool digit = py_secret_is_digit(text[i]);

		within = within || (digit && i && i + 1 < size);
		word[i] = digit ? letters[text[i] - '0'] : py_secret_lower(text[i]);
	}
	return within && ((py_word_find(word, size) & PY_WORD_SECRETS) || py_word_has_secret(word, size));
}

bool py_secret_is_name(const char *name, size_t size)
{
	struct terms t = {.count = 0}, whole = {.count = 0};

	for (size_t at = 0, end; at < size; at = end) {
		bool digits = false;

		for (end = at; end < size && py_secret_is_alnum(name[end]);) {
			size_t from = end;

			for (; end < size && py_secret_is_letter(name[end]); end++)
				;
			if (end > from)
				add_letters(&t, &whole, name + from, end - from);
			for (; end < size && py_secret_is_digit(name[end]); end++)
				digits = true;
		}
		if (digits && is_secret_in_digits(name + at, end - at))
			return true;
		end += end == at;
	}
	return t.found || evaluate(&t) || whole.found || evaluate(&whole);
}

bool py_is_secret(const char *name)
{
	return py_secret_is_name(name, strlen(name));
}

bool py_secret_stands_before(const char *text, size_t size)
{
	size_t words = 0;

	while (size && (text[size - 1] == ':' || text[size - 1] == '=' || text[size - 1] == ' '))
		size--;
	if (!size || size > NAME_MAX)
		return false;
	for (size_t i = 0; i < size; i++) {
		words += text[i] == ' ';
		if (!py_secret_is_alnum(text[i]) && !strchr("_-. /", text[i] ?: '\n'))
			return false;
	}
	/* A sentence about a secret is no name of one. */
	return words <= 2 && py_secret_is_name(text, size);
}

// SPDX-License-Identifier: Apache-2.0
/* Compares functions with a text, without compiling it: a lexer of strings, brackets, lines and indents is enough. */
#include "session/sources/source_check.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "symbols/words.h"

/*
 * What a compiler adds: a name for each assert (to 3.8), a key for the annotation of what a function returns, and the
 * argument of a function for annotations (3.14+).
 */
static const char *const added[] = {
	"AssertionError",
	"return",
	"format",
	/* And what pytest puts into a test in place of an assert (_pytest/assertion/rewrite.py of 3 to 8). */
	"_call_assertion_pass",
	"_call_reprcompare",
	"_check_if_assertion_pass_impl",
	"_format_assertmsg",
	"_format_boolop",
	"_format_explanation",
	"_pytest",
	"_saferepr",
	"_should_repr_global_name",
	"append",
	"assertion",
	"builtins",
	"locals",
	"rewrite",
};

/* Where a lexer is in a text. */
struct cursor {
	const char *at;
	int32_t line;
	int depth;     /* of brackets */
	bool is_begin; /* of a statement */
};

static bool is_word_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (c & 0x80);
}

/* Returns the bytes of the line's end here, or 0. */
static size_t line_end(const char *at)
{
	return *at == '\n' ? 1 : *at == '\r' ? 1 + (at[1] == '\n') : 0;
}

/* Skips the string that begins here. One without its closing quote ends at the end of the line, unless it has three
 * quotes. */
static void skip_string(struct cursor *c)
{
	char quote = *c->at;
	size_t quotes = c->at[1] == quote && c->at[2] == quote ? 3 : 1;

	for (c->at += quotes; *c->at;) {
		size_t end = line_end(c->at);

		if (*c->at == '\\' && c->at[1]) {
			c->at++;
			end = line_end(c->at);
		} else if (end && quotes == 1) {
			return;
		} else if (*c->at == quote && (quotes == 1 || (c->at[1] == quote && c->at[2] == quote))) {
			c->at += quotes;
			return;
		}
		c->line += end > 0;
		c->at += end ?: 1;
	}
}

/* Goes on behind the next piece: a string, a comment, the end of a line, or one character. */
static void step(struct cursor *c)
{
	size_t end = line_end(c->at);

	if (end) {
		c->at += end;
		c->line++;
		c->is_begin = c->depth <= 0;
	} else if (*c->at == '\\' && line_end(c->at + 1)) {
		c->at += 1 + line_end(c->at + 1);
		c->line++;
	} else if (*c->at == '#') {
		c->at += strcspn(c->at, "\r\n");
	} else if (*c->at == '\'' || *c->at == '"') {
		skip_string(c);
	} else {
		c->depth += strchr("([{", *c->at) ? 1 : strchr(")]}", *c->at) ? -1 : 0;
		c->at++;
	}
}

/* Goes to the start of the line. Returns false when the text has no such line. */
static bool go_to(struct cursor *c, int32_t line)
{
	while (c->line < line && *c->at) {
		size_t end = line_end(c->at);

		c->line += end > 0;
		c->at += end ?: 1;
	}
	return c->line == line && *c->at;
}

static size_t indent_of(const char *at)
{
	size_t columns = 0;

	for (; *at == ' ' || *at == '\t' || *at == '\f'; at++)
		columns = *at == '\t' ? (columns | 7) + 1 : *at == '\f' ? 0 : columns + 1;
	return columns;
}

/* Returns where the word is in the text, or NULL; an empty one is nowhere. is_whole: no letter stands before or behind
 * it. */
static const char *find_word(const char *text, const char *end, const char *word, size_t len, bool is_whole)
{
	const char *at = text;

	while (len && (at = memmem(at, (size_t)(end - at), word, len))) {
		if (!is_whole || ((at == text || !is_word_char(at[-1])) && (at + len == end || !is_word_char(at[len]))))
			return at;
		at++;
	}
	return NULL;
}

static bool has_word(const char *text, const char *end, const char *word, bool is_whole)
{
	return find_word(text, end, word, strlen(word), is_whole) != NULL;
}

/* Returns the name without the classes and functions that it is in. */
static const char *last_name(const char *name)
{
	const char *last = strrchr(name, '.');

	return last ? last + 1 : name;
}

/* A name that is not ASCII may be written otherwise: in another encoding, or with other characters (PEP 3131). */
static bool is_ascii(const char *name)
{
	for (; *name; name++) {
		if (*name & 0x80)
			return false;
	}
	return true;
}

/* Returns whether the line defines that name: "def", "class", "type", and what languages that compile to Python have.
 */
static bool defines(const char *line, const char *name)
{
	const char *end = line + strcspn(line, "\r\n");
	const char *at = is_ascii(name) ? find_word(line, end, name, strlen(name), true) : end;
	static const char *const words[] = {"def", "class", "type"};

	for (size_t i = 0; at && i < sizeof(words) / sizeof(words[0]); i++) {
		const char *word = memmem(line, (size_t)(at - line), words[i], strlen(words[i]));

		/* Arguments are defined by no word. */
		if (word && !is_word_char(word[strlen(words[i])]) &&
		    (at == end || !memchr(word, '(', (size_t)(at - word))))
			return true;
	}
	return false;
}

/* A function or class of the source, by its first line and the end of its block. */
struct block {
	const char *begin, *end;
	int32_t end_line; /* the first one behind it */
};

/*
 * Finds the block of a function that begins here, with its decorators. Returns false when there is another one, or
 * none.
 */
static bool find_block(struct cursor c, const char *name, struct block *out)
{
	const char *begin = c.at + strspn(c.at, " \t\f");
	size_t indent = indent_of(c.at);
	bool defined = false;

	if (line_end(begin) || *begin == '#')
		return false;
	out->begin = c.at;
	for (c.is_begin = true; *c.at;) {
		const char *first = c.at + strspn(c.at, " \t\f");

		if (c.is_begin && *first && !line_end(first) && *first != '#') {
			if (defined && indent_of(c.at) <= indent)
				break;
			if (!defined && *first != '@' && !defines(first, name))
				return false;
			defined |= *first != '@';
		}
		c.is_begin = false;
		step(&c);
	}
	out->end = c.at;
	out->end_line = *c.at ? c.line : INT32_MAX;
	return defined;
}

/* "_Class__name" is written "__name". */
static const char *unmangled(const char *word)
{
	const char *plain = word[0] == '_' && word[1] != '_' ? strstr(word, "__") : NULL;

	return plain && plain[2] ? plain : NULL;
}

static bool is_added(const char *word)
{
	size_t len = strlen(word);

	for (size_t i = 0; i < sizeof(added) / sizeof(added[0]); i++) {
		if (strcmp(word, added[i]) == 0)
			return true;
	}
	/* The parts of an assert are "py0", "py2" and so on. */
	return (len > 4 && !strncmp(word, "__", 2) && !strcmp(word + len - 2, "__")) ||
	       (!strncmp(word, "py", 2) && len > 2 && strspn(word + 2, "0123456789") == len - 2);
}

/* Returns whether some quote stands behind, or before, the part of a word. */
static bool has_quoted(const char *begin, const char *end, const char *part, size_t len, bool behind)
{
	for (const char *at = begin; (at = find_word(at, end, part, len, false)); at++) {
		const char *quote = behind ? at + len : at - 1;

		if (quote >= begin && quote < end && (*quote == '"' || *quote == '\''))
			return true;
	}
	return false;
}

/* Longest text in which that is looked for: it takes some eighty looks at it. */
#define PARTS_MAX (256 * 1024)

/* A compiler puts strings together that stand one behind the other, or are added. */
static bool has_two_parts(const char *begin, const char *end, const char *word)
{
	size_t len = end - begin <= PARTS_MAX ? strlen(word) : 0;

	for (size_t i = 1; i < len; i++) {
		if (has_quoted(begin, end, word, i, true) && has_quoted(begin, end, word + i, len - i, false))
			return true;
	}
	return false;
}

static bool has(const char *begin, const char *end, char kind, const char *word)
{
	const char *plain = unmangled(word);

	if (is_added(word) || has_word(begin, end, word, kind == PYSYM_WORD_NAME))
		return true;
	if (kind == PYSYM_WORD_STRING)
		return has_two_parts(begin, end, word);
	return plain && has_word(begin, end, plain, true);
}

/* until_ns: CPU time of this thread at which it is given up. */
static bool has_words(const char *begin, const char *end, const struct source_claim *claim, uint64_t until_ns)
{
	const char *at = claim->words;

	for (size_t left = claim->words ? claim->words_size : 0, size; left; left -= size, at += size) {
		size = strlen(at) + 1;
		if (!has(begin, end, *at, at + 1) || clock_ns(CLOCK_THREAD_CPUTIME_ID) > until_ns)
			return false;
	}
	return true;
}

static bool fits(const char *text, const struct source_claim *claim, uint64_t until_ns)
{
	const char *name = last_name(claim->name), *end = text + strlen(text);
	struct cursor c = {.at = text, .line = 1};
	struct block block;

	/* A module's first line is 0 or 1, and an empty line has no function. */
	if (claim->first_line > 1 && !go_to(&c, claim->first_line))
		return false;
	block = (struct block){.begin = c.at, .end = end, .end_line = INT32_MAX};
	if (strcmp(name, "<lambda>") == 0 && !has_word(c.at, c.at + strcspn(c.at, "\r\n"), "lambda", true))
		return false;
	/* Others of these, and functions for annotations (3.14+), have no name in the source. */
	if (name[0] != '<' && strcmp(name, "__annotate__") != 0 && !find_block(c, name, &block))
		return false;
	if (claim->line >= block.end_line || (claim->line > claim->first_line && !go_to(&c, claim->line)))
		return false;
	return has_words(block.begin, block.end, claim, until_ns);
}

bool source_fits(const char *text, const struct source_claim *claim)
{
	return fits(text, claim, UINT64_MAX);
}

/* A code object, and its claim; name and words are its own. */
struct function {
	uint64_t proc_id, code;
	uint32_t sig;
	uint32_t pad;
	struct source_claim claim;
};
#define FUNCTION_KEY (2 * sizeof(uint64_t) + sizeof(uint32_t))

void source_claims_init(struct source_claims *claims)
{
	intern_init(&claims->functions, sizeof(struct function), FUNCTION_KEY);
}

int source_claims_add(struct source_claims *claims, struct pysym *pysym, const struct stacks_function *met)
{
	struct function function = {.proc_id = met->proc_id, .code = met->walked->code, .sig = met->walked->sig};
	uint32_t i = intern_find(&claims->functions, &function);
	struct source_claim *claim = &function.claim;

	if (i != INTERN_NONE) {
		claim = &((struct function *)intern_item(&claims->functions, i))->claim;
		claim->line = met->named->line > claim->line ? met->named->line : claim->line;
		return 0;
	}
	claim->first_line = met->named->first_line;
	claim->line = met->named->line;
	claim->words = pysym_read_words(pysym, met->proc_id, met->runtime, met->walked, &claim->words_size);
	claim->name = strdup(met->named->name);
	if (claim->name && intern_add(&claims->functions, &function, &(bool){false}) != INTERN_NONE)
		return 0;
	free((char *)claim->name);
	free((char *)claim->words);
	return -ENOMEM;
}

bool source_fits_all(const char *text, const struct source_claims *claims, uint64_t *left_ns)
{
	uint64_t begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID), took_ns;
	bool all = true;

	for (uint32_t i = 0; i < claims->functions.count && all; i++) {
		const struct function *function = intern_item(&claims->functions, i);

		all = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns <= *left_ns &&
		      fits(text, &function->claim, begin_ns + *left_ns);
	}
	took_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
	*left_ns -= took_ns < *left_ns ? took_ns : *left_ns;
	return all;
}

void source_claims_free(struct source_claims *claims)
{
	for (uint32_t i = 0; i < claims->functions.count; i++) {
		struct function *function = intern_item(&claims->functions, i);

		free((char *)function->claim.name);
		free((char *)function->claim.words);
	}
	intern_free(&claims->functions);
}

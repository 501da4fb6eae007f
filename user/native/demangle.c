// SPDX-License-Identifier: Apache-2.0
/*
 * libiberty demangles. Its callback cannot end it, and a short name whose parts refer to each other can have any
 * length: where there is no more room, it is left by longjmp().
 */
#include "native/demangle.h"

#include <ctype.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

/* Most bytes of a demangled name before it is shortened: some 20 times those of the linker's name. */
#define TEXT_MAX (32 * 1024)
/*
 * Most bytes of a list of template arguments, and of one in such a list; the last arguments, that find no room, are
 * left out. std::map<Key, ...> shows which keys it has, and not how they are allocated.
 */
#define LIST_MAX  64
#define INNER_MAX 32
/* Most brackets that are open at one place; what lies deeper is not shortened. */
#define DEPTH_MAX 256
/*
 * libiberty holds memory for identifiers in Punycode, at most some 8 KiB, when it is left. After that many times the
 * newer names of Rust, the only ones that have such, stay as they are in this helper process.
 */
#define LEAKS_MAX 256

struct text {
	char bytes[TEXT_MAX];
	size_t size;
	jmp_buf no_room;
};

static void take(const char *bytes, size_t size, void *arg)
{
	struct text *text = arg;

	if (size >= sizeof(text->bytes) - text->size)
		longjmp(text->no_room, 1);
	/* An identifier of a damaged name may be NULL, without a byte. */
	if (size)
		memcpy(text->bytes + text->size, bytes, size);
	text->size += size;
}

static bool demangle(const char *symbol, struct text *text)
{
	static unsigned leaks;

	if (symbol[0] != '_' || (symbol[1] == 'R' && leaks == LEAKS_MAX))
		return false;
	text->size = 0;
	if (setjmp(text->no_room)) {
		leaks += symbol[1] == 'R';
		return false;
	}
	/* Rust's older names are C++'s, with a hash and with letters in place of signs. */
	if (!rust_demangle_callback(symbol, DMGL_NO_OPTS, take, text)) {
		text->size = 0;
		if (!cplus_demangle_v3_callback(symbol, DMGL_NO_OPTS, take, text))
			return false;
	}
	text->bytes[text->size] = '\0';
	return text->size > 0;
}

struct bracket {
	char close;
	bool is_list;  /* of template arguments, or of parameters */
	bool is_call;  /* of parameters */
	ptrdiff_t max; /* bytes that are shown of such a list, and of lists in it */
	char *begin;   /* the bracket that opens it, in what is written */
	char *kept;    /* the end of the last item that has room; NULL: none has */
};

struct shortening {
	const char *from;
	char *begin, *to; /* both in the same text: it never grows */
	struct bracket open[DEPTH_MAX];
	size_t depth;
};

static bool is_of_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c & 0x80;
}

/* Operators whose signs are not brackets, the longest first. Returns the bytes of one, with its word, or 0. */
static size_t operator_length(const struct shortening *s)
{
	static const char word[] = "operator";
	static const char *const signs[] = {"()", "[]", "<=>", "<<=", ">>=", "->*", "<<",
					    ">>", "<=", ">=",  "->",  "<",   ">"};
	const char *at = s->from + strlen(word);

	if (strncmp(s->from, word, strlen(word)) != 0 || (s->to > s->begin && is_of_name(s->to[-1])))
		return 0;
	for (size_t i = 0; i < sizeof(signs) / sizeof(*signs); i++) {
		if (!strncmp(at, signs[i], strlen(signs[i])))
			return strlen(word) + strlen(signs[i]);
	}
	return 0;
}

static ptrdiff_t max_of_next(const struct shortening *s)
{
	const struct bracket *outer = s->depth ? &s->open[s->depth - 1] : NULL;

	if (!outer)
		return LIST_MAX;
	return outer->is_list ? INNER_MAX : outer->max;
}

static void open_bracket(struct shortening *s, char close)
{
	char before = s->to > s->begin ? s->to[-1] : ' ';
	/* Others are not lists: the type in Rust's <T as Trait>::f, (anonymous namespace)::f, {lambda(int)#1}. */
	bool is_call = close == ')' && (is_of_name(before) || strchr(">)]", before));
	bool is_list = is_call || (close == '>' && (is_of_name(before) || strchr(":)]", before)));

	if (s->depth < DEPTH_MAX)
		s->open[s->depth] = (struct bracket){
			.close = close, .is_list = is_list, .is_call = is_call, .max = max_of_next(s), .begin = s->to};
	s->depth++;
}

/* Behind the parameters of a function in which this one is, its qualifiers may stand. Returns what follows, or NULL. */
static const char *skip_to_inner(const char *at)
{
	static const char *const qualifiers[] = {" const", " volatile", " &&", " &"};

	for (size_t i = 0; i < sizeof(qualifiers) / sizeof(*qualifiers); i++) {
		if (!strncmp(at, qualifiers[i], strlen(qualifiers[i])))
			at += strlen(qualifiers[i]);
	}
	return strncmp(at, "::", 2) ? NULL : at;
}

/* The bracket is written already. */
static void close_bracket(struct shortening *s, const struct bracket *open)
{
	static const char rest[] = ", ...";
	const char *inner = open->is_call ? skip_to_inner(s->from) : NULL;

	if (inner) {
		s->to = open->begin;
		s->from = inner;
		return;
	}
	if (!open->is_list || s->to - open->begin <= open->max)
		return;
	if (!open->kept)
		s->to = stpcpy(open->begin + 1, "...");
	else if (s->to - open->kept > (ptrdiff_t)strlen(rest))
		s->to = stpcpy(open->kept, rest);
	else
		return;
	*s->to++ = open->close;
}

/* A bracket that was not closed, as the sign in (a<b), is a sign. */
static void try_close(struct shortening *s, char c)
{
	size_t depth = s->depth;

	if (depth > DEPTH_MAX) {
		s->depth--;
		return;
	}
	while (depth && s->open[depth - 1].close != c && s->open[depth - 1].close == '>')
		depth--;
	if (!depth || s->open[depth - 1].close != c)
		return;
	s->depth = depth - 1;
	close_bracket(s, &s->open[s->depth]);
}

static void end_item(struct shortening *s)
{
	struct bracket *open = s->depth && s->depth <= DEPTH_MAX ? &s->open[s->depth - 1] : NULL;

	if (open && s->to - open->begin <= open->max)
		open->kept = s->to;
}

static void shorten_sign(struct shortening *s)
{
	static const char opens[] = "<([{", closes[] = ">)]}";
	const char *open = strchr(opens, *s->from), *close = strchr(closes, *s->from);
	bool is_arrow = *s->from == '>' && s->to > s->begin && s->to[-1] == '-';

	if (open)
		open_bracket(s, closes[open - opens]);
	if (*s->from == ',')
		end_item(s);
	/* Until C++11 >> was always a shift, so libiberty puts a space between them. */
	if (*s->from == '>' && s->depth && s->to[-1] == ' ')
		s->to--;
	*s->to++ = *s->from++;
	if (close && !is_arrow)
		try_close(s, s->to[-1]);
}

/* Calls strings of libstdc++ and libc++ what people call them. Returns whether there was one. */
static bool shorten_string(struct shortening *s)
{
	static const char *const names[] = {
		"std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >",
		"std::__1::basic_string<char, std::__1::char_traits<char>, std::__1::allocator<char> >",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (strncmp(s->from, names[i], strlen(names[i])) != 0)
			continue;
		s->to = stpcpy(s->to, "std::string");
		s->from += strlen(names[i]);
		return true;
	}
	return false;
}

/* Returns the bytes of an ABI tag, [abi:cxx11], which is in no source's name, or 0. */
static size_t tag_length(const char *at)
{
	static const char begin[] = "[abi:";
	size_t length = strlen(begin);

	if (strncmp(at, begin, length) != 0)
		return 0;
	length += strcspn(at + length, "[]");
	return at[length] == ']' ? length + 1 : 0;
}

/*
 * numba writes the brackets of Python's <locals> and <lambda> in hexadecimal digits. Returns whether there was such a
 * word.
 */
static bool restore_brackets(struct shortening *s)
{
	static const char *const words[][2] = {{"_3clocals_3e", "<locals>"}, {"_3clambda_3e", "<lambda>"}};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		size_t length = strlen(words[i][0]);

		if (strncmp(s->from, words[i][0], length) != 0)
			continue;
		s->to = stpcpy(s->to, words[i][1]);
		s->from += length;
		return true;
	}
	return false;
}

static void shorten(struct text *text)
{
	struct shortening s = {.from = text->bytes, .begin = text->bytes, .to = text->bytes};

	while (*s.from) {
		size_t length = operator_length(&s), tag = tag_length(s.from);

		s.from += tag;
		if (tag)
			continue;
		if (length) {
			memmove(s.to, s.from, length);
			s.to += length;
			s.from += length;
		} else if (!shorten_string(&s) && !restore_brackets(&s)) {
			shorten_sign(&s);
		}
	}
	*s.to = '\0';
	text->size = (size_t)(s.to - text->bytes);
}

/* Does not cut a character of UTF-8 in two. */
static void copy(const char *text, char *out, size_t size)
{
	static const char end[] = "...";
	size_t kept;

	if ((size_t)snprintf(out, size, "%s", text) < size)
		return;
	for (kept = size - sizeof(end); kept && (text[kept] & 0xc0) == 0x80; kept--)
		;
	memcpy(out + kept, end, sizeof(end));
}

static void cut_clone(char *name)
{
	static const char *const marks[] = {".cold",      ".part.",      ".constprop.", ".isra.",
					    ".lto_priv.", ".localalias", ".llvm."};

	for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++) {
		char *at = strstr(name, marks[i]);

		if (at && at != name)
			*at = '\0';
	}
}

/* Returns the bytes that numba puts before the name of a function for callers in C, or 0. */
static size_t callback_length(const char *name)
{
	static const char begin[] = "cfunc.";

	return strncmp(name, begin, strlen(begin)) || name[strlen(begin)] != '_' ? 0 : strlen(begin);
}

bool native_demangle(const char *symbol, char *out, size_t size)
{
	static struct text text;
	size_t begin = callback_length(symbol);
	char name[NATIVE_SYMBOL_MAX], *version;
	bool is_whole = (size_t)snprintf(name, sizeof(name), "%s", symbol) < sizeof(name);

	version = *name ? strchr(name + 1, '@') : NULL;
	if (version)
		*version = '\0';
	if (begin + sizeof("...") < size && (is_whole || version) && demangle(name + begin, &text)) {
		shorten(&text);
		memcpy(out, name, begin);
		copy(text.bytes, out + begin, size - begin);
		return true;
	}
	cut_clone(name);
	copy(name, out, size);
	return false;
}

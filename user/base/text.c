// SPDX-License-Identifier: Apache-2.0
/* Escapes texts of other programs for a terminal, JSON and XML. */
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* Returns the length of the well-formed UTF-8 sequence (Unicode, table 3-7) that text begins with, or 0. */
static size_t sequence(const unsigned char *text)
{
	unsigned char low = 0x80, high = 0xbf;
	size_t len;

	if (text[0] < 0x80)
		return 1;
	if (text[0] < 0xc2 || text[0] > 0xf4)
		return 0;
	len = text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
	/* Excludes overlong forms, surrogates, and code points above U+10FFFF. */
	if (text[0] == 0xe0)
		low = 0xa0;
	else if (text[0] == 0xed)
		high = 0x9f;
	else if (text[0] == 0xf0)
		low = 0x90;
	else if (text[0] == 0xf4)
		high = 0x8f;
	if (text[1] < low || text[1] > high)
		return 0;
	for (size_t i = 2; i < len; i++)
		if (text[i] < 0x80 || text[i] > 0xbf)
			return 0;
	return len;
}

/* Returns the code point of a well-formed UTF-8 sequence. */
static unsigned code_point(const unsigned char *text, size_t len)
{
	if (len == 1)
		return text[0];
	if (len == 2)
		return (text[0] & 0x1fu) << 6 | (text[1] & 0x3fu);
	if (len == 3)
		return (text[0] & 0x0fu) << 12 | (text[1] & 0x3fu) << 6 | (text[2] & 0x3fu);
	return (text[0] & 0x07u) << 18 | (text[1] & 0x3fu) << 12 | (text[2] & 0x3fu) << 6 | (text[3] & 0x3fu);
}

/*
 * Returns whether a character is seen only by its effect on its neighbours. In order: controls (Cc); line and paragraph
 * separators; the bidirectional algorithm's marks, embeddings, overrides and isolates (UAX 9, section 2); other
 * characters without width (Default_Ignorable_Code_Point, Unicode 15's DerivedCoreProperties.txt) and interlinear
 * annotations.
 */
static bool is_unseen(unsigned c)
{
	static const struct {
		unsigned first, last;
	} ranges[] = {
		{0x00, 0x1f},     {0x7f, 0x9f},       {0xad, 0xad},       {0x34f, 0x34f},     {0x61c, 0x61c},
		{0x115f, 0x1160}, {0x17b4, 0x17b5},   {0x180b, 0x180f},   {0x200b, 0x200f},   {0x2028, 0x202e},
		{0x2060, 0x206f}, {0x3164, 0x3164},   {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},
		{0xfff0, 0xfffb}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
	};

	if (c >= 0x20 && c < 0x7f)
		return false;
	for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges) && c >= ranges[i].first; i++)
		if (c <= ranges[i].last)
			return true;
	return false;
}

size_t text_character(const char *text, bool *plain)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t len = sequence(p);

	*plain = len && !is_unseen(code_point(p, len));
	return len ?: 1;
}

/*
 * Writes the next character to `to`, which has room for PRINTABLE_MAX bytes; *size: the number of bytes written.
 * Returns the rest of the text.
 */
#define PRINTABLE_MAX 16
static const char *printable(const char *text, char *to, size_t *size)
{
	static const char digits[] = "0123456789abcdef";
	bool plain;
	size_t len = text_character(text, &plain);
	char *at = to;

	for (size_t i = 0; i < len; i++, text++) {
		if (plain) {
			*at++ = *text;
			continue;
		}
		*at++ = '\\';
		*at++ = 'x';
		*at++ = digits[(unsigned char)*text >> 4];
		*at++ = digits[*text & 15];
	}
	*size = (size_t)(at - to);
	return text;
}

char *text_printable(const char *text)
{
	char *out = malloc(4 * strlen(text) + PRINTABLE_MAX), *to = out;
	size_t size;

	if (!out)
		return NULL;
	for (; *text; to += size)
		text = printable(text, to, &size);
	*to = '\0';
	return out;
}

const char *text_put(const char *text, char *out, size_t room, size_t *size)
{
	size_t added;

	for (*size = 0; *text && *size + PRINTABLE_MAX <= room; *size += added)
		text = printable(text, out + *size, &added);
	return text;
}

void text_print(const char *text, FILE *out)
{
	char some[256];
	size_t size;

	while (*text) {
		text = text_put(text, some, sizeof(some), &size);
		fwrite(some, 1, size, out);
	}
}

/*
 * Returns whether a terminal may give a character two columns: East_Asian_Width W or F in Unicode 15's
 * EastAsianWidth.txt. Ranges of symbols are taken whole, though not all of their characters are wide: a text may come
 * out narrower than it was measured, never wider.
 */
static bool is_wide(unsigned c)
{
	static const struct {
		unsigned first, last;
	} ranges[] = {
		{0x1100, 0x115f},   {0x231a, 0x231b}, {0x2329, 0x232a}, {0x23e9, 0x23f3},   {0x25fd, 0x25fe},
		{0x2614, 0x2615},   {0x2648, 0x2653}, {0x267f, 0x27bf}, {0x2b1b, 0x2b55},   {0x2e80, 0x303e},
		{0x3041, 0xa4cf},   {0xa960, 0xa97c}, {0xac00, 0xd7a3}, {0xf900, 0xfaff},   {0xfe10, 0xfe19},
		{0xfe30, 0xfe6b},   {0xff01, 0xff60}, {0xffe0, 0xffe6}, {0x16fe0, 0x1b2ff}, {0x1f000, 0x1faff},
		{0x20000, 0x3fffd},
	};

	if (c < ranges[0].first)
		return false;
	for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges) && c >= ranges[i].first; i++)
		if (c <= ranges[i].last)
			return true;
	return false;
}

size_t text_measure(const char *text, size_t *columns)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t len = sequence(p);

	*columns = len && is_wide(code_point(p, len)) ? 2 : 1;
	return len ?: 1;
}

size_t text_width(const char *text)
{
	size_t width = 0, columns;

	for (; *text; width += columns)
		text += text_measure(text, &columns);
	return width;
}

size_t text_fit(const char *text, size_t width)
{
	size_t len = 0, columns;

	while (text[len]) {
		size_t next = text_measure(text + len, &columns);

		if (columns > width)
			break;
		width -= columns;
		len += next;
	}
	return len;
}

/* Returns the end of the text that fills at most that many columns. */
static const char *fitting_end(const char *text, size_t width)
{
	size_t over = text_width(text), columns;

	while (over > width) {
		text += text_measure(text, &columns);
		over -= columns;
	}
	return text;
}

/* Returns the text with an ellipsis behind its first columns; the rest of the width is of its end. */
static char *shorten(const char *text, size_t width, size_t first)
{
	const size_t dots = strlen(TEXT_ELLIPSIS);
	char *out = NULL;

	if (text_width(text) <= width)
		return strdup(text);
	if (width <= dots)
		return strndup(TEXT_ELLIPSIS, width);
	if (asprintf(&out, "%.*s" TEXT_ELLIPSIS "%s", (int)text_fit(text, first), text,
		     fitting_end(text, width - dots - first)) < 0)
		return NULL;
	return out;
}

char *text_shorten(const char *text, size_t width)
{
	const size_t dots = strlen(TEXT_ELLIPSIS);

	return shorten(text, width, width > dots ? (width - dots + 1) / 2 : 0);
}

char *text_keep_end(const char *text, size_t width)
{
	return shorten(text, width, 0);
}

void text_wrap(const char *text, size_t at, size_t indent, size_t width, FILE *out)
{
	bool first = true;

	while (*text) {
		size_t length = strcspn(text, " \n"), fits = width > indent ? text_fit(text, width - indent) : length;

		length = fits < length ? fits : length;
		if (!first && width && at + 1 + length > width) {
			fprintf(out, "\n%*s", (int)indent, "");
			at = indent;
			first = true;
		}
		fprintf(out, "%s%.*s", first ? "" : " ", (int)length, text);
		at += length + !first;
		first = text[length] == '\n';
		if (first) {
			fprintf(out, "\n%*s", (int)indent, "");
			at = indent;
		}
		text += length;
		text += *text == ' ' || *text == '\n';
	}
	fputc('\n', out);
}

/* Writes a code point as JSON's escapes, in UTF-16. */
static void json_escape(unsigned c, FILE *out)
{
	if (c < 0x10000)
		fprintf(out, "\\u%04x", c);
	else
		fprintf(out, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10), 0xdc00 + ((c - 0x10000) & 0x3ff));
}

/* Writes a JSON string. Characters of `escaped` become \uNNNN; quotes and backslashes are always escaped. */
static void write_json(const char *text, const char *escaped, FILE *out)
{
	const char *from = text; /* start of the text that is not written yet and needs no escape */

	fputc('"', out);
	while (*text) {
		bool plain;
		size_t len = text_character(text, &plain);

		if (plain && *text != '"' && *text != '\\' && !strchr(escaped, *text)) {
			text += len;
			continue;
		}
		fwrite(from, 1, (size_t)(text - from), out);
		if ((*text == '"' || *text == '\\') && !strchr(escaped, *text))
			fprintf(out, "\\%c", *text);
		else if (sequence((const unsigned char *)text))
			json_escape(code_point((const unsigned char *)text, len), out);
		else
			fputs("\\ufffd", out);
		text += len;
		from = text;
	}
	fwrite(from, 1, (size_t)(text - from), out);
	fputc('"', out);
}

void text_json(const char *text, FILE *out)
{
	write_json(text, "<>&", out);
}

void text_json_bare(const char *text, FILE *out)
{
	write_json(text, "\\", out);
}

void text_xml(const char *text, size_t size, FILE *out)
{
	const char *end = text + size;

	while (text < end && *text) {
		bool plain;
		size_t len = text_character(text, &plain);

		if (len > (size_t)(end - text))
			break;
		/* U+FFFE and U+FFFF are not among XML's characters. */
		if (!plain || strncmp(text, "\xef\xbf\xbe", 3) == 0 || strncmp(text, "\xef\xbf\xbf", 3) == 0)
			fputs("\xef\xbf\xbd", out);
		else if (strchr("<>&\"'", *text))
			fprintf(out, "&#%d;", *text);
		else
			fwrite(text, 1, len, out);
		text += len;
	}
}

const char *text_s(uint64_t n)
{
	return n == 1 ? "" : "s";
}

const char *text_es(uint64_t n)
{
	return n == 1 ? "" : "es";
}

const char *text_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

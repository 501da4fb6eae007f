// SPDX-License-Identifier: Apache-2.0
#include "text.h"

#include <stdlib.h>
#include <string.h>

/* Length of the well-formed UTF-8 sequence (Unicode, table 3-7) that text begins with, or 0. */
static size_t sequence(const unsigned char *text)
{
	unsigned char low = 0x80, high = 0xbf;
	size_t len;

	if (text[0] < 0x80)
		return 1;
	if (text[0] < 0xc2 || text[0] > 0xf4)
		return 0;
	len = text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
	/* Overlong forms, surrogates, and what lies above U+10FFFF. */
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

static bool is_control(const unsigned char *text)
{
	return text[0] < 0x20 || text[0] == 0x7f || (text[0] == 0xc2 && text[1] < 0xa0);
}

/*
 * Marks, embeddings, overrides and isolates of Unicode's bidirectional algorithm (UAX 9, section 2), and its line and
 * paragraph separators.
 */
static bool is_layout(const unsigned char *text)
{
	if (text[0] == 0xd8)
		return text[1] == 0x9c; /* U+061C */
	if (text[0] != 0xe2)
		return false;
	if (text[1] == 0x80)
		return text[2] == 0x8e || text[2] == 0x8f ||
		       (text[2] >= 0xa8 && text[2] <= 0xae);          /* U+200E.., U+2028.. */
	return text[1] == 0x81 && text[2] >= 0xa6 && text[2] <= 0xa9; /* U+2066.. */
}

size_t text_character(const char *text, bool *plain)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t len = sequence(p);

	*plain = len && !is_control(p) && !(len > 1 && is_layout(p));
	return len ?: 1;
}

char *text_printable(const char *text)
{
	static const char digits[] = "0123456789abcdef";
	char *out = malloc(4 * strlen(text) + 1), *to = out;

	if (!out)
		return NULL;
	while (*text) {
		bool plain;
		size_t len = text_character(text, &plain);

		for (size_t i = 0; i < len; i++, text++) {
			if (plain) {
				*to++ = *text;
				continue;
			}
			*to++ = '\\';
			*to++ = 'x';
			*to++ = digits[(unsigned char)*text >> 4];
			*to++ = digits[*text & 15];
		}
	}
	*to = '\0';
	return out;
}

char *text_utf8(const char *text)
{
	static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */
	char *out = malloc(3 * strlen(text) + 1), *to = out;

	if (!out)
		return NULL;
	while (*text) {
		size_t len = sequence((const unsigned char *)text);

		if (len)
			to = mempcpy(to, text, len);
		else
			to = mempcpy(to, replacement, strlen(replacement));
		text += len ?: 1;
	}
	*to = '\0';
	return out;
}

size_t text_width(const char *text)
{
	size_t width = 0;

	for (; *text; text++)
		width += (*text & 0xc0) != 0x80;
	return width;
}

size_t text_fit(const char *text, size_t width)
{
	size_t len = 0;

	while (text[len] && (width || (text[len] & 0xc0) == 0x80)) {
		width -= (text[len] & 0xc0) != 0x80;
		len++;
	}
	return len;
}

/* Of a well-formed sequence of UTF-8, all of which is below U+10000. */
static unsigned code_point(const unsigned char *text, size_t len)
{
	if (len == 1)
		return text[0];
	if (len == 2)
		return (text[0] & 0x1fu) << 6 | (text[1] & 0x3fu);
	return (text[0] & 0x0fu) << 12 | (text[1] & 0x3fu) << 6 | (text[2] & 0x3fu);
}

void text_json(const char *text, FILE *out)
{
	const char *from = text; /* what is not yet written, and stands for itself */

	fputc('"', out);
	while (*text) {
		bool plain;
		size_t len = text_character(text, &plain);

		if (plain && !strchr("\"\\<>&", *text)) {
			text += len;
			continue;
		}
		fwrite(from, 1, (size_t)(text - from), out);
		if (*text == '"' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else if (sequence((const unsigned char *)text))
			fprintf(out, "\\u%04x", code_point((const unsigned char *)text, len));
		else
			fputs("\\ufffd", out);
		text += len;
		from = text;
	}
	fwrite(from, 1, (size_t)(text - from), out);
	fputc('"', out);
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

// SPDX-License-Identifier: Apache-2.0
#include "text.h"

#include <stdbool.h>
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

char *text_printable(const char *text)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *p = (const unsigned char *)text;
	char *out = malloc(4 * strlen(text) + 1), *to = out;

	if (!out)
		return NULL;
	while (*p) {
		size_t len = sequence(p);
		bool escape = !len || is_control(p);

		for (size_t i = 0; i < (len ?: 1); i++, p++) {
			if (!escape) {
				*to++ = (char)*p;
				continue;
			}
			*to++ = '\\';
			*to++ = 'x';
			*to++ = digits[*p >> 4];
			*to++ = digits[*p & 15];
		}
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

void text_json(const char *text, FILE *out)
{
	const unsigned char *p = (const unsigned char *)text;

	fputc('"', out);
	while (*p) {
		size_t len = sequence(p);

		if (!len)
			fputs("\\ufffd", out);
		else if (*p == '"' || *p == '\\')
			fprintf(out, "\\%c", *p);
		else if (*p < 0x20 || *p == 0x7f || *p == '<' || *p == '>' || *p == '&')
			fprintf(out, "\\u%04x", *p);
		else
			fwrite(p, 1, len, out);
		p += len ?: 1;
	}
	fputc('"', out);
}

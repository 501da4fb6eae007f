// SPDX-License-Identifier: Apache-2.0
/* Adds to a text of bounded length; quotes as CPython's repr() does (unicode_repr in Objects/unicodeobject.c). */
#include "symbols/objects/py_out.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Digits that tell any double from all others. */
#define DOUBLE_DIGITS 17
/* repr() uses an exponent from 10^16 on, and below 10^-4 (float_repr_style short). */
#define FIXED_MOST  16
#define FIXED_LEAST (-4)
/* Decimal digits of a step of the conversion. */
#define STEP        1000000000u
#define STEP_DIGITS 9

void py_out_begin(struct py_out *out, size_t room)
{
	out->size = 0;
	out->room = room < PY_OUT_MAX ? room : PY_OUT_MAX;
	out->full = false;
	out->nr_marks = 0;
}

void py_out_add(struct py_out *out, const char *bytes, size_t size)
{
	size_t left = out->room - out->size;

	if (out->full)
		return;
	if (size > left) {
		out->full = true;
		size = left;
		/* Not a part of a character. */
		while (size && ((unsigned char)bytes[size] & 0xc0) == 0x80)
			size--;
	}
	memcpy(out->bytes + out->size, bytes, size);
	out->size += size;
}

void py_out_text(struct py_out *out, const char *text)
{
	py_out_add(out, text, strlen(text));
}

void py_out_print(struct py_out *out, const char *fmt, ...)
{
	char text[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	py_out_text(out, text);
}

void py_out_mark(struct py_out *out, size_t begin, uint64_t object)
{
	if (!out->full && out->nr_marks < PY_OUT_MARKS)
		out->marks[out->nr_marks++] =
			(struct py_mark){.begin = (uint32_t)begin, .at = (uint32_t)out->size, .object = object};
}

static void drop_marks_from(struct py_out *out, size_t size)
{
	while (out->nr_marks && out->marks[out->nr_marks - 1].at >= size)
		out->nr_marks--;
}

/* Drops the marks of a part of the text that another one replaces, and moves those behind it. */
static void move_marks(struct py_out *out, size_t from, size_t to, size_t end)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < out->nr_marks; i++) {
		struct py_mark mark = out->marks[i];

		if (mark.at > from && mark.at <= to)
			continue;
		mark.at = mark.at > to ? (uint32_t)(mark.at - to + end) : mark.at;
		mark.begin = mark.begin >= to ? (uint32_t)(mark.begin - to + end) : mark.begin;
		out->marks[kept++] = mark;
	}
	out->nr_marks = kept;
}

void py_out_return(struct py_out *out, size_t size)
{
	if (size > out->size)
		return;
	out->size = size;
	out->full = false;
	drop_marks_from(out, size);
}

void py_out_replace(struct py_out *out, size_t from, size_t to, const char *text)
{
	size_t size = strlen(text), behind, end;

	if (from > to || to > out->size)
		return;
	size = size < out->room - from ? size : out->room - from;
	behind = out->size - to;
	end = from + size;
	if (behind > out->room - end) {
		out->full = true;
		behind = out->room - end;
		/* Not a part of a character. */
		while (behind && ((unsigned char)out->bytes[to + behind] & 0xc0) == 0x80)
			behind--;
	}
	memmove(out->bytes + end, out->bytes + to, behind);
	memcpy(out->bytes + from, text, size);
	out->size = end + behind;
	move_marks(out, from, to, end);
	drop_marks_from(out, out->size);
}

void py_out_end(struct py_out *out)
{
	drop_marks_from(out, out->size);
	if (out->full) {
		memcpy(out->bytes + out->size, PY_OUT_MORE, strlen(PY_OUT_MORE));
		out->size += strlen(PY_OUT_MORE);
	}
	out->full = true;
	out->bytes[out->size] = '\0';
}

static uint32_t unit_at(const uint8_t *units, size_t i, unsigned unit)
{
	uint32_t cp = 0;

	memcpy(&cp, units + i * unit, unit);
	return cp;
}

/*
 * Returns whether str.isprintable() is false: characters of the categories Other and Separator but the blank. Those
 * that no version of Unicode has assigned are not in this table.
 */
static bool is_escaped(uint32_t cp)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{0x00, 0x1f},        {0x7f, 0xa0},       {0xad, 0xad},       {0x600, 0x605},     {0x61c, 0x61c},
		{0x6dd, 0x6dd},      {0x70f, 0x70f},     {0x890, 0x891},     {0x8e2, 0x8e2},     {0x1680, 0x1680},
		{0x180e, 0x180e},    {0x2000, 0x200f},   {0x2028, 0x202f},   {0x205f, 0x206f},   {0x3000, 0x3000},
		{0xd800, 0xf8ff},    {0xfeff, 0xfeff},   {0xfff0, 0xfffb},   {0xfffe, 0xffff},   {0x110bd, 0x110bd},
		{0x110cd, 0x110cd},  {0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe00ff},
		{0xe01f0, 0x10ffff},
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		if (cp >= ranges[i].first && cp <= ranges[i].last)
			return true;
	}
	return cp > 0x10ffff;
}

static void add_utf8(struct py_out *out, uint32_t cp)
{
	char text[4];
	size_t size = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;

	text[0] = (char)(size == 1 ? cp : (0xf00 >> size) | cp >> 6 * (size - 1));
	for (size_t i = 1; i < size; i++)
		text[i] = (char)(0x80 | (cp >> 6 * (size - 1 - i) & 0x3f));
	py_out_add(out, text, size);
}

static void add_character(struct py_out *out, uint32_t cp, char mark, enum py_quote quote)
{
	bool wide = cp >= 0x80 && quote != PY_QUOTE_TEXT;

	if (cp == '\\' || cp == (uint32_t)mark || (cp == '\'' && quote == PY_QUOTE_ARRAY))
		py_out_print(out, "\\%c", (int)cp);
	else if (cp == '\n')
		py_out_text(out, "\\n");
	else if (cp == '\r')
		py_out_text(out, "\\r");
	else if (cp == '\t')
		py_out_text(out, "\\t");
	else if (!wide && !is_escaped(cp))
		add_utf8(out, cp);
	else if (cp <= 0xff)
		py_out_print(out, "\\x%02x", cp);
	else if (cp <= 0xffff)
		py_out_print(out, "\\u%04x", cp);
	else
		py_out_print(out, "\\U%08x", cp);
}

void py_out_quoted(struct py_out *out, const struct py_text *text, enum py_quote quote)
{
	bool single = false, both = false;
	char mark;

	for (size_t i = 0; i < text->count; i++) {
		uint32_t cp = unit_at(text->units, i, text->unit);

		single = single || (cp == '\'' && !text->hidden[i]);
		both = both || (cp == '"' && !text->hidden[i]);
	}
	mark = single && !both ? '"' : '\'';
	py_out_add(out, &mark, 1);
	for (size_t i = 0; i < text->count && !out->full; i++) {
		if (!text->hidden[i])
			add_character(out, unit_at(text->units, i, text->unit), mark, quote);
		else if (!i || !text->hidden[i - 1])
			py_out_text(out, PY_OUT_HIDDEN);
	}
	py_out_add(out, &mark, 1);
	if (text->cut)
		py_out_text(out, PY_OUT_MORE);
}

static bool is_number(const char *text, double number, bool single)
{
	return single ? strtof(text, NULL) == (float)number : strtod(text, NULL) == number;
}

/* Adds one to the last of the digits before the exponent. Returns false where that needs one digit more. */
static bool increment(char *text)
{
	for (char *at = strchr(text, 'e'); at && at-- > text;) {
		if (*at >= '0' && *at < '9') {
			(*at)++;
			return true;
		}
		if (*at == '9')
			*at = '0';
	}
	return false;
}

static void add_number(struct py_out *out, double number, bool single, bool with_point)
{
	char text[32], digits[DOUBLE_DIGITS + 1] = "", *mark;
	size_t count = 0;
	int exponent;

	if (isnan(number) || isinf(number)) {
		py_out_text(out, isnan(number) ? "nan" : number < 0 ? "-inf" : "inf");
		return;
	}
	for (int i = 0; i < DOUBLE_DIGITS; i++) {
		snprintf(text, sizeof(text), "%.*e", i, number);
		if (is_number(text, number, single))
			break;
		/*
		 * Above a power of two the doubles are twice as far apart as below: the next decimal can be this
		 * number, though it is not the nearest of its length (2**89 is 6.189700196426902e+26).
		 */
		if (increment(text) && is_number(text, number, single))
			break;
	}
	mark = strchr(text, 'e');
	exponent = mark ? (int)strtol(mark + 1, NULL, 10) : 0;
	for (const char *p = text; p != mark && *p && count < DOUBLE_DIGITS; p++) {
		if (*p >= '0' && *p <= '9')
			digits[count++] = *p;
	}
	if (signbit(number))
		py_out_text(out, "-");
	if (exponent < FIXED_LEAST || exponent >= FIXED_MOST) {
		py_out_print(out, "%.1s%s%se%c%02d", digits, count > 1 ? "." : "", digits + 1, exponent < 0 ? '-' : '+',
			     abs(exponent));
	} else if (exponent < 0) {
		py_out_print(out, "0.%.*s%s", -exponent - 1, "0000", digits);
	} else if ((size_t)exponent + 1 < count) {
		py_out_print(out, "%.*s.%s", exponent + 1, digits, digits + exponent + 1);
	} else {
		py_out_print(out, "%s%.*s%s", digits, exponent + 1 - (int)count, "0000000000000000",
			     with_point ? ".0" : "");
	}
}

void py_out_double(struct py_out *out, double number, bool with_point)
{
	add_number(out, number, false, with_point);
}

void py_out_float(struct py_out *out, float number)
{
	add_number(out, (double)number, true, true);
}

void py_out_integer(struct py_out *out, bool negative, uint32_t *digits, size_t count)
{
	size_t room = count * 10 + STEP_DIGITS + 2, at = room;
	char *text = malloc(room);

	if (!text) {
		out->full = true;
		return;
	}
	do {
		uint64_t rest = 0;

		for (size_t i = count; i-- > 0;) {
			uint64_t value = rest << 30 | digits[i];

			digits[i] = (uint32_t)(value / STEP);
			rest = value % STEP;
		}
		while (count && !digits[count - 1])
			count--;
		for (int i = 0; i < STEP_DIGITS && at && (rest || count || i == 0); i++, rest /= 10)
			text[--at] = (char)('0' + rest % 10);
	} while (count && at >= STEP_DIGITS);
	if (negative && at)
		text[--at] = '-';
	py_out_add(out, text + at, room - at);
	free(text);
}

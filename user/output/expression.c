// SPDX-License-Identifier: Apache-2.0
/* Finds the text of an expression in the source that the profile has of its file. */
#include "output/expression.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static const char *source_of(const struct profile *p, uint32_t file)
{
	size_t count;
	const struct profile_source *sources = profile_sources(p, &count);

	for (size_t i = 0; i < count; i++) {
		if (sources[i].file == file)
			return profile_string(p, sources[i].text);
	}
	return "";
}

/* Returns the beginning of a line, from 1; NULL if the text has fewer. */
static const char *line_at(const char *text, int32_t line)
{
	while (text && --line > 0) {
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
	return text;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\f';
}

/* Returns whether a character of UTF-8, or the text's end, begins there. */
static bool is_boundary(char c)
{
	return ((unsigned char)c & 0xc0) != 0x80;
}

/* Returns where the expression ends on its first line, or 0 if none can be there: it begins and ends with no space. */
static size_t end_on(const char *line, const struct profile_place *place)
{
	size_t length = strcspn(line, "\n"), from = (size_t)place->column, to = (size_t)place->end_column;

	if (place->end_line != place->line) {
		for (to = length; to > from && is_space(line[to - 1]);)
			to--;
	}
	if (from >= to || to > length || is_space(line[from]) || is_space(line[to - 1]))
		return 0;
	return is_boundary(line[from]) && is_boundary(line[to]) ? to : 0;
}

char *output_expression(const struct profile *p, uint32_t file, const struct profile_place *place)
{
	const char *line = place->end_line ? line_at(source_of(p, file), place->line) : NULL;
	size_t to = line ? end_on(line, place) : 0;
	char *bytes = NULL, *text;

	if (!to)
		return strdup("");
	if (asprintf(&bytes, "%.*s%s", (int)(to - (size_t)place->column), line + place->column,
		     place->end_line != place->line ? " " TEXT_ELLIPSIS : "") < 0)
		return NULL;
	for (char *c = bytes; *c; c++) {
		if (*c == '\t')
			*c = ' ';
	}
	text = text_printable(bytes);
	free(bytes);
	return text;
}

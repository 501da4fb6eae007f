// SPDX-License-Identifier: Apache-2.0
/* Shortens names and places to the width of a table's column. */
#include "output/truncate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/expression.h"
#include "output/output.h"
#include "base/text.h"
#include "base/text_stream.h"

/* The least columns of a function's file and of a name that is shortened beside it: else the file is left out. */
#define FILE_LEAST 10
#define NAME_LEAST 24
/* Columns of an expression in a file that is no terminal: most are shorter, and no row is a page. */
#define TEXT_MOST 120

/* Replaces an allocated text by a shortened one. */
static int replace(char **text, char *shortened)
{
	if (!shortened)
		return -ENOMEM;
	free(*text);
	*text = shortened;
	return 0;
}

int output_truncate(char **name, char **place, size_t between, size_t width)
{
	size_t name_width = text_width(*name), place_width = text_width(*place), least;
	int err;

	if (!place_width)
		return replace(name, text_shorten(*name, width));
	if (name_width + between + place_width <= width)
		return 0;
	width = width > between ? width - between : 0;
	least = place_width < width / 3 ? place_width : width / 3;
	if (name_width > width - least)
		name_width = width - least;
	err = replace(name, text_shorten(*name, name_width));
	return err ?: replace(place, text_keep_end(*place, width - name_width));
}

/* As output_truncate(), of a function: the file gives way to the name, and is left out where that needs its room. */
static int truncate_function(char **name, char **file, size_t between, size_t width)
{
	size_t name_width = text_width(*name), file_width = text_width(*file);
	size_t least = between + (file_width < FILE_LEAST ? file_width : FILE_LEAST);

	if (!file_width || name_width + between + file_width <= width)
		return output_truncate(name, file, between, width);
	if (name_width + least <= width)
		return replace(file, text_keep_end(*file, width - between - name_width));
	if (name_width <= width || width < NAME_LEAST + least) {
		**file = '\0';
		return replace(name, text_shorten(*name, width));
	}
	return replace(name, text_shorten(*name, width - least))
		       ?: replace(file, text_keep_end(*file, least - between));
}

char *output_escaped_copy(const char *text)
{
	char *escaped = NULL;
	size_t size = 0;
	FILE *out = text_stream_open(&escaped, &size);

	if (!out)
		return NULL;
	output_escaped(text, out);
	if (!fclose(out))
		return escaped;
	free(escaped);
	return NULL;
}

static struct profile_place place_of(const struct profile_group *group)
{
	return (struct profile_place){
		.line = group->line,
		.first_line = PROFILE_NO_LINE,
		.end_line = group->end_line,
		.column = group->column,
		.end_column = group->end_column,
	};
}

/* Writes a line "place  name", and the text of its expression as far as it is known and there is room. */
static int write_line(const struct profile *p, const struct profile_group *group, const char *place, const char *name,
		      size_t width, FILE *out)
{
	static const char between[] = "  ", colon[] = ": ";
	const struct profile_place at = place_of(group);
	size_t used = text_width(place) + strlen(between) + text_width(name) + strlen(colon), needed;
	char *text = output_expression(p, group->file, &at);
	int err = text ? replace(&text, text_shorten(text, TEXT_MOST)) : -ENOMEM;

	fprintf(out, "%s%s%s", place, *place ? between : "", name);
	needed = err ? 0 : text_width(text);
	if (needed && width && used + needed > width) {
		needed = used + OUTPUT_COLUMN_LEAST <= width ? width - used : 0;
		err = replace(&text, text_shorten(text, needed));
	}
	if (!err && needed)
		fprintf(out, "%s%s", colon, text);
	fputc('\n', out);
	free(text);
	return err;
}

int output_group_truncated(const struct profile *p, const struct profile_group *group, bool by_line, size_t width,
			   FILE *out)
{
	const struct profile_place at = place_of(group);
	const char *file = profile_string(p, group->file);
	char *name = output_escaped_copy(profile_string(p, group->name));
	char *escaped = output_escaped_copy(file), *place = NULL, position[OUTPUT_POSITION_MAX];
	int err = name && escaped ? 0 : -ENOMEM;

	output_position(&at, position);
	if (!err && by_line && *file && *position && asprintf(&place, "%s%s", escaped, position) < 0) {
		place = NULL;
		err = -ENOMEM;
	}
	if (!err && width && by_line)
		err = output_truncate(&name, place ? &place : &escaped, strlen("  "), width);
	else if (!err && width)
		err = truncate_function(&name, &escaped, strlen(" ()"), width);
	if (err)
		goto done;
	if (by_line)
		err = write_line(p, group, place ? place : escaped, name, width, out);
	else if (*escaped)
		fprintf(out, "%s (%s)\n", name, escaped);
	else
		fprintf(out, "%s\n", name);
done:
	free(name);
	free(escaped);
	free(place);
	return err;
}

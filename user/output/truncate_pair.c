// SPDX-License-Identifier: Apache-2.0
/* Two functions in one row, within the width of a table's column. */
#include <stdlib.h>
#include <string.h>

#include "output/truncate.h"
#include "base/text.h"
#include "base/text_stream.h"

/* The least columns of the name of the second, where it is longer. */
#define SECOND_LEAST 12

/* Returns a function, or a line, in at most width columns, which the caller frees; 0: whole. NULL: no memory. */
static char *group_text(const struct profile *p, const struct profile_group *group, bool by_line, size_t width)
{
	char *text = NULL;
	size_t size = 0;
	FILE *stream = text_stream_open(&text, &size);
	bool failed = !stream || output_group_truncated(p, group, by_line, width, stream);

	if (stream && fclose(stream))
		failed = true;
	if (failed) {
		free(text);
		return NULL;
	}
	if (size)
		text[size - 1] = '\0';
	return text;
}

/*
 * Returns a group's name, which the caller frees; with its file where the name alone says nothing, as of a module's
 * body. NULL: no memory.
 */
static char *name_text(const struct profile *p, const struct profile_group *group)
{
	const char *name = profile_string(p, group->name);

	return *name == '<' ? group_text(p, group, false, 0) : output_escaped_copy(name);
}

/* A pair as it may be written. */
struct pair_texts {
	char *first, *first_name, *second, *second_name; /* whole; the names are those of name_text() */
	char more[32];
	size_t between; /* columns of what is written beside first and second */
	size_t width;
};

static char *joined(const struct output_pair *pair, const struct pair_texts *texts, const char *first,
		    const char *second)
{
	char *text;

	return asprintf(&text, "%s%s%s%s", first, pair->between, second, texts->more) < 0 ? NULL : text;
}

/* Returns the columns for the second beside the first, at least as many as its name has to have; 0: there is no room.
 */
static size_t room_beside(const struct pair_texts *texts, const char *first, size_t least)
{
	size_t used = text_width(first) + texts->between, name = text_width(texts->second_name);

	return used + (name < least ? name : least) <= texts->width ? texts->width - used : 0;
}

/* Returns the pair with the second's name, in at most `room` columns. NULL: no memory. */
static char *with_short_name(const struct output_pair *pair, const struct pair_texts *texts, const char *first,
			     size_t room)
{
	char *second = text_shorten(texts->second_name, room);
	char *text = second ? joined(pair, texts, first, second) : NULL;

	free(second);
	return text;
}

/* Returns the pair with half of the columns for the second's name. NULL: no memory. */
static char *halved(const struct profile *p, const struct profile_groups *groups, bool by_line,
		    const struct output_pair *pair, const struct pair_texts *texts)
{
	size_t room = texts->width - texts->between, half = room / 2, name = text_width(texts->second_name);
	char *first = group_text(p, profile_group_at(groups, pair->first), by_line, room - (name < half ? name : half));
	char *text = first ? with_short_name(pair, texts, first, half) : NULL;

	free(first);
	return text;
}

/* Returns the pair with as much of it as there is room for. NULL: no memory. */
static char *truncated(const struct profile *p, const struct profile_groups *groups, bool by_line,
		       const struct output_pair *pair, const struct pair_texts *texts)
{
	size_t room;

	if (!texts->width || text_width(texts->first) + texts->between + text_width(texts->second) <= texts->width)
		return joined(pair, texts, texts->first, texts->second);
	/* A first one that yields does so to the whole name. */
	room = room_beside(texts, texts->first, pair->yields ? SIZE_MAX : SECOND_LEAST);
	if (room)
		return with_short_name(pair, texts, texts->first, room);
	room = by_line ? 0 : room_beside(texts, texts->first_name, SECOND_LEAST);
	if (room)
		return with_short_name(pair, texts, texts->first_name, room);
	if (pair->yields && texts->width >= 2 * OUTPUT_COLUMN_LEAST + texts->between)
		return halved(p, groups, by_line, pair, texts);
	return group_text(p, profile_group_at(groups, pair->first), by_line, texts->width);
}

char *output_pair_text(const struct profile *p, const struct profile_groups *groups, bool by_line,
		       const struct output_pair *pair, size_t width)
{
	const struct profile_group *first = profile_group_at(groups, pair->first);
	const struct profile_group *second =
		pair->second == PROFILE_NONE ? NULL : profile_group_at(groups, pair->second);
	struct pair_texts texts = {.width = width};
	char *text;

	if (!second)
		return group_text(p, first, by_line, width);
	if (pair->more)
		snprintf(texts.more, sizeof(texts.more), " and %u more", pair->more);
	texts.between = strlen(pair->between) + strlen(texts.more);
	texts.first = group_text(p, first, by_line, 0);
	texts.first_name = name_text(p, first);
	texts.second = group_text(p, second, by_line, 0);
	texts.second_name = name_text(p, second);
	text = texts.first && texts.first_name && texts.second && texts.second_name
		       ? truncated(p, groups, by_line, pair, &texts)
		       : NULL;
	free(texts.first);
	free(texts.first_name);
	free(texts.second);
	free(texts.second_name);
	return text;
}

// SPDX-License-Identifier: Apache-2.0
/* The names of rows, in the room that they have. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "output/output.h"
#include "top/view_internal.h"

/* Least columns of a name that its caller stands behind; of a name before its place. */
#define NAME_COLUMNS  24
#define TITLE_COLUMNS 6

/* Shortens printable text to that many columns, in the middle or, a path, at its beginning. */
static void shorten(char *text, size_t size, size_t columns, char *(*how)(const char *, size_t))
{
	char *shortened = how(text, columns);

	if (shortened)
		snprintf(text, size, "%s", shortened);
	free(shortened);
}

static void copy_printable(const char *text, char *out, size_t size)
{
	char *printable = text_printable(text);

	snprintf(out, size, "%s", printable ?: "");
	free(printable);
}

void top_fit_place(const char *name, const char *file, const char *position, size_t room, char *out, size_t size)
{
	char title[2048], path[1024];
	size_t others, least;
	const char *slash;

	copy_printable(name, title, sizeof(title));
	copy_printable(file, path, sizeof(path));
	if (!*path && !*position) {
		shorten(title, sizeof(title), room, text_keep_end);
		snprintf(out, size, "%s", title);
		return;
	}
	slash = strrchr(path, '/');
	others = strlen(" ()") + strlen(position);
	least = text_width(slash ? slash + 1 : path) + (slash ? strlen(TEXT_ELLIPSIS) : 0);
	if (room > others + text_width(title) + least)
		least = room - others - text_width(title);
	else if (room > others + TITLE_COLUMNS && least > room - others - TITLE_COLUMNS)
		least = room - others - TITLE_COLUMNS;
	if (text_width(path) > least)
		shorten(path, sizeof(path), least, text_keep_end);
	others += text_width(path);
	if (text_width(title) + others > room)
		shorten(title, sizeof(title), room > others + TITLE_COLUMNS ? room - others : TITLE_COLUMNS,
			text_keep_end);
	snprintf(out, size, "%s (%s%s)", title, path, position);
}

/* Names the row's code and its place. */
static void name_place(const struct top_drawing *d, const struct top_row *row, size_t room, char *out, size_t size)
{
	const char *file = top_model_string(d->m, row->key.file);
	struct profile_place place = row->key.place;
	char position[OUTPUT_POSITION_MAX];

	if (d->choice->table == TOP_FUNCTIONS)
		place.line = place.first_line;
	output_position(&place, position);
	top_fit_place(top_model_string(d->m, row->title), file,
		      *file || d->choice->table != TOP_FUNCTIONS ? position : "", room, out, size);
}

/* Shortens two names so that they have room together: only the longer one, if the other takes less than half. */
static void share(char *one, char *other, size_t size, size_t room)
{
	size_t first = text_width(one), second = text_width(other), half = room / 2;

	if (first + second <= room)
		return;
	if (second <= half)
		first = room - second;
	else if (first > half)
		first = half;
	shorten(one, size, first > TITLE_COLUMNS ? first : TITLE_COLUMNS, text_keep_end);
	second = room > first ? room - first : 0;
	shorten(other, size, second > TITLE_COLUMNS ? second : TITLE_COLUMNS, text_shorten);
}

/* Returns whether a thread is its process's first one and has its name, so that the process need not be named again. */
static bool is_main(const struct top_row *row, const char *process, const char *title)
{
	return row->key.tid == row->key.pid && (!*process || !strcmp(process, title));
}

/* Names a row that has no place; the numbers of threads and processes stay whole. */
static void name_row(const struct top_drawing *d, const struct top_row *row, size_t room, char *out, size_t size)
{
	bool is_thread = d->choice->table == TOP_THREADS, is_process = d->choice->table == TOP_PROCESSES;
	const char *process = top_model_process_of(d->m, row);
	char title[1024], behind[1024] = "", number[64] = "", last[32] = "";
	size_t others;

	copy_printable(top_model_string(d->m, row->title), title, sizeof(title));
	if (is_thread && !d->facts->one_process && !is_main(row, process, title)) {
		snprintf(number, sizeof(number), " %d of ", row->key.tid);
		copy_printable(*process ? process : "process", behind, sizeof(behind));
		snprintf(last, sizeof(last), " %d", row->key.pid);
	} else if (is_process && row->container) {
		snprintf(number, sizeof(number), " %d in ", row->key.pid);
		copy_printable(top_model_string(d->m, row->container), behind, sizeof(behind));
	} else if (is_thread || is_process) {
		snprintf(number, sizeof(number), " %d", is_thread ? row->key.tid : row->key.pid);
	}
	others = strlen(number) + strlen(last);
	share(title, behind, sizeof(title), room > others ? room - others : 0);
	snprintf(out, size, "%s%s%s%s", title, number, behind, last);
}

/*
 * Writes the caller's name without its file: whole in the room behind the row's, else in what that of NAME_COLUMNS
 * leaves, if it is enough for a name.
 */
static void write_caller(char *own, size_t size, size_t room, size_t behind, char *from)
{
	const size_t words = strlen(", from ");

	*from = '\0';
	if (!*own)
		return;
	if (words + text_width(own) > behind) {
		if (room < NAME_COLUMNS + words + TITLE_COLUMNS)
			return;
		shorten(own, size, room - NAME_COLUMNS - words, text_keep_end);
	}
	sprintf(from, ", from %s", own);
}

/* Returns whether so little is left of the name that its end tells nothing. */
static bool is_crushed(const char *text)
{
	return !strncmp(text, TEXT_ELLIPSIS, strlen(TEXT_ELLIPSIS)) && strcspn(text, " ") < 2 * TITLE_COLUMNS;
}

/*
 * Names code, and behind that of a library the program's own function that it had most samples for. Where not all has
 * room, the caller has no file, then the place of the library's gives way, and then the caller goes. room: columns.
 */
static void name_code(const struct top_drawing *d, const struct top_row *row, size_t room, char *out, size_t size)
{
	const struct top_caller *caller = top_model_caller(row);
	char own[1024] = "", file[1024], from[2100] = "";
	size_t width;

	name_place(d, row, SIZE_MAX, out, size);
	width = text_width(out);
	if (caller) {
		copy_printable(top_model_string(d->m, caller->name), own, sizeof(own));
		copy_printable(top_model_string(d->m, caller->file), file, sizeof(file));
		snprintf(from, sizeof(from), ", from %s (%s)", own, file);
	}
	if (width + text_width(from) > room) {
		write_caller(own, sizeof(own), room, room > width ? room - width : 0, from);
		name_place(d, row, room - text_width(from), out, size);
		if (is_crushed(out)) {
			*from = '\0';
			name_place(d, row, room, out, size);
		}
	}
	width = strlen(out);
	snprintf(out + width, size - width, "%s", from);
}

void top_name_row(const struct top_drawing *d, const struct top_row *row, size_t room, char *out, size_t size)
{
	if (top_table_is_code(d->choice->table))
		name_code(d, row, room, out, size);
	else
		name_row(d, row, room, out, size);
}

// SPDX-License-Identifier: Apache-2.0
#include "session/native/room.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "native/mapped.h"
#include "native/page.h"
#include "session/native/shared_tables.h"

/* Longest time until it is seen again whether there is room for a table that found none. */
#define RETRY_MOST_S 60.0

void native_room_give_pages(struct native_files *f, struct native_known_file *file, double now)
{
	native_pages_give(f->pages, file->first, file->pages, now);
	file->pages = 0;
}

void native_room_hide_table(struct native_files *f, struct native_known_file *file)
{
	f->rows -= file->shown.rows;
	f->there -= file->shown.pages != 0;
	file->shown = (struct native_shown){0};
}

bool native_room_make(struct native_files *f, double now)
{
	bool made = false;

	for (uint32_t i = 0; i < f->known.count; i++) {
		struct native_known_file *file = native_files_at(f, i);

		if (file->state != NATIVE_FILE_THERE || file->users || !file->pages ||
		    native_is_made(&file->source.mapped) || (file->has_sharers && native_sharing_count_used(f, file)))
			continue;
		native_sharing_end(f, file);
		native_room_give_pages(f, file, now);
		native_room_hide_table(f, file);
		/* It is made again when a process maps it. */
		file->state = NATIVE_FILE_REFUSED;
		made = true;
	}
	return made;
}

/* Returns whether the table of a file that processes map may give way, if no stack was in the file. */
static bool may_give_way(const struct native_files *f, const struct native_known_file *file)
{
	return file->state == NATIVE_FILE_THERE && file->users && file->pages && !file->has_sharers && !file->stops &&
	       !native_is_made(&file->source.mapped) && !native_frames_was_met(f->frames, file->number);
}

static void take_away(struct native_files *f, struct native_known_file *file, double now)
{
	native_room_give_pages(f, file, now);
	native_room_hide_table(f, file);
	file->state = NATIVE_FILE_REFUSED;
	f->refused += !file->was_refused;
	file->was_refused = file->is_taken_away = f->has_taken_away = true;
	file->is_wanted = false;
	file->retry_pause_s = RETRY_MOST_S;
	file->retry_at = now + RETRY_MOST_S;
}

/*
 * Takes tables away in which no stack was, for one of so many pages in which one was. Which of the others is used least
 * is not known: the kernel side tells a stack once, and counts it then. Returns whether there will be room.
 */
static bool give_way(struct native_files *f, uint32_t pages, double now)
{
	struct native_page_range *tables = calloc(f->known.count + 1u, sizeof(*tables)), chosen;
	size_t nr_tables = 0;
	bool found;

	native_frames_note_met(f->frames);
	for (uint32_t i = 0; tables && i < f->known.count; i++) {
		const struct native_known_file *file = native_files_at(f, i);

		if (may_give_way(f, file))
			tables[nr_tables++] = (struct native_page_range){file->first, file->pages};
	}
	found = tables && !native_pages_choose(f->pages, tables, nr_tables, pages, &chosen);
	free(tables);
	for (uint32_t i = 0; found && i < f->known.count; i++) {
		struct native_known_file *file = native_files_at(f, i);

		if (may_give_way(f, file) && file->first - chosen.first < chosen.count)
			take_away(f, file, now);
	}
	return found;
}

uint32_t native_room_next_taken_away(struct native_files *f)
{
	for (uint32_t i = 0; f->has_taken_away && i < f->known.count; i++) {
		struct native_known_file *file = native_files_at(f, i);

		if (!file->is_taken_away)
			continue;
		file->is_taken_away = false;
		return i;
	}
	f->has_taken_away = false;
	return INTERN_NONE;
}

void native_room_put_off(struct native_known_file *file, double now)
{
	file->retry_pause_s = fmin(fmax(2 * file->retry_pause_s, NATIVE_ROOM_RETRY_S), RETRY_MOST_S);
	file->retry_at = now + file->retry_pause_s;
}

void native_room_retry(struct native_files *f, struct native_known_file *file, double now)
{
	uint32_t pages = native_pages_of_rows(file->about.nr_rows);

	if (file->state != NATIVE_FILE_REFUSED || !file->users || file->retry_at > now)
		return;
	if (native_pages_have_room(f->pages, pages, now)) {
		file->state = NATIVE_FILE_WANTED;
		file->tries = 0;
		return;
	}
	if (native_room_make(f, now) || (file->is_wanted && give_way(f, pages, now)))
		file->retry_pause_s = 0;
	native_room_put_off(file, now);
}

bool native_room_is_wanted(const struct native_files *f)
{
	for (uint32_t i = 0; i < f->known.count; i++) {
		const struct native_known_file *file = native_files_at(f, i);

		if (file->state == NATIVE_FILE_REFUSED && file->users && file->is_wanted)
			return true;
	}
	return false;
}

void native_room_want(struct native_known_file *file, double now)
{
	if (!file->is_wanted)
		file->retry_at = now;
	file->is_wanted = true;
}

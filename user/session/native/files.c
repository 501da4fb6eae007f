// SPDX-License-Identifier: Apache-2.0
#include "session/native/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "native/ahead_merge.h"
#include "native/made.h"
#include "native/mapped.h"
#include "native/page.h"
#include "session/native/room.h"
#include "session/native/shared_tables.h"

/* Attempts to have a table made before the file is given up: a helper may be killed by another file's question. */
#define TRIES_MAX 3
/* Until the next one. */
#define PAUSE_S 0.1
/*
 * Longest time from one addition of rows to the next. The whole table is written anew, which takes some 10 ms for a
 * large one, of more pages than this.
 */
#define STOPS_PAUSE_S       0.2
#define STOPS_PAUSE_LARGE_S 2.0
#define LARGE_TABLE         64
/* A program that runs every now and then finds its tables, which take some tenths of a second to be made. */
#define IDLE_MAX 2

void native_files_init(struct native_files *f, struct native_pages *pages, struct native_frames *frames)
{
	memset(f, 0, sizeof(*f));
	f->pages = pages;
	f->frames = frames;
	intern_init(&f->known, sizeof(struct native_known_file), sizeof(struct native_identity));
}

void native_files_free(struct native_files *f)
{
	for (uint32_t i = 0; i < f->known.count; i++)
		native_stops_free(native_files_at(f, i)->stops);
	intern_free(&f->known);
}

static void add_costs(struct native_costs *sum, const struct native_costs *costs)
{
	sum->tables_ns += costs->tables_ns;
	sum->names_ns += costs->names_ns;
	sum->names += costs->names;
}

void native_files_add_costs(struct native_files *f, uint32_t index, const struct native_costs *costs)
{
	add_costs(&f->costs, costs);
	if (index != INTERN_NONE)
		add_costs(&native_files_at(f, index)->costs, costs);
}

static void show_made(const struct native_files *f, const struct native_known_file *file)
{
	struct native_file shown = file->about;

	/* A profile has no mapping of it. */
	shown.nr_segments = 0;
	native_frames_describe_file(f->frames, file->number, &shown);
}

/* Code in no file has no rows but those of single instructions. */
static void describe_made(struct native_files *f, struct native_known_file *file)
{
	f->made++;
	f->made_ever++;
	native_made_about(&file->source.mapped, &file->about);
	file->is_known = true;
	file->state = NATIVE_FILE_NONE;
	show_made(f, file);
}

/* Returns the index of a file whose place another may take, or INTERN_NONE. */
static uint32_t find_over(const struct native_files *f)
{
	for (uint32_t i = 0; f->nr_over && i < f->known.count; i++) {
		if (native_files_at(f, i)->is_over)
			return i;
	}
	return INTERN_NONE;
}

/* Adds a file, in place of one that is over: of these there are any number in a long run. */
static uint32_t add_file(struct native_files *f, const struct native_known_file *fresh, bool *added)
{
	uint32_t found = intern_find(&f->known, fresh), i = found;

	if (found != INTERN_NONE && !native_files_at(f, found)->is_over)
		return found;
	if (native_is_made(&fresh->source.mapped) &&
	    (f->made >= NATIVE_MADE_MAX || f->made_ever >= NATIVE_MADE_EVER_MAX))
		return INTERN_NONE;
	if (found == INTERN_NONE)
		i = find_over(f);
	if (i == INTERN_NONE)
		return intern_add(&f->known, fresh, added);
	native_stops_free(native_files_at(f, i)->stops);
	if (found == INTERN_NONE)
		intern_replace(&f->known, i, fresh);
	else
		*native_files_at(f, i) = *fresh;
	f->nr_over--;
	*added = true;
	return i;
}

uint32_t native_files_find(struct native_files *f, const struct native_source *source)
{
	const struct native_known_file fresh = {.id = source->mapped.file, .source = *source};
	bool added = false, is_made = native_is_made(&source->mapped);
	struct native_known_file *file;
	uint32_t i = add_file(f, &fresh, &added);

	if (i == INTERN_NONE)
		return i;
	file = native_files_at(f, i);
	if (added)
		file->number = native_frames_add_file(f->frames, source->mapped.path);
	if (added && is_made)
		describe_made(f, file);
	/* Not while its rows are asked for: the same question is asked again until it has its answer. */
	else if (file->state != NATIVE_FILE_WANTED || !file->source.pid)
		file->source = *source;
	/* There may be room by now, or a process that lets it be read. */
	if ((file->state == NATIVE_FILE_REFUSED || file->state == NATIVE_FILE_UNREADABLE) && !file->users) {
		file->state = NATIVE_FILE_WANTED;
		file->tries = 0;
	}
	return i;
}

static void show_table(struct native_files *f, struct native_known_file *file)
{
	file->shown = (struct native_shown){file->first, file->pages, file->about.nr_rows};
	f->rows += file->shown.rows;
	f->there++;
}

uint32_t native_files_next(struct native_files *f, double now)
{
	bool is_for_wanted = native_room_is_wanted(f);
	uint32_t better = INTERN_NONE;

	for (uint32_t i = 0; i < f->known.count; i++) {
		struct native_known_file *file = native_files_at(f, i);

		/* Others would take the room that is made for it. */
		if (!is_for_wanted || file->is_wanted)
			native_room_retry(f, file, now);
		if (file->state != NATIVE_FILE_WANTED || file->try_at > now)
			continue;
		if (!file->shown.pages)
			return i;
		better = i;
	}
	/* A better table of a file that has one comes last. */
	return better;
}

/* A file that has a table already stays with that. */
static void end_making(struct native_known_file *file, enum native_file_state state)
{
	file->is_filled = false;
	file->state = state;
	if (state == NATIVE_FILE_THERE) {
		file->retry_pause_s = 0;
		file->is_wanted = false;
	}
	if (state == NATIVE_FILE_THERE || !file->shown.pages)
		return;
	file->state = NATIVE_FILE_THERE;
	file->first = file->shown.first;
	file->pages = file->shown.pages;
}

static void refuse(struct native_files *f, struct native_known_file *file, double now)
{
	f->refused += !file->was_refused;
	file->was_refused = true;
	native_room_put_off(file, now);
	end_making(file, NATIVE_FILE_REFUSED);
}

/* The first answer about a file says what it is. */
static void begin_table(struct native_files *f, struct native_known_file *file, const struct native_file *about,
			double now)
{
	uint32_t pages = native_pages_of_rows(about->nr_rows);
	struct native_known_file *same;
	int err;

	file->about = *about;
	file->is_known = true;
	file->rows_done = 0;
	same = file->shown.pages ? NULL : native_sharing_find(f, file);
	if (same) {
		native_sharing_begin(file, same);
		end_making(file, NATIVE_FILE_THERE);
		return;
	}
	if (!file->shown.pages && native_sharing_has_number(f, file))
		file->number = native_frames_add_file(f->frames, file->source.mapped.path);
	native_frames_describe_file(f->frames, file->number, about);
	if (!about->nr_rows) {
		end_making(file, NATIVE_FILE_NONE);
		return;
	}
	err = native_pages_take(f->pages, pages, now, &file->first);
	if (!err) {
		file->pages = pages;
		file->is_filled = true;
		return;
	}
	/* The pages that are given back may be used a second later. */
	if (err == -E2BIG && native_room_make(f, now)) {
		file->try_at = now + NATIVE_ROOM_RETRY_S;
		return;
	}
	log_debug("native frames: no room for the table of %s (%u pages): %s", file->source.mapped.path, pages,
		  strerror(-err));
	refuse(f, file, now);
}

static void fail(struct native_files *f, struct native_known_file *file, int err, double now)
{
	if (file->is_filled)
		native_room_give_pages(f, file, now);
	file->is_filled = false;
	file->try_at = now + PAUSE_S;
	/* The process may have ended. */
	if (err == -ESRCH || err == -ENOENT)
		file->source.pid = 0;
	if (++file->tries < TRIES_MAX)
		return;
	f->unreadable += !file->shown.pages;
	end_making(file, NATIVE_FILE_UNREADABLE);
	log_debug("native frames: no table of %s: %s", file->source.mapped.path, helper_describe_error(err));
}

static int add_rows(struct native_files *f, struct native_known_file *file, const struct native_rows *rows, double now)
{
	int err;

	if (rows->file.nr_rows != file->about.nr_rows || file->rows_done + rows->count > rows->file.nr_rows ||
	    !rows->count)
		return -EPROTO;
	err = native_pages_write_rows(f->pages, file->first + native_pages_of_rows(file->rows_done), rows->rows,
				      rows->count);
	file->rows_done += rows->count;
	if (err || file->rows_done < file->about.nr_rows)
		return err;
	end_making(file, NATIVE_FILE_THERE);
	native_pages_give(f->pages, file->shown.first, file->shown.pages, now);
	native_room_hide_table(f, file);
	show_table(f, file);
	return 0;
}

int native_files_make(struct native_files *f, uint32_t index, double now, struct native_rows *room)
{
	struct native_known_file *file = native_files_at(f, index);
	int err = native_ask_rows(&file->source, file->wants_flow, file->is_filled ? file->rows_done : 0, room);

	if (err == -EINPROGRESS)
		return err;
	if (!err)
		native_files_add_costs(f, index, &(struct native_costs){.tables_ns = room->cpu_ns});
	if (!err && !file->is_filled)
		begin_table(f, file, &room->file, now);
	if (!err && file->is_filled)
		err = add_rows(f, file, room, now);
	if (err)
		fail(f, file, err, now);
	return 0;
}

/* Has a better table made: a stack has ended in a function without call frame information. */
static void want_flow(struct native_known_file *file)
{
	if (file->state != NATIVE_FILE_THERE || file->wants_flow || file->about.has_flow || file->has_sharers ||
	    native_is_made(&file->source.mapped))
		return;
	file->wants_flow = true;
	file->state = NATIVE_FILE_WANTED;
	file->tries = 0;
}

void native_files_want_stop(struct native_files *f, uint32_t index, const struct native_stop *stop, double now)
{
	struct native_known_file *file = native_files_at(f, index);

	if (file->state == NATIVE_FILE_REFUSED) {
		native_room_want(file, now);
		return;
	}
	/* What several files share stays as it is, as long as several of them are mapped. */
	if (file->has_sharers && native_sharing_count_used(f, file) == 1 && file->users)
		native_sharing_end(f, file);
	if (file->has_sharers)
		return;
	if (!file->stops)
		file->stops = native_stops_new();
	if (file->stops)
		native_stops_add(file->stops, stop, now);
}

uint32_t native_files_next_stopped(const struct native_files *f, double now)
{
	for (uint32_t i = 0; i < f->known.count; i++) {
		const struct native_known_file *file = native_files_at(f, i);

		if (file->stops && (file->state == NATIVE_FILE_THERE || file->state == NATIVE_FILE_NONE) &&
		    !file->has_sharers && file->source.pid && native_stops_are_due(file->stops, now))
			return i;
	}
	return INTERN_NONE;
}

/* Reads the rows of the file's table from the kernel side. Returns 0 or negative errno; *rows is freed by the caller.
 */
static int read_table(const struct native_files *f, const struct native_shown *shown, struct pybpf_native_row **rows)
{
	int err = 0;

	*rows = malloc((shown->pages + 1u) * PYBPF_NATIVE_PAGE_ROWS * sizeof(**rows));
	if (!*rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < shown->pages && !err; i++)
		err = native_pages_read(f->pages, shown->first + i,
					(struct pybpf_native_page *)(*rows + (size_t)i * PYBPF_NATIVE_PAGE_ROWS));
	return err;
}

/* Programs use these rows from now on. Without room they go on with the old ones. */
static int replace_table(struct native_files *f, struct native_known_file *file, const struct pybpf_native_row *rows,
			 size_t count, double now)
{
	uint32_t first, pages = native_pages_of_rows(count);
	int err = count ? native_pages_take(f->pages, pages, now, &first) : -ENOENT;

	if (err)
		return err;
	err = native_pages_write_rows(f->pages, first, rows, count);
	if (err) {
		native_pages_give(f->pages, first, pages, now);
		return err;
	}
	native_pages_give(f->pages, file->shown.first, file->shown.pages, now);
	native_room_hide_table(f, file);
	file->first = first;
	file->pages = pages;
	file->shown = (struct native_shown){first, pages, count};
	f->rows += count;
	f->there++;
	file->state = NATIVE_FILE_THERE;
	return 0;
}

static int add_ahead(struct native_files *f, struct native_known_file *file, struct native_ahead_rows *ahead,
		     double now)
{
	struct native_shown old = file->shown;
	struct pybpf_native_row *before = NULL, *rows = NULL;
	size_t count = 0;
	int err;

	if (file->stops->is_anew && native_is_made(&file->source.mapped))
		old = (struct native_shown){0};
	err = read_table(f, &old, &before);
	err = err ? err : native_merge_ahead(before, old.rows, ahead->rows, ahead->count, &rows, &count);
	err = err ? err : replace_table(f, file, rows, count, now);
	log_debug("native frames: %u more rows of %s, %zu in all: %s", ahead->count, file->source.mapped.path, count,
		  strerror(-err));
	free(before);
	free(rows);
	return err;
}

int native_files_pass_stops(struct native_files *f, uint32_t index, double now, struct native_ahead_rows *room)
{
	struct native_known_file *file = native_files_at(f, index);
	struct native_stop stops[NATIVE_STOPS_MAX];
	uint32_t count = native_stops_next(file->stops, &file->source, stops);
	int err = native_ask_ahead(&file->stops->source, file->about.base, stops, count, room);

	if (err == -EINPROGRESS)
		return err;
	if (!err)
		native_files_add_costs(f, index, &(struct native_costs){.tables_ns = room->cpu_ns});
	if (!err && room->count)
		err = add_ahead(f, file, room, now);
	if (err)
		log_debug("native frames: no more rows of %s: %s", file->source.mapped.path,
			  helper_describe_error(err));
	native_stops_pass(file->stops, err ? NULL : room, now,
			  file->shown.pages > LARGE_TABLE ? STOPS_PAUSE_LARGE_S : STOPS_PAUSE_S);
	want_flow(file);
	return 0;
}

void native_files_forget_made(struct native_files *f, uint64_t life, double now)
{
	for (uint32_t i = 0; i < f->known.count; i++) {
		struct native_known_file *file = native_files_at(f, i);

		if (!native_is_made(&file->source.mapped) || file->source.mapped.file.size != life)
			continue;
		native_stops_free(file->stops);
		file->stops = NULL;
		if (file->shown.pages) {
			native_room_give_pages(f, file, now);
			native_room_hide_table(f, file);
		}
		file->state = NATIVE_FILE_NONE;
		if (file->is_over)
			continue;
		file->is_over = true;
		f->nr_over++;
		f->made--;
	}
}

/* No process maps it: its table, if no other file has that, is removed. */
static void forget_file(struct native_files *f, struct native_known_file *file, double now)
{
	native_stops_free(file->stops);
	file->stops = NULL;
	if (file->shown.pages && !native_sharing_has_others(f, file)) {
		native_room_give_pages(f, file, now);
		native_room_hide_table(f, file);
	}
	file->shown = (struct native_shown){0};
	file->pages = 0;
	file->has_sharers = false;
	file->is_known = false;
	file->state = NATIVE_FILE_NONE;
	file->is_over = true;
	f->nr_over++;
}

/* Returns whether a file that no process has mapped for a while can be forgotten. */
static bool is_idle(const struct native_known_file *file)
{
	return file->idle >= IDLE_MAX && file->state != NATIVE_FILE_WANTED && !native_is_made(&file->source.mapped);
}

void native_files_forget_stacks(struct native_files *f, uint32_t busy, double now)
{
	for (uint32_t i = 0; i < f->known.count; i++) {
		struct native_known_file *file = native_files_at(f, i);

		file->idle = file->users || i == busy ? 0 : file->idle + 1;
		if (is_idle(file) && !file->is_over)
			forget_file(f, file, now);
		if (!file->is_over)
			native_frames_keep_file(f->frames, file->number);
	}
	f->made_ever = f->made;
	native_frames_forget_profile(f->frames);
}

int native_files_renumber_made(struct native_files *f, uint32_t index)
{
	struct native_known_file *file = native_files_at(f, index);
	uint32_t number = native_frames_add_file(f->frames, file->source.mapped.path);

	if (!number)
		return -ENOMEM;
	file->number = number;
	file->nr_numbers++;
	file->has_names = false;
	show_made(f, file);
	return 0;
}

void native_files_leave(struct native_files *f, uint32_t index, pid_t pid)
{
	struct native_known_file *file = native_files_at(f, index);

	if (file->users)
		file->users--;
	if (file->source.pid == pid)
		file->source.pid = 0;
}

/* A process that maps the file is known, or may be found. */
static unsigned rank_of(const struct native_known_file *file)
{
	return file->source.pid ? 2 : file->users != 0;
}

uint32_t native_files_of(const struct native_files *f, uint32_t number)
{
	uint32_t found = INTERN_NONE;

	for (uint32_t i = 0; i < f->known.count; i++) {
		const struct native_known_file *file = native_files_at(f, i);

		if (file->number == number && file->is_known &&
		    (found == INTERN_NONE || rank_of(native_files_at(f, found)) < rank_of(file)))
			found = i;
	}
	return found;
}

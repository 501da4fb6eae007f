// SPDX-License-Identifier: Apache-2.0
#include "session/native/files.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "kernel/native.h"

/* Attempts to have a table made before the file is given up: a helper may be killed by another file's question. */
#define TRIES_MAX 3

void native_files_init(struct native_files *f, struct kernel *kernel, struct native_frames *frames, uint64_t bytes_max)
{
	memset(f, 0, sizeof(*f));
	f->kernel = kernel;
	f->frames = frames;
	f->bytes_max = bytes_max;
	intern_init(&f->known, sizeof(struct native_known_file), sizeof(struct native_identity));
}

static void drop_table(struct native_known_file *file)
{
	if (file->table >= 0)
		close(file->table);
	file->table = -1;
}

void native_files_free(struct native_files *f)
{
	for (uint32_t i = 0; i < f->known.count; i++)
		drop_table(native_files_at(f, i));
	intern_free(&f->known);
}

uint32_t native_files_find(struct native_files *f, const struct native_source *source)
{
	const struct native_known_file fresh = {.id = source->mapped.file, .source = *source, .table = -1};
	struct native_known_file *file;
	bool added = false;
	uint32_t i = intern_add(&f->known, &fresh, &added);

	if (i == INTERN_NONE)
		return i;
	file = native_files_at(f, i);
	if (added)
		file->number = native_frames_add_file(f->frames, source->mapped.path);
	/* Not while its rows are asked for: the same question is asked again until it has its answer. */
	else if (file->state != NATIVE_FILE_WANTED || !file->source.pid)
		file->source = *source;
	/* Its place in memory was needed for others, and may be there by now. */
	if (file->state == NATIVE_FILE_REFUSED && f->bytes < f->bytes_max)
		file->state = NATIVE_FILE_WANTED;
	return i;
}

uint32_t native_files_next(const struct native_files *f)
{
	for (uint32_t i = 0; i < f->known.count; i++) {
		if (native_files_at(f, i)->state == NATIVE_FILE_WANTED)
			return i;
	}
	return INTERN_NONE;
}

static void forget_table(struct native_files *f, struct native_known_file *file)
{
	kernel_delete_native_table(f->kernel, file->number);
	f->bytes -= file->pages * KERNEL_NATIVE_PAGE_BYTES;
	f->rows -= file->about.nr_rows;
	f->there--;
	file->state = NATIVE_FILE_WANTED;
}

/* Takes tables that no process uses away until there is room. Returns whether there is. */
static bool make_room(struct native_files *f, uint64_t bytes)
{
	for (uint32_t i = 0; i < f->known.count && f->bytes + bytes > f->bytes_max; i++) {
		struct native_known_file *file = native_files_at(f, i);

		if (file->state == NATIVE_FILE_THERE && !file->users && !file->has_sharers && file->pages) {
			forget_table(f, file);
			/* It is made again when a process maps it. */
			file->state = NATIVE_FILE_REFUSED;
		}
	}
	return f->bytes + bytes <= f->bytes_max;
}

/* Returns another file that is the same one elsewhere, as in several containers' file systems; NULL: there is none. */
static struct native_known_file *find_same(const struct native_files *f, const struct native_known_file *file)
{
	for (uint32_t i = 0; file->about.build_id_size && i < f->known.count; i++) {
		struct native_known_file *other = native_files_at(f, i);

		if (other != file && other->state == NATIVE_FILE_THERE && other->pages &&
		    other->about.nr_rows == file->about.nr_rows && other->about.base == file->about.base &&
		    other->about.build_id_size == file->about.build_id_size &&
		    !memcmp(other->about.build_id, file->about.build_id, file->about.build_id_size))
			return other;
	}
	return NULL;
}

static void end_making(struct native_known_file *file, enum native_file_state state)
{
	drop_table(file);
	file->state = state;
}

/* The first answer about a file says what it is. */
static void begin_table(struct native_files *f, struct native_known_file *file, const struct native_file *about)
{
	struct native_known_file *same;

	file->about = *about;
	file->is_known = true;
	file->rows_done = 0;
	native_frames_describe_file(f->frames, file->number, about->is_interpreter, about->base);
	same = find_same(f, file);
	if (same) {
		file->number = same->number;
		file->pages = same->pages;
		same->has_sharers = true;
		file->has_sharers = true;
		end_making(file, NATIVE_FILE_THERE);
		return;
	}
	if (!about->nr_rows) {
		end_making(file, NATIVE_FILE_NONE);
		return;
	}
	file->pages = kernel_count_native_pages(about->nr_rows);
	if (make_room(f, file->pages * KERNEL_NATIVE_PAGE_BYTES))
		file->table = kernel_make_native_table(about->nr_rows);
	if (file->table >= 0)
		return;
	f->refused++;
	log_debug("native frames: no room for the table of %s (%u pages)", file->source.mapped.path, file->pages);
	end_making(file, NATIVE_FILE_REFUSED);
}

static void fail(struct native_files *f, struct native_known_file *file, int err)
{
	drop_table(file);
	if (err == -ESTALE || err == -ESRCH || err == -ENOENT || ++file->tries >= TRIES_MAX) {
		f->unreadable++;
		file->state = NATIVE_FILE_UNREADABLE;
		log_debug("native frames: no table of %s: %s", file->source.mapped.path, helper_describe_error(err));
	}
}

static int add_rows(struct native_files *f, struct native_known_file *file, const struct native_rows *rows)
{
	int err;

	if (rows->file.nr_rows != file->about.nr_rows || file->rows_done + rows->count > rows->file.nr_rows ||
	    !rows->count)
		return -EPROTO;
	err = kernel_fill_native_table(file->table, file->rows_done, rows->rows, rows->count);
	file->rows_done += rows->count;
	if (err || file->rows_done < file->about.nr_rows)
		return err;
	err = kernel_put_native_table(f->kernel, file->number, file->table);
	if (err)
		return err;
	end_making(file, NATIVE_FILE_THERE);
	f->bytes += file->pages * KERNEL_NATIVE_PAGE_BYTES;
	f->rows += file->about.nr_rows;
	f->there++;
	return 0;
}

int native_files_make(struct native_files *f, uint32_t index, struct native_rows *room)
{
	struct native_known_file *file = native_files_at(f, index);
	int err = native_ask_rows(&file->source, file->table >= 0 ? file->rows_done : 0, room);

	if (err == -EINPROGRESS)
		return err;
	if (!err && file->table < 0)
		begin_table(f, file, &room->file);
	if (!err && file->table >= 0)
		err = add_rows(f, file, room);
	if (err)
		fail(f, file, err);
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

const struct native_source *native_files_source(const struct native_files *f, uint32_t number, uint64_t *base)
{
	const struct native_source *found = NULL;

	for (uint32_t i = 0; i < f->known.count; i++) {
		const struct native_known_file *file = native_files_at(f, i);

		if (file->number != number || !file->is_known || (found && found->pid))
			continue;
		found = &file->source;
		*base = file->about.base;
	}
	return found;
}

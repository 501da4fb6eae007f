// SPDX-License-Identifier: Apache-2.0
#include "session/native/shared_tables.h"

#include <string.h>

struct native_known_file *native_sharing_find(const struct native_files *f, const struct native_known_file *file)
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

void native_sharing_begin(struct native_known_file *file, struct native_known_file *same)
{
	file->number = same->number;
	file->shown = same->shown;
	file->first = same->first;
	file->pages = same->pages;
	same->has_sharers = file->has_sharers = true;
}

static bool is_same_table(const struct native_known_file *file, const struct native_known_file *other)
{
	return other->shown.pages && other->shown.first == file->shown.first;
}

bool native_sharing_has_others(const struct native_files *f, const struct native_known_file *file)
{
	for (uint32_t i = 0; i < f->known.count; i++) {
		const struct native_known_file *other = native_files_at(f, i);

		if (other != file && is_same_table(file, other))
			return true;
	}
	return false;
}

uint32_t native_sharing_count_used(const struct native_files *f, const struct native_known_file *file)
{
	uint32_t used = 0;

	for (uint32_t i = 0; i < f->known.count; i++) {
		const struct native_known_file *other = native_files_at(f, i);

		used += is_same_table(file, other) && other->users;
	}
	return used;
}

void native_sharing_end(const struct native_files *f, struct native_known_file *file)
{
	for (uint32_t i = 0; i < f->known.count; i++) {
		struct native_known_file *other = native_files_at(f, i);

		if (other == file || !is_same_table(file, other))
			continue;
		other->shown = (struct native_shown){0};
		other->pages = 0;
		other->has_sharers = false;
		other->state = NATIVE_FILE_REFUSED;
	}
	file->has_sharers = false;
}

bool native_sharing_has_number(const struct native_files *f, const struct native_known_file *file)
{
	for (uint32_t i = 0; i < f->known.count; i++) {
		const struct native_known_file *other = native_files_at(f, i);

		if (other != file && other->number == file->number && other->shown.pages)
			return true;
	}
	return false;
}

// SPDX-License-Identifier: Apache-2.0
#include "symbols/native/native_libraries.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/made.h"
#include "profile/mappings.h"

#define PAGE_BYTES 4096u

/* glibc's names, and musl's. */
static bool is_c_library(const char *name)
{
	static const char *const begins[] = {"libc.so", "libc-2.", "libpthread", "ld-musl-"};

	for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++) {
		if (!strncmp(name, begins[i], strlen(begins[i])))
			return true;
	}
	return false;
}

static void forget_mappings(struct native_library *library)
{
	for (uint32_t i = 0; i < NATIVE_SEGMENTS_MAX; i++)
		library->mappings[i] = PROFILE_NONE;
}

void native_libraries_free(struct native_libraries *l)
{
	for (uint32_t i = 0; i < l->count; i++)
		free(l->items[i].path);
	free(l->items);
	*l = (struct native_libraries){0};
}

uint32_t native_libraries_add(struct native_libraries *l, const char *path)
{
	struct native_library *added;
	const char *slash;

	if (l->count == l->room) {
		uint32_t room = l->room ? 2 * l->room : 64;
		struct native_library *items = realloc(l->items, room * sizeof(*items));

		if (!items)
			return 0;
		l->items = items;
		l->room = room;
	}
	added = &l->items[l->count];
	*added = (struct native_library){
		.path = strdup(path), .is_no_file = *path == '[', .is_made = !strcmp(path, NATIVE_MADE)};
	if (!added->path)
		return 0;
	slash = strrchr(added->path, '/');
	added->name = slash ? slash + 1 : added->path;
	added->is_c_library = is_c_library(added->name);
	forget_mappings(added);
	return ++l->count;
}

void native_libraries_forget_profile(struct native_libraries *l)
{
	for (uint32_t i = 0; i < l->count; i++)
		forget_mappings(&l->items[i]);
}

void native_library_describe(struct native_library *library, const struct native_file *about)
{
	library->about = *about;
	forget_mappings(library);
}

static uint32_t add_mapping(const struct native_library *library, const struct native_segment *segment, uint64_t vaddr,
			    struct profile *profile)
{
	uint64_t in_page = vaddr & (PAGE_BYTES - 1);
	char build_id[2 * NATIVE_BUILD_ID_MAX + 1] = "";

	for (uint32_t i = 0; i < library->about.build_id_size; i++)
		snprintf(build_id + 2 * (size_t)i, 3, "%02x", library->about.build_id[i]);
	return profile_add_mapping(
		profile,
		&(struct profile_mapping_info){
			.file = library->name,
			.build_id = build_id,
			.path = *library->path == '/' && strlen(library->path) < NATIVE_PATH_MAX - 1 ? library->path
												     : "",
			.start = vaddr - in_page,
			.limit = (vaddr + segment->size + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1),
			.offset = segment->offset - in_page,
		});
}

int native_library_map(struct native_library *library, uint64_t address, struct profile *profile, uint32_t *mapping)
{
	for (uint32_t i = 0; i < library->about.nr_segments; i++) {
		const struct native_segment *segment = &library->about.segments[i];
		uint64_t vaddr = segment->offset - segment->delta + library->about.base, end;

		/* A file can say that its code goes on beyond the last address. */
		if (address - vaddr >= segment->size || (vaddr ^ segment->offset) & (PAGE_BYTES - 1) ||
		    __builtin_add_overflow(vaddr, segment->size, &end) || end > UINT64_MAX - PAGE_BYTES)
			continue;
		if (library->mappings[i] == PROFILE_NONE)
			library->mappings[i] = add_mapping(library, segment, vaddr, profile);
		*mapping = library->mappings[i];
		return *mapping == PROFILE_NONE ? -ENOMEM : 0;
	}
	return -ENOENT;
}

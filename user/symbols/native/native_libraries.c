// SPDX-License-Identifier: Apache-2.0
#include "symbols/native/native_libraries.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/made.h"
#include "profile/mappings.h"

#define PAGE_BYTES 4096u
/* What the number in a frame has room for. It begins anew then: a number is free long before it is given again. */
#define NUMBER_MAX PYBPF_NATIVE_FRAME_FILE(UINT64_MAX)
/* Stacks of a process that has ended may come after its library was used last. */
#define IDLE_MAX 2

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

void native_libraries_init(struct native_libraries *l)
{
	*l = (struct native_libraries){.items = INTERN_INIT(sizeof(struct native_library), sizeof(uint32_t))};
}

void native_libraries_free(struct native_libraries *l)
{
	for (uint32_t i = 0; i < l->items.count; i++)
		free(((struct native_library *)intern_item(&l->items, i))->path);
	intern_free(&l->items);
}

static uint32_t find_number(const struct native_libraries *l)
{
	uint32_t number = l->newest;

	do
		number = number % NUMBER_MAX + 1;
	while (native_library_at(l, number));
	return number;
}

uint32_t native_libraries_add(struct native_libraries *l, const char *path)
{
	struct native_library added = {.path = strdup(path),
				       .is_no_file = *path == '[',
				       .is_made = !strcmp(path, NATIVE_MADE),
				       .is_used = true};
	const char *slash;

	if (!added.path || l->items.count == NUMBER_MAX)
		goto failed;
	added.number = find_number(l);
	slash = strrchr(added.path, '/');
	added.name = slash ? slash + 1 : added.path;
	added.is_c_library = is_c_library(added.name);
	forget_mappings(&added);
	if (intern_add(&l->items, &added, &(bool){false}) == INTERN_NONE)
		goto failed;
	l->newest = added.number;
	return added.number;
failed:
	free(added.path);
	return 0;
}

void native_libraries_forget_profile(struct native_libraries *l)
{
	for (uint32_t i = l->items.count; i-- > 0;) {
		struct native_library *library = intern_item(&l->items, i);

		forget_mappings(library);
		library->idle = library->is_used ? 0 : library->idle + 1;
		library->is_used = false;
		if (library->idle < IDLE_MAX)
			continue;
		free(library->path);
		intern_remove(&l->items, i);
	}
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

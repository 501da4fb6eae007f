// SPDX-License-Identifier: Apache-2.0
#include "symbols/native/native_places.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The key's bytes: the file's number, and for each function its line, and its name and source, each with its NUL. */
struct native_place {
	struct intern_bytes key;
	uint64_t address;
	uint32_t count;
	uint32_t frames[NATIVE_INLINED_MAX]; /* in the profile; PROFILE_NONE: not yet */
};

#define FUNCTION_BYTES_MAX (sizeof(int32_t) + NATIVE_NAME_MAX + NATIVE_PATH_MAX)
#define KEY_BYTES_MAX      (sizeof(uint32_t) + NATIVE_INLINED_MAX * FUNCTION_BYTES_MAX)

static void forget_frames(struct native_place *place)
{
	for (uint32_t i = 0; i < NATIVE_INLINED_MAX; i++)
		place->frames[i] = PROFILE_NONE;
}

void native_places_init(struct native_places *p, bool full_paths)
{
	intern_init(&p->list, sizeof(struct native_place), INTERN_BYTES);
	p->full_paths = full_paths;
}

void native_places_free(struct native_places *p)
{
	for (uint32_t i = 0; i < p->list.count; i++)
		free((void *)(uintptr_t)((struct native_place *)intern_item(&p->list, i))->key.bytes);
	intern_free(&p->list);
}

void native_places_forget_profile(struct native_places *p)
{
	for (uint32_t i = 0; i < p->list.count; i++)
		forget_frames(intern_item(&p->list, i));
}

static char *put(char *to, const void *bytes, size_t size)
{
	memcpy(to, bytes, size);
	return to + size;
}

static const char *source_of(const struct native_places *p, const struct native_line *line)
{
	const char *slash = strrchr(line->file, '/');

	return slash && !p->full_paths ? slash + 1 : line->file;
}

uint32_t native_places_add(struct native_places *p, uint32_t file, uint64_t address, const struct native_line *lines,
			   uint32_t count)
{
	char bytes[KEY_BYTES_MAX], *end = put(bytes, &file, sizeof(file));
	struct native_place fresh = {.address = address, .count = count};
	uint32_t found;
	char *copy;

	for (uint32_t i = 0; i < count; i++) {
		const char *source = source_of(p, &lines[i]);

		end = put(end, &lines[i].line, sizeof(lines[i].line));
		end = put(end, lines[i].function, strlen(lines[i].function) + 1);
		end = put(end, source, strlen(source) + 1);
	}
	fresh.key = (struct intern_bytes){bytes, (size_t)(end - bytes)};
	forget_frames(&fresh);
	found = intern_find(&p->list, &fresh);
	if (found != INTERN_NONE)
		return found;
	copy = malloc(fresh.key.size);
	if (!copy)
		return INTERN_NONE;
	memcpy(copy, bytes, fresh.key.size);
	fresh.key.bytes = copy;
	found = intern_add(&p->list, &fresh, &(bool){false});
	if (found == INTERN_NONE)
		free(copy);
	return found;
}

uint64_t native_places_address(const struct native_places *p, uint32_t index)
{
	return ((const struct native_place *)intern_item(&p->list, index))->address;
}

int native_places_push(struct native_places *p, uint32_t index, const char *library, uint32_t mapping,
		       struct profile *profile, uint32_t *stack)
{
	struct native_place *place = intern_item(&p->list, index);
	const char *at = (const char *)place->key.bytes + sizeof(uint32_t);
	struct profile_code code = {.mapping = mapping};

	code.address = mapping == PROFILE_NONE ? 0 : place->address;
	for (uint32_t i = 0; i < place->count; i++) {
		const char *name = at + sizeof(code.line), *source = name + strlen(name) + 1;

		memcpy(&code.line, at, sizeof(code.line));
		at = source + strlen(source) + 1;
		code.line = code.line ? code.line : PROFILE_NO_LINE;
		code.marks = i ? PROFILE_CODE_INLINED : 0;
		if (place->frames[i] == PROFILE_NONE)
			place->frames[i] = profile_add_code(profile, name, *source ? source : library, &code);
		*stack = place->frames[i] == PROFILE_NONE ? PROFILE_NONE
							  : profile_add_stack(profile, *stack, place->frames[i]);
		if (*stack == PROFILE_NONE)
			return -ENOMEM;
	}
	return 0;
}

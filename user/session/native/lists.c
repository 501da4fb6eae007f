// SPDX-License-Identifier: Apache-2.0
/* Lists of what processes map, as the programs search them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "kernel/native.h"
#include "native/mapped.h"
#include "native/page.h"
#include "session/internal.h"
#include "session/native/internal.h"
#include "session/native/room.h"

static int compare_mappings(const void *a, const void *b)
{
	const struct pybpf_native_mapping *one = a, *other = b;

	return one->start < other->start ? -1 : one->start > other->start;
}

/* Says where the code of the mapping is in its file. */
static void place(const struct native_known_file *file, const struct mapping *mapping, struct pybpf_native_mapping *out)
{
	uint64_t size = mapping->end - mapping->start;

	*out = (struct pybpf_native_mapping){.start = mapping->start, .first = PYBPF_NATIVE_NO_PAGE};
	out->size = size < UINT32_MAX ? (uint32_t)size : UINT32_MAX;
	if (file->is_known && native_find_bias(&file->about, mapping->offset, out))
		out->file = file->number;
	if (file->state == NATIVE_FILE_WANTED)
		out->pages = 1;
	if (!file->shown.pages || !out->file)
		return;
	out->first = file->shown.first;
	out->pages = file->shown.pages;
}

void native_hide(struct session_native_state *n, struct mapper *mapper, double now)
{
	if (mapper->shown.count)
		native_pages_give(&n->pages, mapper->shown.first, native_pages_of_mappings(mapper->shown.count), now);
	mapper->shown.count = 0;
}

/* Returns 0 or negative errno. */
static int show_list(struct session *s, struct mapper *mapper, const struct pybpf_native_mapping *list, double now)
{
	struct session_native_state *n = s->native;
	struct pybpf_native_list shown = {
		.generation = ++n->generation, .code_pages = mapper->code_pages, .count = mapper->count};
	uint32_t pages = native_pages_of_mappings(mapper->count);
	int err = native_pages_take(&n->pages, pages, now, &shown.first);

	/* Pages that were given back can be used a second later. */
	mapper->is_unshown = err == -E2BIG;
	if (err)
		return err;
	err = native_pages_write_mappings(&n->pages, shown.first, shown.generation, list, mapper->count);
	err = err ? err : kernel_put_native_list(s->kernel, mapper->proc_id, &shown);
	if (err) {
		native_pages_give(&n->pages, shown.first, pages, now);
		return err;
	}
	native_hide(n, mapper, now);
	mapper->shown = shown;
	return 0;
}

static void show(struct session *s, struct mapper *mapper, double now)
{
	struct session_native_state *n = s->native;
	struct pybpf_native_mapping *list = calloc(mapper->count + 1u, sizeof(*list));
	int err;

	mapper->is_unshown = false;
	for (uint32_t i = 0; list && i < mapper->count; i++)
		place(native_files_at(&n->files, mapper->mappings[i].file), &mapper->mappings[i], &list[i]);
	if (list)
		qsort(list, mapper->count, sizeof(*list), compare_mappings);
	err = !list ? -ENOMEM : mapper->count ? show_list(s, mapper, list, now) : -ENOENT;
	if (err) {
		/* The list that is there may lead to pages of tables that are others' soon. */
		kernel_delete_native_list(s->kernel, mapper->proc_id);
		native_hide(n, mapper, now);
		/* It is shown at a later look. */
		if (err == -E2BIG)
			native_room_make(&n->files, now);
		log_debug("native frames: the mappings of process %d are not shown: %s", mapper->pid, strerror(-err));
	}
	free(list);
}

void native_note_users(struct session_native_state *n, uint32_t file)
{
	for (uint32_t i = 0; i < n->mappers.count; i++) {
		struct mapper *mapper = intern_item(&n->mappers, i);

		for (uint32_t k = 0; k < mapper->count && !mapper->is_unshown; k++)
			mapper->is_unshown = mapper->mappings[k].file == file;
	}
}

void native_show_changed(struct session *s, double now)
{
	struct session_native_state *n = s->native;
	uint32_t file;

	while ((file = native_room_next_taken_away(&n->files)) != INTERN_NONE)
		native_note_users(n, file);
	for (uint32_t i = 0; i < n->mappers.count; i++) {
		struct mapper *mapper = intern_item(&n->mappers, i);

		if (mapper->is_unshown)
			show(s, mapper, now);
	}
}

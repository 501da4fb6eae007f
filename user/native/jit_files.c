// SPDX-License-Identifier: Apache-2.0
#include "native/jit_files.h"

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/elf_file.h"
#include "base/intern.h"
#include "base/procfs.h"
#include "base/siphash.h"
#include "native/jit_images.h"
#include "native/mapped.h"

/* Most files that are remembered, 600 KiB of them. A process of many libraries has a thousand. */
#define FILES_MAX 4096
/* Programs have one or two executable segments. */
#define SEGMENTS_MAX 4

struct known_file {
	struct native_identity id;
	bool has_list;
	uint64_t list; /* as linked */
	uint32_t nr_segments;
	struct elf_segment segments[SEGMENTS_MAX];
};

struct search {
	pid_t pid;
	struct native_identity last; /* of the mapping before, without size and time */
	uint64_t *out;
	size_t count;
};

static void read_file(int fd, struct known_file *file)
{
	struct elf_symbol symbol;
	struct elf_file *elf;

	if (elf_file_open(fd, &elf))
		return;
	file->has_list = !elf_file_symbol(elf, NATIVE_JIT_SYMBOL, &symbol);
	file->list = file->has_list ? symbol.value : 0;
	file->nr_segments = (uint32_t)elf_file_code_segments(elf, file->segments, SEGMENTS_MAX);
	elf_file_free(elf);
}

/* Returns what is known of a file, which is valid until the next call, or NULL without memory. */
static const struct known_file *find_file(int fd, const struct native_identity *id)
{
	static struct intern files = INTERN_INIT(sizeof(struct known_file), sizeof(struct native_identity));
	struct known_file fresh = {.id = *id};
	bool added = false;
	uint32_t i;

	if (files.count == FILES_MAX)
		intern_free(&files);
	i = intern_add(&files, &fresh, &added);
	if (i == INTERN_NONE)
		return NULL;
	if (added)
		read_file(fd, intern_item(&files, i));
	return intern_item(&files, i);
}

static void note_list(struct search *s, const struct procfs_map *map, const struct known_file *file)
{
	enum native_fit best = NATIVE_FIT_NONE;

	for (uint32_t i = 0; file->has_list && i < file->nr_segments; i++) {
		const struct elf_segment *segment = &file->segments[i];
		enum native_fit fit = native_fit_segment(segment->offset, segment->size, map->offset);

		if (fit <= best)
			continue;
		best = fit;
		s->out[s->count] = map->start - map->offset + segment->offset - segment->vaddr + file->list;
	}
	s->count += best != NATIVE_FIT_NONE;
}

static bool is_of_last(struct search *s, const struct native_identity *id)
{
	bool is_same =
		s->last.inode == id->inode && s->last.dev_major == id->dev_major && s->last.dev_minor == id->dev_minor;

	s->last = *id;
	return is_same;
}

static int visit_map(const struct procfs_map *map, void *arg)
{
	struct native_identity id = {.inode = map->inode, .dev_major = map->dev_major, .dev_minor = map->dev_minor};
	struct search *s = arg;
	const struct known_file *file = NULL;
	struct stat st;
	int fd;

	if (!map->executable || !map->inode || is_of_last(s, &id))
		return 0;
	fd = procfs_open_map(s->pid, map);
	if (fd < 0)
		return 0;
	if (!fstat(fd, &st)) {
		native_identify(&st, &id);
		file = find_file(fd, &id);
	}
	close(fd);
	if (file)
		note_list(s, map, file);
	return s->count == NATIVE_JIT_LISTS_MAX;
}

static int add_to_hash(const struct procfs_map *map, void *arg)
{
	uint64_t *hash = arg;
	const uint64_t parts[] = {*hash, map->start, map->offset, map->inode, map->dev_major, map->dev_minor};

	if (map->executable && map->inode)
		*hash = siphash(siphash_process_key(), parts, sizeof(parts));
	return 0;
}

size_t native_jit_find_lists(pid_t pid, uint64_t out[NATIVE_JIT_LISTS_MAX])
{
	/* Opening all files takes some milliseconds, and the same process is asked about twice a second. */
	static struct {
		uint64_t hash; /* of the process and what it maps; 0: nothing is known */
		uint64_t lists[NATIVE_JIT_LISTS_MAX];
		size_t count;
	} known;
	struct search search = {.pid = pid, .out = known.lists};
	uint64_t hash = (uint64_t)pid;

	if (procfs_each_map(pid, add_to_hash, &hash))
		return 0;
	if (hash != known.hash) {
		procfs_each_map(pid, visit_map, &search);
		known.hash = hash;
		known.count = search.count;
	}
	memcpy(out, known.lists, known.count * sizeof(*out));
	return known.count;
}

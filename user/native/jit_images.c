// SPDX-License-Identifier: Apache-2.0
#include "native/jit_images.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/elf_file.h"
#include "base/remote.h"

#define VERSION 1
/* Most entries of a list: numba makes one or two for each function that it compiles. */
#define ENTRIES_MAX (16 * 1024)
/* Most bytes of a file; numba's have some 10 KiB. */
#define IMAGE_MAX (64u << 20)
/* Most bytes that are read by one walk along the list, and what a read costs beside its bytes. */
#define BYTES_MAX (64u << 20)
#define READ_COST 512
/* Most sections of code of a file: LLVM makes one, or one for each function. */
#define SECTIONS_MAX 256

/* struct jit_descriptor and struct jit_code_entry of the interface. */
struct descriptor {
	uint32_t version, action;
	uint64_t relevant, first;
};

struct entry {
	uint64_t next, previous;
	uint64_t image, size;
};

/* Where a name comes from. */
struct origin {
	uint64_t entry, image; /* addresses; entry 0: it has none of this list */
	bool is_listed;        /* the entry was still there afterwards */
};

struct search {
	pid_t pid;
	uint64_t left; /* bytes that may still be read in this walk */
	struct native_named *named;
	struct origin *origins;
	size_t count;
	/* Room for those of a section that have no name yet. */
	struct native_named *nameless;
};

static int read_memory(struct search *s, uint64_t address, void *buf, size_t size)
{
	if (s->left < size + READ_COST)
		return -EFBIG;
	s->left -= size + READ_COST;
	return remote_read(s->pid, address, buf, size);
}

/* The process may change the list meanwhile, and make a circle of it. */
static void visit_entries(struct search *s, uint64_t descriptor,
			  void (*visit)(struct search *s, uint64_t at, const struct entry *entry))
{
	struct descriptor head;
	uint64_t at, mark = 0;
	struct entry entry;

	s->left = BYTES_MAX;
	if (read_memory(s, descriptor, &head, sizeof(head)) || head.version != VERSION)
		return;
	at = head.first;
	for (uint32_t i = 0; i < ENTRIES_MAX && at && at != mark; i++) {
		if (read_memory(s, at, &entry, sizeof(entry)))
			return;
		visit(s, at, &entry);
		/* One of a circle, as soon as there are as many entries before it. */
		if (!(i & (i + 1)))
			mark = at;
		at = entry.next;
	}
}

struct image {
	struct search *search;
	uint64_t address;
};

static ssize_t read_image(void *arg, uint64_t offset, void *buf, size_t size)
{
	const struct image *image = arg;
	int err = read_memory(image->search, image->address + offset, buf, size);

	return err ? err : (ssize_t)size;
}

/* Names the addresses from a first one on that are in a section. */
static void name_section(struct search *s, struct elf_file *elf, size_t first, size_t nr, const struct origin *origin)
{
	size_t nr_nameless = 0, next = 0;

	for (size_t i = first; i < first + nr; i++) {
		if (!s->named[i].size)
			s->nameless[nr_nameless++] = (struct native_named){.address = s->named[i].address};
	}
	if (!nr_nameless || native_find_names(elf, s->nameless, nr_nameless))
		return;
	for (size_t i = first; i < first + nr; i++) {
		if (s->named[i].size)
			continue;
		if (s->nameless[next].size) {
			s->named[i] = s->nameless[next];
			s->origins[i] = *origin;
		}
		next++;
	}
}

static void name_by_entry(struct search *s, uint64_t at, const struct entry *entry)
{
	const struct origin origin = {.entry = at, .image = entry->image};
	struct image image = {s, entry->image};
	struct elf_section sections[SECTIONS_MAX];
	struct elf_file *elf;
	size_t nr;

	if (entry->size > IMAGE_MAX || elf_file_open_by(read_image, &image, entry->size, &elf))
		return;
	nr = elf_file_code_sections(elf, sections, SECTIONS_MAX);
	for (size_t i = 0; i < nr; i++) {
		size_t first = native_count_below(s->named, s->count, sections[i].addr), end = first;

		while (end < s->count && s->named[end].address - sections[i].addr < sections[i].size)
			end++;
		name_section(s, elf, first, end - first, &origin);
	}
	elf_file_free(elf);
}

static void note_listed(struct search *s, uint64_t at, const struct entry *entry)
{
	for (size_t i = 0; i < s->count; i++) {
		if (s->origins[i].entry == at && s->origins[i].image == entry->image)
			s->origins[i].is_listed = true;
	}
}

static void take_back_unlisted(struct search *s)
{
	for (size_t i = 0; i < s->count; i++) {
		if (s->origins[i].entry && !s->origins[i].is_listed)
			s->named[i] = (struct native_named){.address = s->named[i].address};
	}
}

int native_jit_find(pid_t pid, uint64_t descriptor, struct native_named *named, size_t count)
{
	struct search s = {.pid = pid, .named = named, .count = count};
	int err = -ENOMEM;

	s.origins = calloc(count + 1, sizeof(*s.origins));
	s.nameless = calloc(count + 1, sizeof(*s.nameless));
	if (s.origins && s.nameless) {
		visit_entries(&s, descriptor, name_by_entry);
		visit_entries(&s, descriptor, note_listed);
		take_back_unlisted(&s);
		err = 0;
	}
	free(s.origins);
	free(s.nameless);
	return err;
}

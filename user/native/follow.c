// SPDX-License-Identifier: Apache-2.0
#include "native/follow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/intern.h"
#include "native/ahead_merge.h"
#include "native/ask.h"
#include "native/made.h"
#include "native/mapped.h"
#include "native/page.h"
#include "native/table.h"

/* Most instructions of a process that are asked for what follows them: the search begins again after each. */
#define STOPS_MAX 512
/* Most bytes of .eh_frame of which tables are made, of all files: some 10 ms of CPU time for a MiB. */
#define EH_FRAME_MAX (16u << 20)

/* Longest CPU time that names of code in no file take: the lists of a process may be long. */
#define NAMES_NS 200000000u

enum table_state {
	TABLE_UNMADE,
	TABLE_MADE, /* it may have no rows */
	TABLE_LEFT, /* it is not made */
};

struct file {
	struct native_identity id;
	enum table_state state;
	const struct native_mapped *mapped; /* the first mapping of it */
	struct native_file about;
	struct native_table table;
	uint32_t first, pages; /* by which the walker asks for the table */
};

/* An instruction that was asked for, whatever the answer. */
struct stop {
	uint32_t file, pc;
};

/* An instruction of code in no file. */
struct made_name {
	uint64_t address;
	char *name; /* NULL: it has none */
};

struct native_follower {
	pid_t pid;
	struct native_mappings *mappings;
	uint32_t *files_of; /* the mappings' */
	struct intern files, stops, names;
	uint64_t names_ns; /* CPU time that names have taken */
	struct pybpf_native_mapping *placed;
	struct pybpf_native_list list;
	uint32_t next_page;
	uint64_t eh_frame_left; /* bytes, up to EH_FRAME_MAX */
	struct file *late;      /* a search has ended there, and its table is to be made; NULL: none */
	struct native_walker *walker;
	struct native_ahead_rows *ahead;
	struct native_followed_frame frames[PYBPF_NATIVE_FRAMES];
};

static struct file *file_at(const struct native_follower *f, uint32_t i)
{
	return intern_item(&f->files, i);
}

static int read_page(void *arg, uint32_t number, struct pybpf_native_page *out)
{
	const struct native_follower *f = arg;

	if (number - f->list.first < native_pages_of_mappings(f->list.count)) {
		native_page_of_mappings(f->placed, f->list.count, f->list.generation, number - f->list.first, out);
		return 0;
	}
	for (uint32_t i = 0; i < f->files.count; i++) {
		const struct file *file = file_at(f, i);

		if (number - file->first >= file->pages)
			continue;
		native_page_of_rows(file->table.rows, file->table.count, number - file->first, out);
		return 0;
	}
	return -ENOENT;
}

/* Tells the walker of what is known of files by now. Pages that have changed have new numbers. */
static void place_all(struct native_follower *f)
{
	for (uint32_t i = 0; i < f->mappings->count; i++) {
		const struct native_mapped *mapped = &f->mappings->items[i];
		const struct file *file = file_at(f, f->files_of[i]);
		uint64_t size = mapped->end - mapped->start;
		struct pybpf_native_mapping *m = &f->placed[i];

		*m = (struct pybpf_native_mapping){
			.start = mapped->start,
			.size = size < UINT32_MAX ? (uint32_t)size : UINT32_MAX,
			.file = f->files_of[i] + 1,
			.first = PYBPF_NATIVE_NO_PAGE,
			.pages = 1,
		};
		if (file->state != TABLE_MADE)
			continue;
		m->first = file->first;
		m->pages = native_find_bias(&file->about, mapped->offset, m) ? file->pages : 0;
	}
	f->list.first = f->next_page;
	f->list.generation++;
	f->next_page += native_pages_of_mappings(f->list.count);
}

static void take_table(struct native_follower *f, struct file *file)
{
	file->state = TABLE_MADE;
	file->first = f->next_page;
	file->pages = native_pages_of_rows(file->table.count);
	f->next_page += file->pages;
}

static int add_file(struct native_follower *f, uint32_t i)
{
	const struct native_mapped *mapped = &f->mappings->items[i];
	const struct file fresh = {.id = mapped->file, .mapped = mapped};
	bool is_fresh = false;

	f->files_of[i] = intern_add(&f->files, &fresh, &is_fresh);
	if (f->files_of[i] == INTERN_NONE)
		return -ENOMEM;
	if (is_fresh && native_is_made(mapped)) {
		native_made_about(mapped, &file_at(f, f->files_of[i])->about);
		file_at(f, f->files_of[i])->state = TABLE_MADE;
	}
	return 0;
}

int native_follower_new(pid_t pid, struct native_follower **out)
{
	struct native_follower *f = calloc(1, sizeof(*f));
	int err = -ENOMEM;

	*out = NULL;
	if (!f)
		return -ENOMEM;
	f->pid = pid;
	f->eh_frame_left = EH_FRAME_MAX;
	intern_init(&f->files, sizeof(struct file), sizeof(struct native_identity));
	intern_init(&f->stops, sizeof(struct stop), sizeof(struct stop));
	intern_init(&f->names, sizeof(struct made_name), sizeof(uint64_t));
	f->mappings = malloc(sizeof(*f->mappings));
	f->ahead = malloc(sizeof(*f->ahead));
	f->walker = native_walker_new(read_page, f, PYBPF_NATIVE_EXACT_ALL);
	if (f->mappings && f->ahead && f->walker)
		err = native_list_mappings(pid, f->mappings);
	if (!err) {
		f->list.count = f->mappings->count;
		f->files_of = calloc(f->list.count + 1u, sizeof(*f->files_of));
		f->placed = calloc(f->list.count + 1u, sizeof(*f->placed));
		err = f->files_of && f->placed ? 0 : -ENOMEM;
	}
	for (uint32_t i = 0; i < f->list.count && !err; i++)
		err = add_file(f, i);
	if (err) {
		native_follower_free(f);
		return err;
	}
	place_all(f);
	*out = f;
	return 0;
}

void native_follower_free(struct native_follower *f)
{
	if (!f)
		return;
	for (uint32_t i = 0; i < f->files.count; i++)
		native_table_free(&file_at(f, i)->table);
	for (uint32_t i = 0; i < f->names.count; i++)
		free(((struct made_name *)intern_item(&f->names, i))->name);
	intern_free(&f->files);
	intern_free(&f->stops);
	intern_free(&f->names);
	native_walker_free(f->walker);
	free(f->mappings);
	free(f->files_of);
	free(f->placed);
	free(f->ahead);
	free(f);
}

/* Returns whether there is time for the file's table, and takes it. */
static bool take_time(struct native_follower *f, struct elf_file *elf)
{
	struct elf_section section;

	if (elf_file_section(elf, ".eh_frame", &section))
		return true;
	if (section.size > f->eh_frame_left)
		return false;
	f->eh_frame_left -= section.size;
	return true;
}

static bool make_table(struct native_follower *f, struct file *file)
{
	struct elf_file *elf;
	int err = native_open_mapped(f->pid, file->mapped, &elf);

	file->state = TABLE_LEFT;
	if (err)
		return false;
	err = take_time(f, elf) ? native_table_make(elf, false, &file->table) : -EFBIG;
	if (!err || err == -ENOENT) {
		native_describe_file(elf, &file->table, &file->about);
		take_table(f, file);
	}
	elf_file_free(elf);
	return file->state == TABLE_MADE;
}

/* Adds rows of an instruction. Returns whether there are any. */
static bool add_ahead(struct native_follower *f, struct file *file, const struct native_stop *at)
{
	const struct stop stop = {(uint32_t)(file - file_at(f, 0)), at->pc};
	const struct native_source source = {.pid = f->pid, .mapped = *file->mapped};
	struct pybpf_native_row *rows;
	bool is_fresh = false;
	size_t count;

	if (f->stops.count >= STOPS_MAX || intern_add(&f->stops, &stop, &is_fresh) == INTERN_NONE || !is_fresh ||
	    native_make_ahead(&source, file->about.base, at, 1, f->ahead) || !f->ahead->count ||
	    native_merge_ahead(file->table.rows, file->table.count, f->ahead->rows, f->ahead->count, &rows, &count))
		return false;
	free(file->table.rows);
	file->table.rows = rows;
	file->table.count = count;
	take_table(f, file);
	return true;
}

/* Finds out more of where a search has ended. Returns whether there is more. */
static bool learn(struct native_follower *f, const struct native_walked *walked, bool is_quick)
{
	uint64_t last = walked->count ? walked->frames[walked->count - 1] : 0;
	uint32_t number = PYBPF_NATIVE_FRAME_FILE(last);
	struct file *file;

	if (!number)
		return false;
	file = file_at(f, number - 1);
	if (walked->end == PYBPF_NATIVE_END_NO_TABLE && file->state == TABLE_UNMADE) {
		f->late = is_quick ? file : NULL;
		return !is_quick && make_table(f, file);
	}
	if (walked->end != PYBPF_NATIVE_END_NO_ROW || file->state != TABLE_MADE)
		return false;
	return add_ahead(
		f, file,
		&(struct native_stop){PYBPF_NATIVE_FRAME_PC(last), walked->places[walked->count - 1].is_exact});
}

static struct native_followed_frame describe(const struct native_follower *f, uint64_t frame,
					     const struct native_place *place)
{
	uint32_t number = PYBPF_NATIVE_FRAME_FILE(frame);
	const struct file *file = number ? file_at(f, number - 1) : NULL;

	return (struct native_followed_frame){
		.pc = place->pc,
		.is_exact = place->is_exact,
		.is_loop = frame & PYBPF_NATIVE_FRAME_EVAL,
		.is_made = file && native_is_made(file->mapped),
		.is_vdso = file && native_is_vdso(file->mapped),
		.linked = file ? file->about.base + PYBPF_NATIVE_FRAME_PC(frame) : 0,
	};
}

bool native_follow(struct native_follower *f, const struct native_thread *thread, bool is_quick,
		   struct native_followed *out)
{
	struct native_thread own = *thread;
	struct native_walked walked;

	own.pid = f->pid;
	f->late = NULL;
	native_walker_follow(f->walker, &own, &f->list, &walked);
	while (learn(f, &walked, is_quick)) {
		place_all(f);
		native_walker_follow(f->walker, &own, &f->list, &walked);
	}
	for (uint32_t i = 0; i < walked.count; i++)
		f->frames[i] = describe(f, walked.frames[i], &walked.places[i]);
	*out = (struct native_followed){f->frames, walked.count, walked.end};
	if (walked.end == PYBPF_NATIVE_END_NO_MAPPING && f->mappings->left_out)
		out->end = PYBPF_NATIVE_END_NO_TABLE;
	return !f->late;
}

void native_follower_prepare(struct native_follower *f)
{
	if (f->late && make_table(f, f->late))
		place_all(f);
	f->late = NULL;
}

/* Where its function is: a call can be the last instruction of one. */
static uint64_t inside(const struct native_followed_frame *frame)
{
	return frame->pc - !frame->is_exact;
}

static int compare_addresses(const void *a, const void *b)
{
	const struct native_named *one = a, *other = b;

	return one->address < other->address ? -1 : one->address > other->address;
}

static void find_names(struct native_follower *f, struct native_named *named, size_t count)
{
	uint64_t began_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);

	qsort(named, count, sizeof(*named), compare_addresses);
	native_find_made_names(f->pid, named, count);
	for (size_t i = 0; i < count; i++) {
		const struct made_name key = {.address = named[i].address};
		struct made_name *known = intern_item(&f->names, intern_find(&f->names, &key));

		known->name = named[i].size ? strdup(named[i].symbol) : NULL;
	}
	f->names_ns += clock_ns(CLOCK_PROCESS_CPUTIME_ID) - began_ns;
}

/* Finds those that were not met before. Without memory or time they have none. */
static void find_new_names(struct native_follower *f, const struct native_followed_frame *frames, uint32_t count)
{
	struct native_named *named;
	size_t nr_made = 0, nr_new = 0;

	for (uint32_t i = 0; i < count; i++)
		nr_made += frames[i].is_made;
	named = nr_made && f->names_ns <= NAMES_NS ? calloc(nr_made, sizeof(*named)) : NULL;
	for (uint32_t i = 0; i < count && named; i++) {
		const struct made_name fresh = {.address = inside(&frames[i])};
		bool is_fresh = false;

		if (frames[i].is_made && intern_add(&f->names, &fresh, &is_fresh) != INTERN_NONE && is_fresh)
			named[nr_new++].address = fresh.address;
	}
	if (nr_new)
		find_names(f, named, nr_new);
	free(named);
}

/* Finds the name of a function of the kernel's own code: one symbol table for all processes. */
static void find_vdso_name(struct native_follower *f, const struct native_followed_frame *frame)
{
	const struct made_name fresh = {.address = inside(frame)};
	struct native_named named = {.address = frame->linked};
	bool is_fresh = false;
	uint32_t at = intern_add(&f->names, &fresh, &is_fresh);
	struct elf_file *elf;

	if (at == INTERN_NONE || !is_fresh || native_open_mapped(f->pid, &(struct native_mapped){0}, &elf))
		return;
	if (!native_find_names(elf, &named, 1) && named.size)
		((struct made_name *)intern_item(&f->names, at))->name = strdup(named.symbol);
	elf_file_free(elf);
}

void native_follower_name(struct native_follower *f, struct native_followed_frame *frames, uint32_t count)
{
	find_new_names(f, frames, count);
	for (uint32_t i = 0; i < count; i++) {
		const struct made_name key = {.address = inside(&frames[i])};
		uint32_t at;

		if (frames[i].is_vdso)
			find_vdso_name(f, &frames[i]);
		at = frames[i].is_made || frames[i].is_vdso ? intern_find(&f->names, &key) : INTERN_NONE;
		if (at != INTERN_NONE)
			frames[i].name = ((const struct made_name *)intern_item(&f->names, at))->name;
	}
}

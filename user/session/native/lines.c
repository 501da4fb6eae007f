// SPDX-License-Identifier: Apache-2.0
/* Has lines of native functions found, file by file. */
#include "session/native/lines.h"

#include <errno.h>

#include "base/log.h"
#include "kernel/native.h"
#include "session/internal.h"
#include "session/native/internal.h"
#include "session/native/name_list.h"

/* Attempts to read lines of a file before it is given up: a helper may be killed by another file's question. */
#define TRIES_MAX 2

enum state {
	UNTRIED,
	THERE,
	NONE,      /* it has no information for debuggers, and none was found */
	ELSEWHERE, /* that is in files of its own, which are not there or not read */
	FAILED,    /* it is too large, or could not be read in time */
};

/* A file of which lines are wanted. */
struct lines_file {
	uint32_t number; /* as frames have it */
	uint32_t tries;
	enum state state;
	uint64_t places, found, cpu_ns;
};

void native_lines_init(struct native_lines_files *l)
{
	intern_init(&l->files, sizeof(struct lines_file), sizeof(uint32_t));
}

void native_lines_free(struct native_lines_files *l)
{
	intern_free(&l->files);
}

static struct lines_file *file_of(struct native_lines_files *l, uint32_t number)
{
	const struct lines_file fresh = {.number = number};
	uint32_t i = intern_add(&l->files, &fresh, &(bool){false});

	return i == INTERN_NONE ? NULL : intern_item(&l->files, i);
}

/* Gives the places of an answer their functions; one that finds no memory stays without. */
static void take_lines(struct session_native_state *n, struct lines_file *file)
{
	const struct native_lines_found *found = &n->answer->lines;
	uint32_t at = 0;

	file->cpu_ns += found->cpu_ns;
	for (uint32_t i = 0; i < found->places; i++) {
		uint32_t begin = at;
		int err;

		while (at < found->count && found->lines[at].place == i)
			at++;
		err = native_frames_set_lines(n->frames, file->number, n->pcs[i], &found->lines[begin], at - begin);
		file->places++;
		file->found += !err && at > begin;
	}
}

static void leave_without(struct session_native_state *n, struct lines_file *file)
{
	for (uint32_t i = 0; i < n->nr_pcs; i++)
		native_frames_set_lines(n->frames, n->job_file, n->pcs[i], NULL, 0);
	if (file)
		file->places += n->nr_pcs;
}

static void note_result(struct lines_file *file, int err)
{
	if (!err)
		file->state = THERE;
	else if ((err == -ENOENT || err == -ENOLINK) && file->state == UNTRIED)
		file->state = err == -ENOENT ? NONE : ELSEWHERE;
	else if (err == -EFBIG || ++file->tries == TRIES_MAX)
		file->state = FAILED;
}

/* Puts lines off that a file may have which is fetched later. Returns whether it may be. */
static bool put_off_lines(struct session *s, int err)
{
	struct session_native_state *n = s->native;
	bool is_refused = n->names_source.fetched_size && err != -ENOENT && err != -ENOLINK && err != -EFBIG;

	if (is_refused)
		n->fetching.refused = err;
	else if (n->names_source.fetched_size || err != -ENOENT || !native_may_fetch(s, n->job_file))
		return false;
	for (uint32_t i = 0; i < n->nr_pcs; i++)
		native_frames_put_off(n->frames, n->job_file, n->pcs[i]);
	return true;
}

int native_find_lines(struct session *s)
{
	struct session_native_state *n = s->native;
	struct lines_file *file = file_of(&n->lines, n->job_file);
	bool is_asked = file && file->state < NONE && n->names_source.mapped.start;
	int err = -ENOENT;

	if (is_asked)
		err = native_ask_lines(&n->names_source, n->names_base, n->pcs, n->nr_pcs, &n->answer->lines);
	if (err == -EINPROGRESS)
		return err;
	/* The process may have ended: then its path leads to the file, where it leads this process to it. */
	if (is_asked && err && err != -EFBIG && n->names_source.pid) {
		n->names_source.pid = 0;
		return -EINPROGRESS;
	}
	if (is_asked && err && put_off_lines(s, err))
		return 0;
	if (is_asked)
		note_result(file, err);
	if (!err)
		take_lines(n, file);
	else if (!file || file->state > THERE || !is_asked)
		leave_without(n, file);
	/* Stacks that cannot be built now are tried again at the end. */
	stacks_retry(s->stacks);
	return 0;
}

uint32_t native_find_row(const struct session *s, uint32_t number, uint32_t pc)
{
	const struct native_files *files = &s->native->files;
	uint32_t index = native_files_of(files, number);
	const struct native_shown *shown = index == INTERN_NONE ? NULL : &native_files_at(files, index)->shown;
	uint32_t low = 0, high = shown ? shown->pages : 0, row = pc;
	struct pybpf_native_page page;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (kernel_read_native_page(s->kernel, shown->first + middle, &page))
			return pc;
		if (page.rows[0].pc <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || kernel_read_native_page(s->kernel, shown->first + low - 1, &page))
		return pc;
	for (uint32_t i = 0; i < PYBPF_NATIVE_PAGE_ROWS && page.rows[i].pc <= pc; i++) {
		/* As the kernel side has it: a row without a rule is not one function's. */
		row = PYBPF_RULE_KIND(page.rows[i].rule) == PYBPF_NATIVE_NONE ? pc : page.rows[i].pc;
	}
	return row;
}

/* Writes the names of the files in that state, but for those that were forgotten. Returns their number. */
static uint64_t write_files(const struct session_native_state *n, enum state state, char *out, size_t size)
{
	struct name_list list;

	name_list_begin(&list, out, size);
	for (uint32_t i = 0; i < n->lines.files.count; i++) {
		const struct lines_file *file = intern_item(&n->lines.files, i);
		const char *name = native_frames_file_name(n->frames, file->number);

		if (file->state == state && *name)
			name_list_add(&list, name);
	}
	return name_list_end(&list);
}

void native_tell_lines(const struct session_native_state *n, struct session_native_account *out)
{
	for (uint32_t i = 0; i < n->lines.files.count; i++) {
		const struct lines_file *file = intern_item(&n->lines.files, i);

		out->line_places += file->places;
		out->line_places_found += file->found;
		out->lines_ns += file->cpu_ns;
	}
	out->unread_line_places = native_frames_count_without_lines(n->frames);
	out->lineless_files = write_files(n, NONE, out->lineless, sizeof(out->lineless));
	out->elsewhere_line_files = write_files(n, ELSEWHERE, out->elsewhere_lines, sizeof(out->elsewhere_lines));
	out->failed_line_files = write_files(n, FAILED, out->failed_lines, sizeof(out->failed_lines));
}

void native_log_lines(const struct session_native_state *n)
{
	for (uint32_t i = 0; i < n->lines.files.count; i++) {
		const struct lines_file *file = intern_item(&n->lines.files, i);

		log_info("native lines: %s: %llu of %llu places, in %.1f ms of CPU time",
			 native_frames_file_name(n->frames, file->number), (unsigned long long)file->found,
			 (unsigned long long)file->places, (double)file->cpu_ns / 1e6);
	}
}

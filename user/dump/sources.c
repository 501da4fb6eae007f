// SPDX-License-Identifier: Apache-2.0
/* Reads sources through session/sources/source_file.h, each file once. */
#include "dump/sources.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "session/sources/source_check.h"
#include "session/sources/source_file.h"

/* Longest check of all texts, in CPU time. */
#define CHECK_NS 1000000000

struct file {
	char *path, *shown, *text; /* text: NULL if it is not usable */
	struct source_claims claims;
};

void dump_sources_init(struct dump_sources *sources, bool wanted, const struct ps_row *row, struct dump_process *out)
{
	sources->out = out;
	intern_init(&sources->files, sizeof(struct file), INTERN_TEXT);
	sources->wanted = wanted && source_read_rights(row->process.pid, &sources->rights);
}

static void free_file(struct file *file)
{
	free(file->path);
	free(file->shown);
	free(file->text);
	source_claims_free(&file->claims);
}

void dump_sources_free(struct dump_sources *sources)
{
	for (uint32_t i = 0; i < sources->files.count; i++)
		free_file(intern_item(&sources->files, i));
	intern_free(&sources->files);
}

static char *read_text(const struct dump_sources *sources, const struct stacks_function *function)
{
	const struct ps_row *row = sources->out->row;
	const struct source_file source = {
		.pid = row->process.pid, .start = row->process.start_time, .path = function->named->path};
	struct source_identity identity;
	struct source_rights as;
	int err = source_file_look(&source, function->rights, &as, &identity);
	char *text = NULL;

	if (!err)
		err = source_file_text(&source, &as, &identity, &text);
	if (err)
		source_file_leave_out(function->named->file, source.path, err);
	return text;
}

/* Returns the file, or NULL without memory. */
static struct file *add(struct dump_sources *sources, const struct stacks_function *function)
{
	struct file file = {.path = strdup(function->named->path),
			    .shown = strdup(function->named->file),
			    .text = read_text(sources, function)};
	uint32_t i = INTERN_NONE;

	source_claims_init(&file.claims);
	if (file.path && file.shown)
		i = intern_add(&sources->files, &file, &(bool){false});
	if (i != INTERN_NONE)
		return intern_item(&sources->files, i);
	free_file(&file);
	return NULL;
}

int dump_sources_met(void *arg, const struct stacks_function *function)
{
	struct dump_sources *sources = arg;
	uint32_t i = intern_find(&sources->files, &function->named->path);
	struct file *file = i == INTERN_NONE ? add(sources, function) : intern_item(&sources->files, i);

	if (!file)
		return -ENOMEM;
	return file->text ? source_claims_add(&file->claims, sources->pysym, function) : 0;
}

/* Puts the texts into the profile. */
static int keep_texts(const struct dump_sources *sources)
{
	uint64_t left_ns = CHECK_NS;
	int err = 0;

	for (uint32_t i = 0; i < sources->files.count && !err; i++) {
		const struct file *file = intern_item(&sources->files, i);

		if (!file->text)
			continue;
		if (source_fits_all(file->text, &file->claims, &left_ns))
			err = profile_set_source(sources->out->stacks, file->shown, file->text);
		else
			source_file_leave_out(file->shown, file->path, -EILSEQ);
	}
	return err;
}

static const char *source_of(const struct profile *p, uint32_t file)
{
	size_t count;
	const struct profile_source *sources = profile_sources(p, &count);

	for (size_t i = 0; file && i < count; i++) {
		if (sources[i].file == file)
			return profile_string(p, sources[i].text);
	}
	return NULL;
}

static struct dump_line cut_line(const char *text, int32_t number)
{
	struct dump_line line = {.text = NULL};
	size_t len;

	for (int32_t i = 1; i < number && text; i++) {
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
	if (!text || number < 1)
		return line;
	line.begin = strspn(text, " \t\f");
	text += line.begin;
	len = strcspn(text, "\n");
	while (len && strchr(" \t", text[len - 1]))
		len--;
	line.text = len ? strndup(text, len) : NULL;
	return line;
}

int dump_cut_lines(const struct dump_sources *sources)
{
	struct dump_process *process = sources->out;
	const struct profile *p = process->stacks;
	uint32_t count = profile_frame_count(p);

	if (keep_texts(sources))
		return -ENOMEM;
	process->lines = calloc(count + 1, sizeof(*process->lines));
	if (!process->lines)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		const struct profile_frame *frame = profile_frame_at(p, i);
		const char *text = source_of(p, frame->file);

		if (text)
			process->lines[i] = cut_line(text, frame->line);
	}
	return 0;
}

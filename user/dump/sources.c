// SPDX-License-Identifier: Apache-2.0
/* Reads sources through session/source_file.h, each file once. */
#include "dump/sources.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "session/source_file.h"

/* Uncertainty of both clocks: a process's start is rounded down to a clock tick, and a file's time is about as coarse.
 */
#define CLOCKS_S 0.02

void dump_sources_init(struct dump_sources *sources, bool wanted, const struct ps_row *row, struct dump_process *out)
{
	sources->out = out;
	intern_init(&sources->files, sizeof(char *), INTERN_TEXT);
	sources->wanted = wanted && source_read_rights(row->process.pid, &sources->rights);
}

void dump_sources_free(struct dump_sources *sources)
{
	for (uint32_t i = 0; i < sources->files.count; i++)
		free(*(char **)intern_item(&sources->files, i));
	intern_free(&sources->files);
}

static int read_source(const struct dump_sources *sources, const struct pybpf_rights *rights, const char *file,
		       const char *path)
{
	const struct scan_process *process = &sources->out->row->process;
	const struct source_file source = {.pid = process->pid, .start = process->start_time, .path = path};
	double began_s = clock_s(CLOCK_REALTIME) - clock_s(CLOCK_BOOTTIME) +
			 (double)process->start_time / (double)sysconf(_SC_CLK_TCK);
	struct source_identity identity;
	struct source_rights as;
	char *text;
	int err = 0;

	if (path[0] != '/' || source_file_look(&source, rights, &as, &identity) ||
	    (double)identity.modified_s + (double)identity.modified_ns / 1e9 > began_s + CLOCKS_S)
		return 0;
	text = source_file_text(&source, &as, &identity);
	if (text)
		err = profile_set_source(sources->out->stacks, file, text);
	free(text);
	return err;
}

int dump_sources_met(void *arg, uint64_t proc_id, const struct pybpf_rights *rights, const char *file, const char *path)
{
	struct dump_sources *sources = arg;
	char *key = strdup(path);
	bool fresh;

	(void)proc_id;
	if (!key || intern_add(&sources->files, &key, &fresh) == INTERN_NONE) {
		free(key);
		return -ENOMEM;
	}
	if (fresh)
		return read_source(sources, rights, file, path);
	free(key);
	return 0;
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

/* Returns a copy of the line, without blanks around it, or NULL. */
static char *cut_line(const char *text, int32_t number)
{
	size_t len;

	for (int32_t i = 1; i < number && text; i++) {
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
	if (!text || number < 1)
		return NULL;
	text += strspn(text, " \t\f");
	len = strcspn(text, "\r\n");
	while (len && strchr(" \t", text[len - 1]))
		len--;
	return len ? strndup(text, len) : NULL;
}

int dump_cut_lines(struct dump_process *process)
{
	const struct profile *p = process->stacks;
	uint32_t count = profile_frame_count(p);

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

// SPDX-License-Identifier: Apache-2.0
/* Collects the source files that samples are in, and puts the texts of the most frequent ones into the profile. */
#include "session/sources.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/intern.h"
#include "base/log.h"
#include "foreign/foreign.h"
#include "session/internal.h"
#include "session/source_file.h"

/* Most files whose text is kept: a report has room for no more. */
#define FILES_MAX 24
/* Uncertainty of both clocks: a process's start is rounded down to a clock tick, and a file's time is about as coarse.
 */
#define CLOCKS_S 0.02

struct file {
	char *shown; /* the key */
	char *path;
	pid_t pid; /* of the first process that had it */
	uint64_t start;
	int err; /* why its text is not usable; 0: it is */
	struct source_rights rights;
	struct source_identity identity; /* when it was met */
};

struct session_sources {
	struct session *session;
	struct intern files; /* struct file */
};

struct session_sources *session_sources_new(struct session *s)
{
	struct session_sources *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->session = s;
	intern_init(&t->files, sizeof(struct file), INTERN_TEXT);
	return t;
}

void session_sources_free(struct session_sources *t)
{
	if (!t)
		return;
	for (uint32_t i = 0; i < t->files.count; i++) {
		struct file *file = intern_item(&t->files, i);

		free(file->shown);
		free(file->path);
	}
	intern_free(&t->files);
	free(t);
}

/* Returns the start of the process in seconds since 1970. */
static double start_of(const struct processes_record *process)
{
	double boot_s = clock_s(CLOCK_REALTIME) - clock_s(CLOCK_BOOTTIME);

	return boot_s + (double)process->start / (double)sysconf(_SC_CLK_TCK);
}

/*
 * Identifies the file as it is now. Returns 0 if its text is usable: unchanged since before the process started; else
 * negative errno.
 */
static int look(const struct processes_record *process, const struct pybpf_rights *thread, const char *path,
		struct source_rights *rights, struct source_identity *identity)
{
	const struct source_file file = {.pid = process->pid, .start = process->start, .path = path};
	int err = path[0] == '/' ? source_file_look(&file, thread, rights, identity) : -ENOENT;

	if (err)
		return err;
	return (double)identity->modified_s + (double)identity->modified_ns / 1e9 <= start_of(process) + CLOCKS_S
		       ? 0
		       : -ESTALE;
}

static int add(struct session_sources *t, const struct processes_record *process, const struct pybpf_rights *rights,
	       const char *shown, const char *path)
{
	struct file file = {.shown = strdup(shown), .path = strdup(path), .pid = process->pid, .start = process->start};
	bool fresh;

	file.err = look(process, rights, path, &file.rights, &file.identity);
	if (file.shown && file.path && intern_add(&t->files, &file, &fresh) != INTERN_NONE)
		return 0;
	free(file.shown);
	free(file.path);
	return -ENOMEM;
}

int session_sources_met(struct session_sources *t, uint64_t proc_id, const struct pybpf_rights *rights,
			const char *file, const char *path)
{
	const struct processes_record *process = processes_find_record(t->session->processes, proc_id);
	uint32_t i = intern_find(&t->files, &file);
	struct source_identity identity;
	struct source_rights ignored;
	struct file *known;

	if (!process)
		return 0;
	if (i == INTERN_NONE)
		return add(t, process, rights, file, path);
	known = intern_item(&t->files, i);
	/* A helper that gave no answer has not said that the text is not usable. */
	if (foreign_has_no_answer(known->err) && known->pid == process->pid && strcmp(known->path, path) == 0)
		known->err = look(process, rights, path, &known->rights, &known->identity);
	if (known->err || (known->pid == process->pid && strcmp(known->path, path) == 0))
		return 0;
	known->err = look(process, rights, path, &ignored, &identity);
	if (!known->err && memcmp(&known->identity, &identity, sizeof(identity)) != 0)
		known->err = -ESTALE;
	return 0;
}

char *session_sources_read(const struct session_sources *t, const char *shown)
{
	uint32_t at = intern_find(&t->files, &shown);
	const struct file *file = at == INTERN_NONE ? NULL : intern_item(&t->files, at);
	struct source_file source;

	if (!file || file->err)
		return NULL;
	source = (struct source_file){.pid = file->pid, .start = file->start, .path = file->path};
	return source_file_text(&source, &file->rights, &file->identity);
}

struct heat {
	uint32_t file; /* string of the profile */
	uint64_t value;
};

static int hottest_first(const void *a, const void *b)
{
	const struct heat *x = a, *y = b;

	if (x->value != y->value)
		return x->value > y->value ? -1 : 1;
	return x->file < y->file ? -1 : x->file > y->file;
}

/* Returns the value of samples by source file; a sample counts once for each file it is in. */
static struct heat *heat_of(const struct profile *p)
{
	uint32_t strings = profile_string_count(p);
	struct heat *heat = calloc(strings, sizeof(*heat));
	size_t *seen = calloc(strings, sizeof(*seen)), count;
	const struct profile_sample *samples = profile_samples(p, &count);

	for (uint32_t i = 0; heat && i < strings; i++)
		heat[i].file = i;
	for (size_t i = 0; heat && seen && i < count; i++) {
		for (uint32_t s = samples[i].stack; s != PROFILE_ROOT; s = profile_stack_at(p, s)->parent) {
			uint32_t file = profile_frame_at(p, profile_stack_at(p, s)->frame)->file;

			if (file && seen[file] != i + 1)
				heat[file].value += samples[i].value;
			seen[file] = i + 1;
		}
	}
	if (!seen) {
		free(heat);
		heat = NULL;
	}
	free(seen);
	if (heat)
		qsort(heat, strings, sizeof(*heat), hottest_first);
	return heat;
}

int session_sources_collect(struct session_sources *t, struct profile *profile)
{
	uint32_t strings = profile_string_count(profile);
	struct heat *heat = heat_of(profile);
	int err = heat ? 0 : -ENOMEM;

	for (uint32_t i = 0; !err && i < strings && i < FILES_MAX && heat[i].value; i++) {
		const char *shown = profile_string(profile, heat[i].file);
		char *text = session_sources_read(t, shown);

		if (text)
			err = profile_set_source(profile, shown, text);
		else
			log_info("%s: its source was not there, not as it ran, or could not be read", shown);
		free(text);
	}
	free(heat);
	return err;
}

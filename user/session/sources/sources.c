// SPDX-License-Identifier: Apache-2.0
/* Collects the source files that samples are in, and puts the texts of the most frequent ones into the profile. */
#include "session/sources/sources.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/log.h"
#include "helper/helper.h"
#include "session/internal.h"
#include "session/sources/source_check.h"
#include "session/sources/source_file.h"

/* Most files whose text is kept: a report has room for no more. */
#define FILES_MAX 24
/* Longest check of a text, in CPU time; mostly it takes less than a millisecond. */
#define CHECK_NS 200000000
/*
 * A helper that gave no answer, as it does on a machine with much to do, is asked again while the process lives, at
 * most ASK_TRIES times, and not before ASK_AGAIN_S have passed.
 */
#define ASK_TRIES   4
#define ASK_AGAIN_S 0.2

struct file {
	char *shown; /* the key */
	char *path;
	pid_t pid; /* of the first process that had it */
	uint64_t start;
	int err; /* why its text is not usable; 0: it is */
	unsigned tries;
	struct pybpf_rights thread; /* of the first thread that had it */
	struct source_rights rights;
	struct source_identity identity; /* when it was met */
	struct source_claims claims;
};

struct session_sources {
	struct session *session;
	struct intern files;     /* struct file */
	double next_ask;         /* CLOCK_MONOTONIC seconds */
	unsigned tries_of_texts; /* of all files: the end of a run does not wait for a file system that hangs */
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
		source_claims_free(&file->claims);
	}
	intern_free(&t->files);
	free(t);
}

/* Identifies the file as it is now. Returns as source_file_look(). */
static int look(pid_t pid, uint64_t start, const struct pybpf_rights *thread, const char *path,
		struct source_rights *rights, struct source_identity *identity)
{
	const struct source_file file = {.pid = pid, .start = start, .path = path};

	return source_file_look(&file, thread, rights, identity);
}

static void ask(struct file *file)
{
	file->tries++;
	file->err = look(file->pid, file->start, &file->thread, file->path, &file->rights, &file->identity);
}

static struct file *add(struct session_sources *t, const struct processes_record *process,
			const struct stacks_function *function)
{
	struct file file = {.shown = strdup(function->named->file),
			    .path = strdup(function->named->path),
			    .pid = process->pid,
			    .start = process->start,
			    .thread = *function->rights};
	uint32_t i = INTERN_NONE;

	source_claims_init(&file.claims);
	if (file.shown && file.path) {
		ask(&file);
		i = intern_add(&t->files, &file, &(bool){false});
	}
	if (i != INTERN_NONE)
		return intern_item(&t->files, i);
	free(file.shown);
	free(file.path);
	return NULL;
}

/* Looks at the file of another process, or at another one that is shown alike: it must be the same one. */
static void look_at_other(struct file *known, const struct processes_record *process,
			  const struct stacks_function *function)
{
	const char *path = function->named->path;
	struct source_identity identity;
	struct source_rights ignored;

	if (known->err || (known->pid == process->pid && strcmp(known->path, path) == 0))
		return;
	known->err = look(process->pid, process->start, function->rights, path, &ignored, &identity);
	if (!known->err && memcmp(&known->identity, &identity, sizeof(identity)) != 0)
		known->err = -EXDEV;
}

int session_sources_met(struct session_sources *t, const struct stacks_function *function)
{
	const struct processes_record *process = processes_find_record(t->session->processes, function->proc_id);
	uint32_t i = intern_find(&t->files, &function->named->file);
	struct file *known;

	if (!process)
		return 0;
	known = i == INTERN_NONE ? add(t, process, function) : intern_item(&t->files, i);
	if (!known)
		return -ENOMEM;
	if (i != INTERN_NONE)
		look_at_other(known, process, function);
	if (known->err && !helper_has_no_answer(known->err))
		return 0;
	return source_claims_add(&known->claims, t->session->pysym, function);
}

void session_sources_ask_again(struct session_sources *t, double now)
{
	if (!t || now < t->next_ask)
		return;
	for (uint32_t i = 0; i < t->files.count; i++) {
		struct file *file = intern_item(&t->files, i);

		if (!helper_has_no_answer(file->err) || file->tries >= ASK_TRIES)
			continue;
		/* One at a time: the run's other work goes on. */
		ask(file);
		break;
	}
	t->next_ask = now + ASK_AGAIN_S;
}

/* Returns as source_file_text(). */
static int read_text(struct session_sources *t, const struct file *file, char **text)
{
	const struct source_file source = {.pid = file->pid, .start = file->start, .path = file->path};
	int err = source_file_text(&source, &file->rights, &file->identity, text);

	while (helper_has_no_answer(err) && t->tries_of_texts++ < ASK_TRIES)
		err = source_file_text(&source, &file->rights, &file->identity, text);
	return err;
}

char *session_sources_read(struct session_sources *t, const char *shown)
{
	uint32_t at = intern_find(&t->files, &shown);
	const struct file *file = at == INTERN_NONE ? NULL : intern_item(&t->files, at);
	char *text = NULL;
	int err;

	if (!file) {
		log_info("%s: its source is left out: no function of it was met", shown);
		return NULL;
	}
	err = file->err;
	if (!err)
		err = read_text(t, file, &text);
	if (!err && source_fits_all(text, &file->claims, &(uint64_t){CHECK_NS}))
		return text;
	free(text);
	source_file_leave_out(shown, file->path, err ?: -EILSEQ);
	return NULL;
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
		free(text);
	}
	free(heat);
	return err;
}

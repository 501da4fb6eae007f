// SPDX-License-Identifier: Apache-2.0
#include "session_sources.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "intern.h"
#include "log.h"
#include "procfs.h"
#include "session_internal.h"

/* What a report has room for. */
#define FILES_MAX 24
#define FILE_MAX  (1 << 20)
/* The start of a process is known to a clock tick, rounded down, and a file's time to about as much. */
#define CLOCKS_S 0.02

struct file {
	char *shown; /* the key */
	char *path;
	pid_t pid; /* of the first process that had it */
	bool usable;
	struct stat st; /* when it was met */
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
	intern_init(&t->files, sizeof(struct file), 0);
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

static double clock_s(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Seconds since 1970. */
static double start_of(const struct session_process *process)
{
	double boot_s = clock_s(CLOCK_REALTIME) - clock_s(CLOCK_BOOTTIME);

	return boot_s + (double)process->start / (double)sysconf(_SC_CLK_TCK);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* The file as it is now; its text is usable when it was there before the process. */
static bool look(const struct session_process *process, const char *path, struct stat *st)
{
	int fd = path[0] == '/' ? procfs_open_in_root(process->pid, path, st) : -ENOENT;
	double changed;

	if (fd < 0)
		return false;
	close(fd);
	changed = (double)st->st_mtim.tv_sec + (double)st->st_mtim.tv_nsec / 1e9;
	return st->st_size > 0 && st->st_size <= FILE_MAX && changed <= start_of(process) + CLOCKS_S;
}

static int add(struct session_sources *t, const struct session_process *process, const char *shown, const char *path)
{
	struct file file = {.shown = strdup(shown), .path = strdup(path), .pid = process->pid};
	bool fresh;

	file.usable = look(process, path, &file.st);
	if (file.shown && file.path && intern_add(&t->files, &file, &fresh) != INTERN_NONE)
		return 0;
	free(file.shown);
	free(file.path);
	return -ENOMEM;
}

int session_sources_met(struct session_sources *t, uint64_t proc_id, const char *file, const char *path)
{
	const struct session_process *process = session_processes_find(t->session->processes, proc_id);
	uint32_t i = intern_find(&t->files, &file);
	struct file *known;
	struct stat st;

	if (!process)
		return 0;
	if (i == INTERN_NONE)
		return add(t, process, file, path);
	known = intern_item(&t->files, i);
	if (!known->usable || (known->pid == process->pid && strcmp(known->path, path) == 0))
		return 0;
	known->usable = look(process, path, &st) && is_same(&known->st, &st);
	return 0;
}

/* Returns the text, which the caller frees, or NULL. */
static char *read_text(int fd, size_t size)
{
	char *text = malloc(size + 1);
	size_t done = 0;

	while (text && done < size) {
		ssize_t n = read(fd, text + done, size - done);

		if (n <= 0)
			break;
		done += (size_t)n;
	}
	if (!text || done < size || memchr(text, '\0', size)) {
		free(text);
		return NULL;
	}
	text[size] = '\0';
	return text;
}

/* By way of the process, or, when that has ended, in pybpf's own root, if it is the same file there. */
static char *text_of(const struct file *file)
{
	const pid_t ways[] = {file->pid, getpid()};
	char *text = NULL;

	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways) && !text; i++) {
		struct stat st;
		int fd = procfs_open_in_root(ways[i], file->path, &st);

		if (fd < 0)
			continue;
		if (is_same(&st, &file->st))
			text = read_text(fd, (size_t)st.st_size);
		close(fd);
	}
	return text;
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

/* Value of samples by the files that they are in, each counted once for a sample. */
static struct heat *heat_of(const struct profile *p)
{
	uint32_t strings = profile_string_count(p);
	struct heat *heat = calloc(strings, sizeof(*heat));
	size_t *seen = calloc(strings, sizeof(*seen)), count;
	const struct profile_sample *samples = profile_samples(p, &count);

	for (uint32_t i = 0; heat && i < strings; i++)
		heat[i].file = i;
	for (size_t i = 0; heat && seen && i < count; i++) {
		for (uint32_t s = samples[i].stack; s != PROFILE_ROOT; s = profile_stack(p, s)->parent) {
			uint32_t file = profile_frame(p, profile_stack(p, s)->frame)->file;

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
		uint32_t at = intern_find(&t->files, &shown);
		const struct file *file = at == INTERN_NONE ? NULL : intern_item(&t->files, at);
		char *text = file && file->usable ? text_of(file) : NULL;

		if (text)
			err = profile_set_source(profile, shown, text);
		else
			log_info("%s: its source was not there, or not as it ran", shown);
		free(text);
	}
	free(heat);
	return err;
}

// SPDX-License-Identifier: Apache-2.0
/* Opens files for profiles under numbered names, and writes them one by one. */
#include "cli/snapshots.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "cli/cli.h"
#include "cli/destination.h"

/* Returns the length of the path without the suffix by which the format is known. */
static size_t stem_of(const char *path, const struct output_format *format)
{
	size_t len = strlen(path);

	for (const char *at = format->suffixes; *at; at += strspn(at, " ")) {
		size_t suffix = strcspn(at, " ");

		if (suffix < len && !strncmp(path + len - suffix, at, suffix))
			return len - suffix;
		at += suffix;
	}
	return len;
}

/* Writes the path of the index-th file. Returns 0 or -ENAMETOOLONG. */
static int path_of(const struct cli_snapshots *s, size_t index, char out[PATH_MAX])
{
	size_t stem = stem_of(s->path, s->format);
	char number[24] = "";

	if (index)
		snprintf(number, sizeof(number), "-%zu", index + 1);
	return snprintf(out, PATH_MAX, "%.*s%s%s", (int)stem, s->path, number, s->path + stem) < PATH_MAX
		       ? 0
		       : -ENAMETOOLONG;
}

static int open_all(struct cli_snapshots *s)
{
	struct output_file *files[CLI_SNAPSHOTS_MAX];
	char path[PATH_MAX];
	struct error why;
	int err = 0;

	for (size_t i = 0; i < CLI_SNAPSHOTS_MAX && !err; i++) {
		files[i] = &s->files[i];
		error_clear(&why);
		err = path_of(s, i, path);
		if (err)
			error_set(&why, err, "%s", strerror(-err));
		else
			err = output_file_open(files[i], path, &why);
		if (!err && !*files[i]->name)
			err = error_set(&why, -EINVAL, "it is no file, and top may write several profiles");
		if (err)
			error_set(&s->error, err, "cannot write to %s: %s", path, why.text);
	}
	if (err || !output_committer_start(&s->committer, files, CLI_SNAPSHOTS_MAX, &why))
		return err;
	return error_set(&s->error, why.code, "cannot prepare the output: %s", why.text);
}

int cli_snapshots_open(struct cli_snapshots *s, const char *path, bool by_expression)
{
	char name[64];
	time_t now = time(NULL);
	struct tm tm;

	if (!path) {
		localtime_r(&now, &tm);
		strftime(name, sizeof(name), "pybpf-top-%Y%m%d-%H%M%S.pybpf", &tm);
	}
	s->format = output_by_path(path ?: name);
	if (!s->format)
		return cli_usage("-o %s: no format has that suffix; there are %s", path, cli_format_suffixes());
	if (by_expression && !s->format->by_expression)
		return cli_usage("--by=expression: %s has no place for expressions; text, json and pybpf have",
				 s->format->name);
	s->options.by_expression = s->options.by_line = by_expression;
	if ((size_t)snprintf(s->path, sizeof(s->path), "%s", path ?: name) >= sizeof(s->path))
		return cli_usage("-o: a path of more than %zu bytes", sizeof(s->path) - 1);
	if (!open_all(s))
		return CLI_OK;
	for (size_t i = 0; i < CLI_SNAPSHOTS_MAX; i++)
		output_file_discard(&s->files[i]);
	if (!path)
		return CLI_OK;
	log_error("%s", s->error.text);
	return CLI_FAILED;
}

int cli_snapshots_write(struct cli_snapshots *s, const struct profile *profile, struct error *outcome)
{
	struct output_file *file = &s->files[s->written];
	char path[PATH_MAX];
	int err;

	if (s->error.code)
		return error_set(outcome, s->error.code, "%s", s->error.text);
	if (s->written == CLI_SNAPSHOTS_MAX)
		return error_set(outcome, -ENOSPC, "%d profiles were written, which is the most of one run",
				 CLI_SNAPSHOTS_MAX);
	path_of(s, s->written, path);
	/* A write beyond RLIMIT_FSIZE then fails with EFBIG, and is reported as other failures are. */
	signal(SIGXFSZ, SIG_IGN);
	err = s->format->write(profile, &s->options, file->stream);
	if (err)
		output_file_discard(file);
	else
		err = output_committer_commit(&s->committer, file, s->written);
	s->written++;
	if (err)
		return error_set(outcome, err, "cannot write %s: %s; no file was made or replaced", path,
				 strerror(-err));
	error_set(outcome, 0, "wrote %s: %" PRIu64 " samples", path, profile_total(profile));
	return 0;
}

void cli_snapshots_close(struct cli_snapshots *s)
{
	for (size_t i = 0; i < CLI_SNAPSHOTS_MAX; i++)
		output_file_discard(&s->files[i]);
	output_committer_stop(&s->committer);
}

// SPDX-License-Identifier: Apache-2.0
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct output_format formats[] = {
	{"folded", ".folded", "one line per stack, root;...;leaf COUNT", output_folded},
	{"text", ".txt", "table of functions by their own and their total samples", output_text},
	{0},
};

const struct output_format *output_formats(void)
{
	return formats;
}

const struct output_format *output_by_name(const char *name)
{
	for (const struct output_format *f = formats; f->name; f++) {
		if (strcmp(f->name, name) == 0)
			return f;
	}
	return NULL;
}

const struct output_format *output_by_path(const char *path)
{
	const char *base = strrchr(path, '/');
	const char *suffix = strrchr(base ? base : path, '.');

	if (!suffix)
		return &formats[0];
	for (const struct output_format *f = formats; f->name; f++) {
		if (strcmp(f->suffix, suffix) == 0)
			return f;
	}
	return NULL;
}

void output_escaped(const char *text, FILE *out)
{
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c == '\\')
			fputs("\\\\", out);
		else if (*c == ';' || *c < 0x20 || *c == 0x7f)
			fprintf(out, "\\x%02x", *c);
		else
			fputc(*c, out);
	}
}

void output_process(const struct profile *p, uint32_t process, FILE *out)
{
	const struct profile_process *owner = profile_process(p, process);

	output_escaped(profile_string(p, owner->name), out);
	if (owner->inner_pid)
		fprintf(out, " (%d, %d inside)", owner->pid, owner->inner_pid);
	else if (owner->pid)
		fprintf(out, " (%d)", owner->pid);
}

void output_frame(const struct profile *p, uint32_t frame, FILE *out)
{
	const struct profile_frame *f = profile_frame(p, frame);
	const char *file = profile_string(p, f->file);

	output_escaped(profile_string(p, f->name), out);
	if (!*file)
		return;
	fputs(" (", out);
	output_escaped(file, out);
	if (f->line != PROFILE_NO_LINE)
		fprintf(out, ":%d", f->line);
	fputc(')', out);
}

int output_file_open(struct output_file *file, const char *path)
{
	struct stat st;
	int fd, err;
	mode_t mask;

	memset(file, 0, sizeof(*file));
	if (!*path)
		return -ENOENT;
	/* What is no regular file (a terminal, /dev/null, a pipe) is written as it is. */
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		if (S_ISDIR(st.st_mode))
			return -EISDIR;
		file->stream = fopen(path, "we");
		return file->stream ? 0 : -errno;
	}
	/* What a link points to is replaced, not the link. */
	file->path = realpath(path, NULL);
	if (!file->path)
		file->path = strdup(path);
	if (!file->path || asprintf(&file->temporary, "%s.XXXXXX", file->path) < 0) {
		file->temporary = NULL;
		output_file_discard(file);
		return -ENOMEM;
	}
	fd = mkostemp(file->temporary, O_CLOEXEC);
	if (fd < 0) {
		err = -errno;
		free(file->temporary);
		file->temporary = NULL;
		output_file_discard(file);
		return err;
	}
	file->stream = fdopen(fd, "w");
	if (!file->stream) {
		err = -errno;
		close(fd);
		output_file_discard(file);
		return err;
	}
	/* mkstemp makes it private; a profile is an ordinary file. */
	mask = umask(0);
	umask(mask);
	fchmod(fd, 0666 & ~mask);
	return 0;
}

int output_file_commit(struct output_file *file)
{
	int err = 0;

	errno = 0;
	if (fflush(file->stream) || ferror(file->stream))
		err = errno ? -errno : -EIO;
	if (fclose(file->stream) && !err)
		err = -errno;
	file->stream = NULL;
	if (!err && file->temporary && rename(file->temporary, file->path))
		err = -errno;
	if (!err && file->temporary) {
		free(file->temporary);
		file->temporary = NULL;
	}
	output_file_discard(file);
	return err;
}

void output_file_discard(struct output_file *file)
{
	if (file->stream)
		fclose(file->stream);
	if (file->temporary)
		unlink(file->temporary);
	free(file->temporary);
	free(file->path);
	memset(file, 0, sizeof(*file));
}

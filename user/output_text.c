// SPDX-License-Identifier: Apache-2.0
/* A table of functions: own samples (the function was the leaf) and total (it was anywhere on the stack). */
#include "output.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Rows of the table; the rest is summed up in one. */
#define TEXT_ROWS         40
#define TEXT_PROCESS_ROWS 20
/* Columns of a process's name that those behind it are lined up with; a longer one pushes them aside. */
#define TEXT_PROCESS_WIDTH 40

struct function {
	uint32_t name, file; /* strings */
	uint64_t self, total;
	uint64_t seen; /* number of the last sample that was counted in total: recursion counts once */
};

static int by_name(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	return x->file < y->file ? -1 : x->file > y->file;
}

static int by_self(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (x->self != y->self)
		return x->self > y->self ? -1 : 1;
	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return by_name(a, b);
}

/* The functions of all frames, sorted by name and file; *of maps a frame to its function. */
static int functions_of(const struct profile *p, struct function **functions, uint32_t *count, uint32_t **of)
{
	uint32_t frames = profile_frame_count(p), n = 0;

	*count = 0;
	*functions = calloc(frames ? frames : 1, sizeof(**functions));
	*of = calloc(frames ? frames : 1, sizeof(**of));
	if (!*functions || !*of)
		return -ENOMEM;
	for (uint32_t i = 0; i < frames; i++) {
		const struct profile_frame *f = profile_frame(p, i);

		(*functions)[i] = (struct function){.name = f->name, .file = f->file};
	}
	qsort(*functions, frames, sizeof(**functions), by_name);
	for (uint32_t i = 0; i < frames; i++) {
		if (!n || by_name(&(*functions)[n - 1], &(*functions)[i]))
			(*functions)[n++] = (*functions)[i];
	}
	for (uint32_t i = 0; i < frames; i++) {
		const struct profile_frame *f = profile_frame(p, i);
		struct function key = {.name = f->name, .file = f->file};
		struct function *found = bsearch(&key, *functions, n, sizeof(key), by_name);

		(*of)[i] = (uint32_t)(found - *functions);
	}
	*count = n;
	return 0;
}

static uint64_t add_up(const struct profile *p, struct function *functions, const uint32_t *of)
{
	size_t count;
	const struct profile_sample *samples = profile_samples(p, &count);
	uint64_t all = 0;

	for (size_t i = 0; i < count; i++) {
		uint32_t s = samples[i].stack;

		if (s == PROFILE_ROOT)
			continue;
		all += samples[i].value;
		functions[of[profile_stack(p, s)->frame]].self += samples[i].value;
		for (; s != PROFILE_ROOT; s = profile_stack(p, s)->parent) {
			struct function *f = &functions[of[profile_stack(p, s)->frame]];

			if (f->seen != i + 1)
				f->total += samples[i].value;
			f->seen = i + 1;
		}
	}
	return all;
}

static double percent(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)part / (double)all : 0.0;
}

struct owner {
	uint32_t process;
	uint64_t samples;
};

static int by_samples(const void *a, const void *b)
{
	const struct owner *x = a, *y = b;

	if (x->samples != y->samples)
		return x->samples > y->samples ? -1 : 1;
	return x->process < y->process ? -1 : x->process > y->process;
}

/* Columns that UTF-8 takes on a terminal, roughly: one for each character. */
static size_t columns(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += (*text & 0xc0) != 0x80;
	return n;
}

/* What is printed of a process; caller frees. NULL when memory is exhausted. */
static char *printed_label(const struct profile *p, uint32_t process)
{
	char *label = output_process_label(p, process), *escaped = NULL;
	size_t size = 0;
	FILE *out = label ? open_memstream(&escaped, &size) : NULL;

	if (out) {
		output_escaped(label, out);
		if (fclose(out)) {
			free(escaped);
			escaped = NULL;
		}
	}
	free(label);
	return escaped;
}

static int write_rows(const struct profile *p, const struct owner *owners, uint32_t rows, uint64_t all, FILE *out)
{
	char *labels[TEXT_PROCESS_ROWS] = {NULL};
	bool contained = false;
	size_t width = strlen("process");
	int err = 0;

	for (uint32_t i = 0; i < rows; i++) {
		size_t n;

		labels[i] = printed_label(p, owners[i].process);
		if (!labels[i]) {
			err = -ENOMEM;
			goto done;
		}
		n = columns(labels[i]);
		if (n > width && n <= TEXT_PROCESS_WIDTH)
			width = n;
		contained |= profile_process(p, owners[i].process)->container != 0;
	}
	if (contained)
		fprintf(out, "%8s %7s  %-*s  %s\n", "samples", "share", (int)width, "process", "container");
	else
		fprintf(out, "%8s %7s  %s\n", "samples", "share", "process");
	for (uint32_t i = 0; i < rows; i++) {
		uint32_t container = profile_process(p, owners[i].process)->container;
		size_t n = columns(labels[i]);

		fprintf(out, "%8llu %6.1f%%  %s", (unsigned long long)owners[i].samples,
			percent(owners[i].samples, all), labels[i]);
		if (container) {
			fprintf(out, "%*s", (int)(n < width ? width - n : 0) + 2, "");
			output_escaped(profile_string(p, container), out);
		}
		fputc('\n', out);
	}
done:
	for (uint32_t i = 0; i < rows; i++)
		free(labels[i]);
	return err;
}

static int write_processes(const struct profile *p, uint64_t all, FILE *out)
{
	uint32_t count = profile_process_count(p), rows = count < TEXT_PROCESS_ROWS ? count : TEXT_PROCESS_ROWS;
	struct owner *owners = calloc(count, sizeof(*owners));
	const struct profile_sample *samples;
	size_t sample_count;
	int err;

	if (!owners)
		return -ENOMEM;
	samples = profile_samples(p, &sample_count);
	for (uint32_t i = 0; i < count; i++)
		owners[i].process = i;
	for (size_t i = 0; i < sample_count; i++) {
		if (samples[i].stack != PROFILE_ROOT)
			owners[samples[i].process].samples += samples[i].value;
	}
	qsort(owners, count, sizeof(*owners), by_samples);
	err = write_rows(p, owners, rows, all, out);
	if (!err && count > rows)
		fprintf(out, "and %u process%s more\n", count - rows, count - rows == 1 ? "" : "es");
	fputc('\n', out);
	free(owners);
	return err;
}

int output_text(const struct profile *p, const struct output_options *options, FILE *out)
{
	(void)options;

	struct function *functions = NULL;
	uint32_t *of = NULL, count = 0;
	int err = functions_of(p, &functions, &count, &of);
	uint64_t all;

	if (err)
		goto done;
	all = add_up(p, functions, of);
	if (profile_process_count(p) > 1)
		err = write_processes(p, all, out);
	if (err)
		goto done;
	qsort(functions, count, sizeof(*functions), by_self);
	fprintf(out, "%8s %7s  %8s %7s  %s\n", "self", "self%", "total", "total%", "function");
	for (uint32_t i = 0; i < count && i < TEXT_ROWS; i++) {
		const struct function *f = &functions[i];
		const char *file = profile_string(p, f->file);

		fprintf(out, "%8llu %6.1f%%  %8llu %6.1f%%  ", (unsigned long long)f->self, percent(f->self, all),
			(unsigned long long)f->total, percent(f->total, all));
		output_escaped(profile_string(p, f->name), out);
		if (*file) {
			fputs(" (", out);
			output_escaped(file, out);
			fputc(')', out);
		}
		fputc('\n', out);
	}
	if (count > TEXT_ROWS)
		fprintf(out, "and %u function%s more\n", count - TEXT_ROWS, count - TEXT_ROWS == 1 ? "" : "s");
done:
	free(functions);
	free(of);
	return err;
}

// SPDX-License-Identifier: Apache-2.0
/* A table of functions: own samples (the function was the leaf) and total (it was anywhere on the stack). */
#include "output.h"

#include <errno.h>
#include <stdlib.h>

/* Rows of the table; the rest is summed up in one. */
#define TEXT_ROWS 40

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

int output_text(const struct profile *p, FILE *out)
{
	struct function *functions = NULL;
	uint32_t *of = NULL, count = 0;
	int err = functions_of(p, &functions, &count, &of);
	uint64_t all;

	if (err)
		goto done;
	all = add_up(p, functions, of);
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
		fprintf(out, "and %u functions more\n", count - TEXT_ROWS);
done:
	free(functions);
	free(of);
	return err;
}

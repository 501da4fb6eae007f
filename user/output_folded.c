// SPDX-License-Identifier: Apache-2.0
/* Folded stacks, as flamegraph.pl, speedscope and inferno read them. */
#include "output.h"

#include <errno.h>
#include <stdlib.h>

/* The frames of one stack, root first. */
struct path {
	uint32_t *frames;
	size_t count, capacity;
};

static int path_of(const struct profile *p, uint32_t stack, struct path *path)
{
	path->count = 0;
	for (uint32_t s = stack; s != PROFILE_ROOT; s = profile_stack(p, s)->parent) {
		if (path->count == path->capacity) {
			size_t capacity = path->capacity ? path->capacity * 2 : 256;
			uint32_t *frames = reallocarray(path->frames, capacity, sizeof(*frames));

			if (!frames)
				return -ENOMEM;
			path->frames = frames;
			path->capacity = capacity;
		}
		path->frames[path->count++] = profile_stack(p, s)->frame;
	}
	return 0;
}

/* What stands below the frames, each with its semicolon. */
static int write_roots(const struct profile *p, const struct profile_sample *sample, FILE *out)
{
	char *labels[OUTPUT_ROOTS];
	int n = output_roots(p, sample, labels);

	for (int i = 0; i < n; i++) {
		output_escaped(labels[i], out);
		fputc(';', out);
		free(labels[i]);
	}
	return n < 0 ? n : 0;
}

int output_folded(const struct profile *p, const struct output_options *options, FILE *out)
{
	struct profile_sample *samples;
	struct path path = {0};
	size_t count;
	int err = profile_by_roots(p, &samples, &count);

	(void)options;
	for (size_t i = 0; i < count && !err; i++) {
		err = path_of(p, samples[i].stack, &path);
		err = err ?: write_roots(p, &samples[i], out);
		for (size_t f = path.count; f-- > 0 && !err;) {
			output_frame(p, path.frames[f], out);
			if (f)
				fputc(';', out);
		}
		if (!err)
			fprintf(out, " %llu\n", (unsigned long long)samples[i].value);
	}
	free(path.frames);
	free(samples);
	return err;
}

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
static void write_roots(const struct profile *p, const struct profile_sample *sample, FILE *out)
{
	unsigned roots = profile_roots(p);

	if (roots & PROFILE_ROOT_CONTAINER) {
		uint32_t container = profile_process(p, sample->process)->container;

		if (container)
			output_escaped(profile_string(p, container), out);
		else
			fputs("[host]", out);
		fputc(';', out);
	}
	if (roots & PROFILE_ROOT_PROCESS) {
		output_process(p, sample->process, out);
		fputc(';', out);
	}
	if (sample->thread != PROFILE_NONE) {
		const struct profile_thread *thread = profile_thread(p, sample->thread);

		output_escaped(profile_string(p, thread->name), out);
		fprintf(out, " (%d);", thread->tid);
	}
}

int output_folded(const struct profile *p, FILE *out)
{
	struct path path = {0};
	size_t count;
	const struct profile_sample *samples = profile_samples(p, &count);
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		err = path_of(p, samples[i].stack, &path);
		if (err || !path.count)
			continue;
		write_roots(p, &samples[i], out);
		for (size_t f = path.count; f-- > 0;) {
			output_frame(p, path.frames[f], out);
			if (f)
				fputc(';', out);
		}
		fprintf(out, " %llu\n", (unsigned long long)samples[i].value);
	}
	free(path.frames);
	return err;
}

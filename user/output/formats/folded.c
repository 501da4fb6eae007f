// SPDX-License-Identifier: Apache-2.0
/* Folded stacks, as flamegraph.pl, speedscope and inferno read them. */
#include "output/output.h"

#include <stdlib.h>

#include "output/formats/path.h"

/* Writes the roots below the frames (container, process, thread), each followed by a semicolon. */
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

int output_folded_stack(const struct profile *p, const struct profile_sample *sample, bool marks, FILE *out)
{
	struct output_path path = {0};
	int err = output_path_read(p, sample->stack, &path);

	err = err ?: write_roots(p, sample, out);
	for (size_t f = 0; f < path.count && !err; f++) {
		if (f)
			fputc(';', out);
		output_frame(p, path.frames[f], out);
		if (marks && profile_frame_at(p, path.frames[f])->kind == PROFILE_NATIVE)
			fputs(OUTPUT_MARK_NATIVE, out);
	}
	output_path_free(&path);
	return err;
}

int output_folded(const struct profile *p, const struct output_options *options, FILE *out)
{
	struct profile_sample *samples;
	size_t count;
	int err = profile_by_roots(p, &samples, &count);

	for (size_t i = 0; i < count && !err; i++) {
		err = output_folded_stack(p, &samples[i], options->frame_marks, out);
		if (!err)
			fprintf(out, " %llu\n", (unsigned long long)samples[i].value);
	}
	free(samples);
	return err;
}

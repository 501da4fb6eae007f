// SPDX-License-Identifier: Apache-2.0
/* The page of the stacks of a row. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "top/view_internal.h"

static bool is_of(const struct top_drawing *d, uint32_t stack)
{
	const struct top_row_key *of = &d->choice->of;
	const struct profile *p = d->facts->all;
	const char *name = top_model_string(d->m, of->name), *file = top_model_string(d->m, of->file);

	for (; stack != PROFILE_ROOT; stack = profile_stack_at(p, stack)->parent) {
		const struct profile_frame *frame = profile_frame_at(p, profile_stack_at(p, stack)->frame);

		if (frame->first_line == of->first_line && !strcmp(profile_string(p, frame->name), name) &&
		    !strcmp(profile_string(p, frame->file), file))
			return true;
	}
	return false;
}

static int compare_samples(const void *a, const void *b)
{
	const struct profile_sample *one = a, *other = b;

	return (one->value < other->value) - (one->value > other->value);
}

/* Draws a stack, the outermost function first, each further in; skips what is scrolled over. */
static void draw_stack(struct top_drawing *d, uint32_t stack, uint64_t value, uint64_t all, size_t *line)
{
	const struct profile *p = d->facts->all;
	size_t depth = 0, at;
	uint32_t *frames;

	for (uint32_t s = stack; s != PROFILE_ROOT; s = profile_stack_at(p, s)->parent)
		depth++;
	frames = calloc(depth + 1, sizeof(*frames));
	if (!frames) {
		d->err = -ENOMEM;
		return;
	}
	at = depth;
	for (uint32_t s = stack; s != PROFILE_ROOT; s = profile_stack_at(p, s)->parent)
		frames[--at] = profile_stack_at(p, s)->frame;
	if ((*line)++ >= d->choice->scroll)
		top_add(d, TOP_BOLD, "%.2f s, %.1f %%", (double)value / d->facts->freq, top_percent(value, all));
	for (size_t i = 0; i < depth; i++) {
		const struct profile_frame *frame = profile_frame_at(p, frames[i]);
		bool known = frame->line != PROFILE_NO_LINE;
		char number[16] = "";

		if (known)
			snprintf(number, sizeof(number), ":%d", frame->line);
		if ((*line)++ >= d->choice->scroll)
			top_add(d, TOP_PLAIN, "  %s%s%s%s%s", profile_string(p, frame->name), frame->file ? " (" : "",
				profile_string(p, frame->file), frame->file ? number : "", frame->file ? ")" : "");
	}
	free(frames);
}

void top_draw_stacks(struct top_drawing *d)
{
	const struct profile *p = d->facts->all;
	struct profile_sample *found;
	size_t count, kept = 0, line = 0;
	const struct profile_sample *samples = profile_samples(p, &count);
	uint64_t all = 0;

	found = calloc(count + 1, sizeof(*found));
	if (!found) {
		d->err = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < count; i++) {
		if (is_of(d, samples[i].stack)) {
			found[kept++] = samples[i];
			all += samples[i].value;
		}
	}
	qsort(found, kept, sizeof(*found), compare_samples);
	top_add(d, TOP_HEAD, "stacks of the last %.0f s with %s, the most frequent first", d->facts->all_s,
		top_model_string(d->m, d->choice->of.name));
	for (size_t i = 0; i < kept && !d->err; i++)
		draw_stack(d, found[i].stack, found[i].value, all, &line);
	d->out->rows = line;
	free(found);
}

// SPDX-License-Identifier: Apache-2.0
/* The page of the stacks of a row. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "output/output.h"
#include "top/view_internal.h"

/* Returns whether a frame is where the row is, if it is in the same file. */
static bool is_at(const struct top_drawing *d, const struct profile_frame *frame)
{
	const struct profile_place *of = &d->choice->of.place, place = profile_place_of(frame);

	if (place.first_line != of->first_line)
		return false;
	if (d->choice->of_table == TOP_EXPRESSIONS)
		return !memcmp(&place, of, sizeof(place));
	return d->choice->of_table != TOP_LINES || place.line == of->line;
}

/* Returns whether the row's function, line or expression is in the stack. */
static bool is_met(const struct top_drawing *d, uint32_t stack)
{
	const struct top_row_key *of = &d->choice->of;
	const struct profile *p = d->facts->all;
	const char *name = top_model_string(d->m, of->name), *file = top_model_string(d->m, of->file);

	for (; stack != PROFILE_ROOT; stack = profile_stack_at(p, stack)->parent) {
		const struct profile_frame *frame = profile_frame_at(p, profile_stack_at(p, stack)->frame);

		if (frame->kind == of->kind && is_at(d, frame) && !strcmp(profile_string(p, frame->name), name) &&
		    !strcmp(profile_string(p, frame->file), file))
			return true;
	}
	return false;
}

static bool is_of(const struct top_drawing *d, const struct profile_sample *sample)
{
	const struct top_row_key *of = &d->choice->of;
	const struct profile *p = d->facts->all;
	const struct profile_process *process = profile_process_at(p, sample->process);

	switch (d->choice->of_table) {
	case TOP_THREADS:
		return process->pid == of->pid && sample->thread != PROFILE_NONE &&
		       profile_thread_at(p, sample->thread)->tid == of->tid;
	case TOP_PROCESSES:
		return process->pid == of->pid;
	case TOP_CONTAINERS:
		return !strcmp(profile_string(p, process->container), top_model_string(d->m, of->name));
	default:
		return is_met(d, sample->stack);
	}
}

/* Tells whose stacks they are; where not all has room, not in which order, then not the beginning of the name. */
static void draw_heading(struct top_drawing *d)
{
	const struct top_choice *c = d->choice;
	const char *title = top_model_string(d->m, c->of_title), *order = ", the most frequent first";
	char before[OUTPUT_POSITION_MAX + 16], after[16] = "", position[OUTPUT_POSITION_MAX], name[1024], begin[64];
	size_t others;

	output_position(&c->of.place, position);
	if (c->of_table == TOP_LINES)
		snprintf(before, sizeof(before), "with line %d of ", c->of.place.line);
	else if (c->of_table == TOP_EXPRESSIONS)
		snprintf(before, sizeof(before), "with %s in ", position + 1);
	else
		snprintf(before, sizeof(before), "%s",
			 c->of_table == TOP_THREADS      ? "of thread "
			 : c->of_table == TOP_PROCESSES  ? "of process "
			 : c->of_table == TOP_CONTAINERS ? "in "
							 : "with ");
	if (c->of_table == TOP_THREADS || c->of_table == TOP_PROCESSES)
		snprintf(after, sizeof(after), " %d", c->of_table == TOP_THREADS ? c->of.tid : c->of.pid);
	snprintf(begin, sizeof(begin), "stacks of the last %.0f s ", d->facts->all_s);
	others = strlen(begin) + strlen(before) + strlen(after);
	top_fit_place(title, "", "", SIZE_MAX, name, sizeof(name));
	if (others + text_width(name) + strlen(order) > d->columns)
		order = "";
	top_fit_place(title, "", "", d->columns > others ? d->columns - others : 0, name, sizeof(name));
	top_add(d, TOP_HEAD, "%s%s%s%s%s", begin, before, name, after, order);
}

static int compare_stacks(const void *a, const void *b)
{
	const struct profile_sample *one = a, *other = b;

	return (one->stack > other->stack) - (one->stack < other->stack);
}

/* Adds up the samples of threads and processes that have the same stack. Returns how many are left. */
static size_t merge(struct profile_sample *samples, size_t count)
{
	size_t kept = 0;

	qsort(samples, count, sizeof(*samples), compare_stacks);
	for (size_t i = 0; i < count; i++) {
		if (kept && samples[kept - 1].stack == samples[i].stack)
			samples[kept - 1].value += samples[i].value;
		else
			samples[kept++] = samples[i];
	}
	return kept;
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
		const struct profile_place place = profile_place_of(frame);
		char position[OUTPUT_POSITION_MAX], name[4096];

		output_position(&place, position);
		top_fit_place(profile_string(p, frame->name), profile_string(p, frame->file),
			      frame->file ? position : "", d->columns - strlen("  "), name, sizeof(name));
		if ((*line)++ >= d->choice->scroll)
			top_add(d, TOP_PLAIN, "  %s", name);
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
		if (is_of(d, &samples[i])) {
			found[kept++] = samples[i];
			all += samples[i].value;
		}
	}
	kept = merge(found, kept);
	qsort(found, kept, sizeof(*found), compare_samples);
	draw_heading(d);
	for (size_t i = 0; i < kept && !d->err; i++)
		draw_stack(d, found[i].stack, found[i].value, all, &line);
	if (!kept)
		top_add(d, TOP_PLAIN, "no samples: it was not on a CPU");
	d->out->rows = line;
	free(found);
}

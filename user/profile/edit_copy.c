// SPDX-License-Identifier: Apache-2.0
/* Copies what is wanted of a profile into another: stacks, samples, events, sources. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/edit_internal.h"
#include "profile/idle.h"
#include "profile/mappings.h"
#include "profile/parents.h"

/*
 * Returns the mapping of compiled code in the copy. A build-id would say which file it is of, an address which
 * function: with hidden names only the library is left, where the frame itself names its source.
 */
static uint32_t copy_mapping(struct edit *e, const struct profile_frame *frame)
{
	uint32_t library = profile_library_of(e->from, frame), added;
	char *hidden;

	if (!e->edit->anonymize)
		return profile_copy_mapping(e->to, e->from, frame);
	if (library == frame->file)
		return PROFILE_NONE;
	hidden = edit_hidden_path(e->edit, profile_string(e->from, library));
	added = hidden ? profile_add_mapping(e->to, &(struct profile_mapping_info){hidden, "", "", 0, 0, 0})
		       : PROFILE_NONE;
	free(hidden);
	return added;
}

static uint32_t add_code(struct edit *e, const struct profile_frame *frame, const char *name, const char *file)
{
	struct profile_code code = {
		.mapping = copy_mapping(e, frame),
		.marks = frame->marks,
		.address = e->edit->anonymize ? 0 : frame->address,
		.line = frame->line,
	};
	bool has_mapping = e->edit->anonymize ? profile_library_of(e->from, frame) != frame->file : frame->mapping != 0;

	if (has_mapping && code.mapping == PROFILE_NONE)
		return PROFILE_NONE;
	return profile_add_code(e->to, name, file, &code);
}

/* Adds a frame that is no wait's. */
static uint32_t add_frame(struct edit *e, const struct profile_frame *frame, const char *name, const char *file)
{
	struct profile_place place = profile_place_of(frame);

	if (frame->kind == PROFILE_NATIVE)
		return add_code(e, frame, name, file);
	if (frame->kind != PROFILE_PYTHON)
		return profile_add_frame(e->to, (enum profile_frame_kind)frame->kind, name, file, frame->line,
					 frame->first_line);
	if (e->edit->no_columns)
		place.end_line = place.column = place.end_column = 0;
	return profile_add_python(e->to, name, file, &place);
}

static uint32_t copy_frame(struct edit *e, uint32_t index)
{
	const struct profile_frame *frame = profile_frame_at(e->from, index);
	const char *name = profile_string(e->from, frame->name), *file = profile_string(e->from, frame->file);
	char *hidden_name = NULL, *hidden_file = NULL;
	uint32_t copied = PROFILE_NONE;

	if (e->frames[index] != PROFILE_NONE)
		return e->frames[index];
	if (e->edit->anonymize) {
		hidden_name = frame->kind == PROFILE_NOTE     ? edit_hidden_note(e->edit, name)
			      : frame->kind == PROFILE_THREAD ? edit_hidden(e->edit, 't', name)
			      : frame->kind == PROFILE_KERNEL ? strdup(name)
							      : edit_hidden_name(e->edit, name);
		hidden_file = edit_hidden_path(e->edit, file);
		name = hidden_name;
		file = hidden_file;
	}
	if (name && frame->state)
		copied = profile_add_wait(e->to, profile_string(e->from, frame->state), name, frame->waker);
	else if (name && file)
		copied = add_frame(e, frame, name, file);
	if (copied != PROFILE_NONE && frame->kind == PROFILE_PYTHON &&
	    profile_set_origin(e->to, file, edit_origin_of(e->from, frame, e->edit)))
		copied = PROFILE_NONE;
	free(hidden_name);
	free(hidden_file);
	e->frames[index] = copied;
	return copied;
}

int edit_copy_stacks(struct edit *e)
{
	e->stacks[PROFILE_ROOT] = PROFILE_ROOT;
	for (uint32_t i = 1; i < profile_stack_count(e->from); i++) {
		const struct profile_stack *stack = profile_stack_at(e->from, i);
		uint32_t frame, below;

		if (!e->wanted[i])
			continue;
		below = edit_is_first(e, i) ? PROFILE_ROOT : e->stacks[stack->parent];
		if (e->matches[i].hide) {
			e->stacks[i] = below;
			continue;
		}
		frame = copy_frame(e, stack->frame);
		if (frame == PROFILE_NONE)
			return -ENOMEM;
		e->stacks[i] = profile_add_stack(e->to, below, frame);
		if (e->stacks[i] == PROFILE_NONE)
			return -ENOMEM;
	}
	return 0;
}

/* Names in place of those of a process, where they are hidden. */
struct names {
	char *name, *container, *service;
};

/* Fills in a process's names, or what stands for them. Returns whether there was memory. */
static bool name_process(struct edit *e, const struct profile_process *process, struct profile_process_info *info,
			 struct names *names)
{
	*names = (struct names){0};
	info->name = profile_string(e->from, process->name);
	info->container = profile_string(e->from, process->container);
	info->service = profile_string(e->from, process->service);
	/* They tell a container from the next one of its name. */
	if (!e->edit->anonymize && !e->edit->merge_processes)
		info->attributes = profile_string(e->from, process->attributes);
	if (e->edit->anonymize) {
		info->name = names->name = edit_hidden(e->edit, 'p', info->name);
		info->container = names->container = edit_hidden(e->edit, 'c', info->container);
		info->service = names->service = edit_hidden(e->edit, 's', info->service);
	}
	return info->name && info->container && info->service;
}

static void free_names(struct names *names)
{
	free(names->name);
	free(names->container);
	free(names->service);
}

/* Says in the copy who started the process. Returns 0 or -ENOMEM. */
static int copy_parents(struct edit *e, uint32_t index)
{
	const struct profile_parents *parents = profile_get_parents(e->from);
	uint32_t chain[PROFILE_PARENTS_MAX], above = PROFILE_NONE;
	size_t count = e->edit->merge_processes ? 0 : profile_parents_chain(parents, index, chain);

	for (size_t i = 0; i < count; i++) {
		const struct profile_parent *parent = profile_parents_at(parents, chain[i]);
		struct names names;
		struct profile_process_info info = {.pid = parent->process.pid, .inner_pid = parent->process.inner_pid};

		above = name_process(e, &parent->process, &info, &names)
				? profile_add_parent(e->to, above, &info, parent->ended)
				: PROFILE_NONE;
		free_names(&names);
		if (above == PROFILE_NONE)
			return -ENOMEM;
	}
	return count ? profile_set_parent(e->to, e->processes[index], above) : 0;
}

static uint32_t copy_process(struct edit *e, uint32_t index)
{
	const struct profile_process *process = profile_process_at(e->from, index);
	struct profile_process_info info = {0};
	struct names names;

	if (e->processes[index] != PROFILE_NONE)
		return e->processes[index];
	if (!e->edit->merge_processes) {
		info.pid = process->pid;
		info.inner_pid = process->inner_pid;
	}
	if (name_process(e, process, &info, &names))
		e->processes[index] = profile_add_process(e->to, &info);
	free_names(&names);
	if (e->processes[index] != PROFILE_NONE && copy_parents(e, index))
		e->processes[index] = PROFILE_NONE;
	return e->processes[index];
}

static uint32_t copy_thread(struct edit *e, uint32_t index, uint32_t process)
{
	const struct profile_thread *thread = profile_thread_at(e->from, index);
	const char *name = profile_string(e->from, thread->name);
	char *hidden = NULL;

	if (e->threads[index] != PROFILE_NONE)
		return e->threads[index];
	if (e->edit->anonymize)
		name = hidden = edit_hidden(e->edit, 't', name);
	if (name)
		e->threads[index] = profile_add_thread(e->to, process, thread->tid, name);
	free(hidden);
	return e->threads[index];
}

/* Returns the stack in the copy: a note's where all of it was hidden or folded. PROFILE_NONE: no memory. */
static uint32_t copied_stack(struct edit *e, uint32_t stack)
{
	const char *hidden = e->edit->own_only ? "[libraries]" : "[hidden]";
	uint32_t note;

	if (edit_is_folded(e, stack))
		note = profile_add_wait(e->to, profile_string(e->from, profile_state_of(e->from, stack)),
					PROFILE_IDLE_NAME, 0);
	else if (e->stacks[stack] != PROFILE_ROOT || stack == PROFILE_ROOT)
		return e->stacks[stack];
	else
		note = profile_add_frame(e->to, PROFILE_NOTE, hidden, "", PROFILE_NO_LINE, PROFILE_NO_LINE);
	return note == PROFILE_NONE ? PROFILE_NONE : profile_add_stack(e->to, PROFILE_ROOT, note);
}

/* Adds the stack and the process of a sample that is added up with others. */
static void copy_other(struct edit *e, const struct profile_sample *sample, uint32_t *stack, uint32_t *process)
{
	const uint32_t state = profile_state_of(e->from, sample->stack);
	struct profile_process_info info = {.pid = 0};
	struct names names;
	uint32_t note;

	note = state ? profile_add_wait(e->to, profile_string(e->from, state), PROFILE_OTHER_STACKS, 0)
		     : profile_add_frame(e->to, PROFILE_NOTE, PROFILE_OTHER_STACKS, "", PROFILE_NO_LINE,
					 PROFILE_NO_LINE);
	*stack = note == PROFILE_NONE ? PROFILE_NONE : profile_add_stack(e->to, PROFILE_ROOT, note);
	*process = name_process(e, profile_process_at(e->from, sample->process), &info, &names)
			   ? profile_add_process(e->to, &info)
			   : PROFILE_NONE;
	free_names(&names);
}

int edit_copy_samples(struct edit *e, const bool *passes)
{
	size_t count;
	const struct profile_sample *samples = profile_samples(e->from, &count);

	for (size_t i = 0; i < count; i++) {
		uint32_t process, thread = PROFILE_NONE, stack;

		if (!passes[i])
			continue;
		if (edit_is_other(e, i)) {
			copy_other(e, &samples[i], &stack, &process);
		} else {
			stack = copied_stack(e, samples[i].stack);
			process = copy_process(e, samples[i].process);
		}
		if (process != PROFILE_NONE && samples[i].thread != PROFILE_NONE && !edit_is_other(e, i)) {
			thread = copy_thread(e, samples[i].thread, process);
			if (thread == PROFILE_NONE)
				return -ENOMEM;
		}
		if (process == PROFILE_NONE || stack == PROFILE_NONE ||
		    profile_add_time(e->to, stack, process, thread, samples[i].value, samples[i].count))
			return -ENOMEM;
		e->samples[i] = profile_find_sample(e->to, stack, process, thread);
	}
	return 0;
}

uint64_t edit_start_of(const struct profile *p)
{
	const char *fact = profile_find_fact(p, PROFILE_FACT_START);

	return fact ? strtoull(fact, NULL, 10) : 0;
}

int edit_copy_events(struct edit *e, uint64_t to_start)
{
	uint64_t from_start = edit_start_of(e->from), later = 0;
	size_t there, count;
	const struct profile_event *events = profile_events(e->from, &count);
	int err = 0;

	profile_events(e->to, &there);
	if (to_start && from_start && from_start > to_start)
		later = from_start - to_start;
	else if (to_start && from_start && there)
		err = profile_delay_events(e->to, to_start - from_start);
	for (size_t i = 0; i < count && !err; i++) {
		uint64_t time;

		if (e->samples[events[i].sample] == PROFILE_NONE)
			continue;
		if (__builtin_add_overflow(events[i].time_ns, later, &time) || time > INT64_MAX)
			return -EOVERFLOW;
		err = profile_add_event(e->to, time, e->samples[events[i].sample], events[i].value);
	}
	profile_sort_events(e->to);
	return err;
}

int edit_copy_sources(struct edit *e)
{
	uint32_t texts = profile_string_count(e->from);
	bool *needed = calloc(texts, sizeof(*needed));
	size_t count;
	const struct profile_source *sources = profile_sources(e->from, &count);
	int err = needed ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < profile_frame_count(e->from) && !err; i++)
		needed[profile_frame_at(e->from, i)->file] |= e->frames[i] != PROFILE_NONE;
	for (size_t i = 0; i < count && !err; i++) {
		if (needed[sources[i].file])
			err = profile_set_source(e->to, profile_string(e->from, sources[i].file),
						 profile_string(e->from, sources[i].text));
		needed[sources[i].file] = false;
	}
	/* The text that another profile has for such a file need not be that of this one. */
	for (uint32_t i = 1; i < texts && !err; i++) {
		if (needed[i])
			err = profile_set_source(e->to, profile_string(e->from, i), "");
	}
	free(needed);
	return err;
}
